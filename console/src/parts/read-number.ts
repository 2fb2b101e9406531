interface Format {
  /** Number of decimals at most. */
  readonly decimals: number;
  readonly prefix: string;
  readonly suffix: string;
}

/** Groups of three digits, with a space or an apostrophe between them. */
const SPACED = /^\d{1,3}(?:[ '’]\d{3})+(?![\d '’])/;
/** Groups of three digits, with the sign that separates the decimals being the other one. */
const GROUPED = [/^(\d{1,3}(?:,\d{3})+)(?:\.(\d*))?$/, /^(\d{1,3}(?:\.\d{3})+)(?:,(\d*))?$/] as const;

function without(text: string, { prefix, suffix }: Format): string {
  const [before, after] = [prefix.trim(), suffix.trim()];
  let bare = text.replaceAll(/\s/g, ' ').trim();
  if (before !== '' && bare.startsWith(before)) bare = bare.slice(before.length);
  if (after !== '' && bare.endsWith(after)) bare = bare.slice(0, -after.length);
  return bare.trim();
}

/** Returns the whole and the decimal digits of a text. A sentence if it could mean two numbers, null if it is none. */
function partsOf(bare: string, decimals: number): readonly [whole: string, fraction: string] | string | null {
  const text = SPACED.test(bare) ? bare.replace(SPACED, (groups) => groups.replaceAll(/\D/g, '')) : bare;
  const [, plain, sign = '', fraction = ''] = /^(\d*)(?:([.,])(\d*))?$/.exec(text) ?? [];
  if (plain !== undefined) {
    if (plain === '' && fraction === '') return null;
    // In one half of the world "1,234" is 1234, in the other one it is 1.234.
    if (sign !== '' && text === bare && fraction.length === 3 && /^[1-9]\d{0,2}$/.test(plain)) {
      const near = decimals === 0 ? '' : ` or ${plain}.${fraction.slice(0, decimals)}`;
      return `Write ${plain}${fraction}${near}`;
    }
    return [plain, fraction];
  }
  for (const pattern of GROUPED) {
    const [, groups, decimal = ''] = pattern.exec(text) ?? [];
    if (groups !== undefined) return [groups.replaceAll(/\D/g, ''), decimal];
  }
  return null;
}

/**
 * Reads a number that a person wrote, with a point or a comma before its decimals. Returns null for an empty text, and a sentence
 * that says what to write if it is no number, could mean two, or has too many decimals.
 */
export function readNumber(text: string, format: Format): number | string | null {
  const { decimals } = format;
  if (text.trim() === '') return null;
  const bare = without(text, format);
  // No field takes less than 0: what is deducted has a field of its own.
  if (/^[-−]\s*\d/.test(bare)) return 'Write it without a minus';
  const parts = partsOf(bare, decimals);
  if (parts === null) return decimals === 0 ? 'Write a whole number' : 'Write a number, such as 12.50';
  if (typeof parts === 'string') return parts;
  const [whole, fraction] = parts;
  if (fraction.length > decimals)
    return decimals === 0 ? 'Write a whole number' : `At most ${decimals} decimals`;
  return Number(`${whole || '0'}.${fraction || '0'}`);
}
