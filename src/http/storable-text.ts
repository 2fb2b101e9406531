import type { FieldError } from './errors.ts';

/** A lone surrogate, which is not valid Unicode. */
const LONE_SURROGATE = /\p{Surrogate}/u;

function isStorable(text: string): boolean {
  return !text.includes('\0') && !LONE_SURROGATE.test(text);
}

/**
 * Returns an error for each string and name in a parsed JSON value that Postgres can't store: those with NUL or a lone
 * surrogate. Not recursive, because the nesting of a body is unlimited.
 */
export function findUnstorableText(value: unknown): FieldError[] {
  const errors: FieldError[] = [];
  const waiting: { readonly path: string; readonly value: unknown }[] = [{ path: '', value }];
  for (let item = waiting.pop(); item !== undefined && errors.length < 20; item = waiting.pop()) {
    const { path } = item;
    if (typeof item.value === 'string') {
      if (!isStorable(item.value))
        errors.push({ path, message: 'Must not contain NUL or a lone surrogate.' });
    } else if (typeof item.value === 'object' && item.value !== null) {
      for (const [name, child] of Object.entries(item.value)) {
        if (!isStorable(name))
          errors.push({ path, message: 'A field name must not contain NUL or a lone surrogate.' });
        // Without a limit the paths of a deeply nested body would take memory quadratic in its size.
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
