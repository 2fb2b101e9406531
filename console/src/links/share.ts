/** Texts to post with a link. The creator changes them as they like. */
export const shareTexts = (url: string, code: string): readonly string[] => [
  `I use this app every day. Get it here: ${url}`,
  `Try it with my link ${url}, or enter my code ${code} in the app.`,
];

const SPOKEN: Readonly<Record<string, string>> = { '-': 'dash', _: 'underscore' };

/** Returns a code as one says it aloud, letter by letter: "a, d, a, dash, 7". */
export const spell = (code: string): string =>
  [...code.toLowerCase()].map((letter) => SPOKEN[letter] ?? letter).join(', ');
