import { expect, test } from '@jest/globals';
import { APP_DEFAULTS as OF_CONSOLE } from '../../console/src/app-defaults.ts';
import { APP_DEFAULTS } from '../../src/domain/app-defaults.ts';

test('the form of a new app begins with the defaults of the service', () => {
  expect(APP_DEFAULTS).toMatchObject(OF_CONSOLE);
});
