import type { Parameters as PropertyParameters } from 'fast-check';

/** Whether the rounds of `npm run test:long` run, instead of the fewer ones of `npm test`. */
export const isLong = process.env['TEST_ROUNDS'] === 'long';

/** Returns the number of rounds of a test: `few` in `npm test`, `many` in `npm run test:long`. */
export function rounds(few: number, many: number): number {
  return isLong ? many : few;
}

/** The seed of all property tests with many rounds, so that a second run has the same cases. Random without it. */
const seed = process.env['TEST_SEED'];

/** Returns the cases of a property test: `few` from a fixed seed in `npm test`, `many` at random in `npm run test:long`. */
export function cases(few: number, many: number): Pick<PropertyParameters, 'numRuns' | 'seed'> {
  if (!isLong) return { numRuns: few, seed: 1 };
  return seed === undefined ? { numRuns: many } : { numRuns: many, seed: Number(seed) };
}
