import { expect, test } from '@jest/globals';
import { failingChecks } from '../../tools/run-tool.ts';

test.each([
  ['{"status":"ok","checks":[{"name":"database","ok":true}]}', []],
  [
    '{"status":"degraded","checks":[{"name":"database","ok":true,"detail":"ok"},{"name":"temporal","ok":false}]}',
    ['temporal'],
  ],
  ['{"checks":[{"status":"ok"}]}', null],
  ['<html>"ok"</html>', null],
])('of the readiness response %s these checks fail: %j', (text, failing) => {
  expect(failingChecks(text)).toEqual(failing);
});
