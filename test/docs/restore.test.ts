import { expect, test } from '@jest/globals';
import { textOf } from '../support/text-of.ts';

const page = textOf('docs/operators.md');
const section = (title: string) => page.split(/^## /m).find((text) => text.startsWith(`${title}\n`)) ?? '';

// @promise payouts-stop-after-restore
test('operators.md stops payouts in a copy of the files before the start, and resumes none without a condition', () => {
  const ways = section('Restore').split(/^- /m).slice(1);
  expect(ways).toHaveLength(3);
  for (const way of ways) expect(way).toMatch(/backup\.md#payouts-that-the-database-has-forgotten/);
  const files = ways[0]?.replaceAll(/\s+/g, ' ') ?? '';
  expect(files.indexOf('`npm run -s admin -- payouts stop`')).toBeGreaterThan(0);
  expect(files.indexOf('payouts stop')).toBeLessThan(files.indexOf('start the service'));
  const blocks = page.match(/```[^]*?```/g) ?? [];
  expect(blocks.filter((block) => block.includes('payouts resume'))).toEqual([]);
  expect(section('Move to another database').replaceAll(/\s+/g, ' ')).toMatch(
    /If the service was stopped before the export.*payouts resume --none-missing/,
  );
});
