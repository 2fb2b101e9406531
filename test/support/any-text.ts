import * as fc from 'fast-check';

/** Whatever characters there are, half surrogate pairs left out. */
export const anyCharacter: fc.Arbitrary<string> = fc
  .oneof(fc.integer({ min: 0, max: 0xd7ff }), fc.integer({ min: 0xe000, max: 0x10ffff }))
  .map((codePoint) => String.fromCodePoint(codePoint));

/** Texts of them. fast-check's own unit for them takes seconds to build, in each file anew. */
export const anyText: fc.Arbitrary<string> = fc.string({ unit: anyCharacter });
