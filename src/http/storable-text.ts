import type { FieldError } from './errors.ts';

/** NUL, which Postgres can't store, and halves of a character, which are no text at all. */
const HALF_CHARACTER = /\p{Surrogate}/u;

function isStorable(text: string): boolean {
  return !text.includes('\0') && !HALF_CHARACTER.test(text);
}

/**
 * The strings and names anywhere in a parsed JSON value that can't be stored. Goes without recursion: nothing limits how
 * deep a caller nests.
 */
export function findUnstorableText(value: unknown): FieldError[] {
  const errors: FieldError[] = [];
  const waiting: { readonly path: string; readonly value: unknown }[] = [{ path: '', value }];
  for (let item = waiting.pop(); item !== undefined && errors.length < 20; item = waiting.pop()) {
    const { path } = item;
    if (typeof item.value === 'string') {
      if (!isStorable(item.value))
        errors.push({ path, message: 'Contains a character that is not allowed.' });
    } else if (typeof item.value === 'object' && item.value !== null) {
      for (const [name, child] of Object.entries(item.value)) {
        if (!isStorable(name))
          errors.push({ path, message: 'A name contains a character that is not allowed.' });
        // Names as long as the nesting is deep would add up to the square of the body.
        else
          waiting.push({
            path: path.length > 500 ? path : path === '' ? name : `${path}.${name}`,
            value: child,
          });
      }
    }
  }
  return errors;
}
