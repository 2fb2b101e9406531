/**
 * Marks that turn the direction of the text after them or break its line, as the inside of a class of a regular expression: a name with one could
 * read as another name. Joiners, which Persian and Hindi need, are none of them.
 */
export const HIDDEN_CLASS = String.raw`\u2028\u2029\u200e\u200f\u061c\u202a-\u202e\u2066-\u2069`;

/** Finds one of them. */
export const HIDDEN_CHARACTERS = new RegExp(`[${HIDDEN_CLASS}]`, 'u');

/** What is refused where somebody else reads the text. */
export const NO_HIDDEN_CHARACTERS =
  'Must not contain line breaks or characters that change the direction of the text.';
