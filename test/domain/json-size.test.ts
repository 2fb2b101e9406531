import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { exceededJsonLimit } from '../../src/domain/json-size.ts';
import { cases } from '../support/rounds.ts';

/** The limits of tests in which the other one is of no interest. */
const MANY = 1_000_000;
const valuesWithin = (text: string, values: number) => exceededJsonLimit(text, { values, depth: MANY });
const depthWithin = (text: string, depth: number) => exceededJsonLimit(text, { values: MANY, depth });

describe('the limits of a JSON text', () => {
  test.each([
    ['[1,2,3]', 4, 1],
    ['{"a":{"b":[{}]}}', 5, 4],
    ['{"a":"[,{,\\"[,","b,[":1}', 3, 1],
    ['["\\\\",1]', 3, 1],
    ['["\\\\\\",1,2",3]', 3, 1],
    [' [ ] ', 2, 1],
  ])('%s has at most %d values and is nested %d deep', (text, values, depth) => {
    expect(valuesWithin(text, values)).toBeNull();
    expect(valuesWithin(text, values - 1)).toBe('values');
    expect(depthWithin(text, depth)).toBeNull();
    expect(depthWithin(text, depth - 1)).toBe('depth');
  });

  test('no JSON text has more values or is nested deeper than was counted', () => {
    const measure = (value: unknown): { values: number; depth: number } => {
      if (typeof value !== 'object' || value === null) return { values: 1, depth: 0 };
      const inner = Object.values(value).map(measure);
      return {
        values: inner.reduce((sum, { values }) => sum + values, 1),
        depth: 1 + Math.max(0, ...inner.map(({ depth }) => depth)),
      };
    };
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 6 }), fc.nat(3), (value, indent) => {
        const text = JSON.stringify(value, null, indent);
        const { values, depth } = measure(value);
        if (values > 1) expect(valuesWithin(text, values - 1)).toBe('values');
        if (depth > 0) expect(depthWithin(text, depth - 1)).toBe('depth');
        expect(depthWithin(text, depth)).toBeNull();
        // The comma of a container counts, too: one of an empty one is missing.
        expect(valuesWithin(text, 2 * values + 1)).toBeNull();
      }),
      cases(50, 2_000),
    );
  });

  test.each(['', '"', '"\\', '{"a', ']]]]', '[[[', ',,,'])(
    'a text that is not JSON ends the search: %j',
    (text) => {
      expect(exceededJsonLimit(text, { values: 10, depth: 10 })).toBeNull();
    },
  );
});
