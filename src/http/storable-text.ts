import type { FieldError } from './errors.ts';

/** A lone surrogate, which is not valid Unicode. */
const LONE_SURROGATE = /\p{Surrogate}/u;

/** The escapes of JSON and of addresses that stand for NUL or for half of a surrogate pair. */
const SUSPICIOUS_ESCAPE = /\\u0000|\\u[dD][89a-fA-F]|%00/;

/** Longer paths are cut off, so that an error does not grow with what was sent. */
const PATH_LENGTH = 500;
const PATH_NAMES = 50;
const MAX_ERRORS = 20;

function isStorable(text: string): boolean {
  return !text.includes('\0') && !LONE_SURROGATE.test(text);
}

/** A value in a JSON value, and the way to it. */
interface Place {
  readonly value: unknown;
  readonly name: string;
  readonly parent: Place | null;
}

function pathOf(place: Place): string {
  const names: string[] = [];
  for (let at = place; at.parent !== null && names.length < PATH_NAMES; at = at.parent) names.push(at.name);
  return names.toReversed().join('.').slice(0, PATH_LENGTH);
}

/**
 * Returns an error for each string and name in a parsed value that Postgres can't store: those with NUL or a lone
 * surrogate. `text` is what the value was parsed from. Almost every text shows that nothing has to be searched. The
 * search is not recursive, because the nesting of a body is unlimited.
 */
export function findUnstorableText(value: unknown, text: string): FieldError[] {
  if (!SUSPICIOUS_ESCAPE.test(text)) return [];
  const errors: FieldError[] = [];
  const waiting: Place[] = [{ value, name: '', parent: null }];
  for (let place = waiting.pop(); place !== undefined && errors.length < MAX_ERRORS; place = waiting.pop()) {
    if (typeof place.value === 'string') {
      if (!isStorable(place.value))
        errors.push({ path: pathOf(place), message: 'Must not contain NUL or a lone surrogate.' });
    } else if (typeof place.value === 'object' && place.value !== null) {
      for (const [name, child] of Object.entries(place.value)) {
        if (isStorable(name)) waiting.push({ value: child, name, parent: place });
        else
          errors.push({
            path: pathOf(place),
            message: 'A field name must not contain NUL or a lone surrogate.',
          });
      }
    }
  }
  return errors;
}
