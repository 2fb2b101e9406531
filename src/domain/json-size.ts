/** The limits of a JSON text, beside its bytes: what parsing and checking it costs depends on them. */
export interface JsonLimits {
  /** Values, names of fields not counted: what is in braces and brackets, and they themselves. */
  readonly values: number;
  /** How deep values are in each other. */
  readonly depth: number;
}

/** More than any event of a provider has. */
export const EVENT_LIMITS: JsonLimits = { values: 20_000, depth: 64 };

const QUOTE = 0x22;
const COMMA = 0x2c;
const BACKSLASH = 0x5c;
const OPEN = new Set([0x5b, 0x7b]);
const CLOSE = new Set([0x5d, 0x7d]);

/** Returns the position of the quote that ends the string whose content begins at `start`, or the end of the text. */
function endOfString(text: string, start: number): number {
  for (let at = text.indexOf('"', start); at !== -1; at = text.indexOf('"', at + 1)) {
    let escapes = 0;
    while (text.codePointAt(at - 1 - escapes) === BACKSLASH && at - 1 - escapes >= start) escapes += 1;
    if (escapes % 2 === 0) return at;
  }
  return text.length;
}

/**
 * Returns which limit a JSON text exceeds, or null. It looks at each character once at most and builds nothing, so that a
 * megabyte costs a few milliseconds where its parsed value would cost hundreds. A text that is not JSON may have any result.
 */
export function exceededJsonLimit(text: string, { values, depth }: JsonLimits): keyof JsonLimits | null {
  // A value has at least two characters, with its comma.
  if (text.length < values && text.length < depth) return null;
  let found = 1;
  let nested = 0;
  for (let at = 0; at < text.length; at += 1) {
    // oxlint-disable-next-line unicorn/prefer-code-point -- the characters of the structure are ASCII, and this is faster
    const character = text.charCodeAt(at);
    if (character === QUOTE) at = endOfString(text, at + 1);
    else if (character === COMMA) found += 1;
    else if (OPEN.has(character)) {
      found += 1;
      nested += 1;
      if (nested > depth) return 'depth';
    } else if (CLOSE.has(character)) nested -= 1;
    if (found > values) return 'values';
  }
  return null;
}
