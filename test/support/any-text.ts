import * as fc from 'fast-check';

/** Generates any character except surrogates. */
export const anyCharacter: fc.Arbitrary<string> = fc
  .oneof(fc.integer({ min: 0, max: 0xd7ff }), fc.integer({ min: 0xe000, max: 0x10ffff }))
  .map((codePoint) => String.fromCodePoint(codePoint));

/** Generates texts of any characters. The unit of fast-check takes seconds to build in each test file. */
export const anyText: fc.Arbitrary<string> = fc.string({ unit: anyCharacter });
