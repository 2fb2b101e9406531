import { expect, test } from '@jest/globals';
import { parseId } from '../../activities/parse-id.ts';
import { newId } from '../../src/db/new-id.ts';

test('an activity accepts an id of the right kind', () => {
  const id = newId('delivery');
  expect(parseId('delivery', id)).toBe(id);
});

test.each([
  ['an id of another kind', newId('binding')],
  ['a malformed id', 'del_1'],
  ['no text', { deliveryId: newId('delivery') }],
  ['nothing', undefined],
])('an activity that receives %s fails without a retry and without quoting the argument', (_, argument) => {
  expect(() => parseId('delivery', argument)).toThrow(
    expect.objectContaining({
      nonRetryable: true,
      type: 'InvalidId',
      message: 'the argument is not an id of the kind delivery',
    }),
  );
});
