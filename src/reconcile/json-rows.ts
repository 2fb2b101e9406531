import { ExportFileError, fileError } from './export-file-error.ts';
import type { NumberedRow } from './numbered-row.ts';

/** A list that is one JSON value is parsed at once. Longer lists must have one object on each line. */
const MAX_JSON_BYTES = 64 * 1024 * 1024;
const MAX_JSON_LINE_BYTES = 16 * 1024 * 1024;

/** An object of a JSON list. */
export type JsonObject = Readonly<Record<string, unknown>>;

function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Returns the objects of a JSON value: a list of an API (`data`), an array, or one object. */
function objectsOf(value: unknown): readonly JsonObject[] {
  if (Array.isArray(value)) return value.flatMap((item) => objectsOf(item));
  if (!isObject(value)) return [];
  return Array.isArray(value['data']) ? objectsOf(value['data']) : [value];
}

/** Whether a value is a page of an API that is not the last one. Of several pages in an array, the last counts. */
function hasMorePages(value: unknown): boolean {
  if (Array.isArray(value)) return hasMorePages(value.at(-1));
  if (!isObject(value) || !Array.isArray(value['data'])) return false;
  const { has_more: hasMore, meta } = value;
  const pagination = isObject(meta) ? meta['pagination'] : undefined;
  return hasMore === true || (isObject(pagination) && pagination['has_more'] === true);
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

/** Splits a text into lines, for one JSON value on each. Ends early where the first line is no JSON value of its own. */
async function* jsonValues(path: string, text: AsyncGenerator<string>): AsyncGenerator {
  let rest = '';
  let number = 0;
  let isFirst = true;
  let isWhole = false;
  for await (const part of text) {
    rest += part;
    if (rest.length > (isWhole ? MAX_JSON_BYTES : MAX_JSON_LINE_BYTES)) {
      throw new ExportFileError(
        `${path} is too long for a single JSON value. Write one object on each line, for example with: jq -c '.data[]'`,
      );
    }
    if (isWhole) continue;
    const lines = rest.split('\n');
    rest = lines.pop() ?? '';
    for (const [index, line] of lines.entries()) {
      number += 1;
      if (line.trim() === '') continue;
      const value = parseJson(line);
      if (value !== undefined) {
        yield value;
        isFirst = false;
      } else if (isFirst) {
        // A value over several lines, as people print them.
        isWhole = true;
        rest = [...lines.slice(index), rest].join('\n');
        break;
      } else {
        throw new ExportFileError(`${path} is not valid JSON at line ${number}. Download it again.`);
      }
    }
  }
  if (rest.trim() === '') return;
  const value = parseJson(rest);
  if (value === undefined) {
    throw new ExportFileError(
      isWhole
        ? `${path} is not valid JSON, or has several values over several lines. Download it again, and write one object on each line, for example with: jq -c '.data[]'`
        : `${path} is not valid JSON. Download it again.`,
    );
  }
  yield value;
}

/** Reads the objects of a JSON text as rows. Throws `ExportFileError` after a page of an API that is not the last one. */
export async function* jsonRows(path: string, text: AsyncGenerator<string>): AsyncGenerator<NumberedRow> {
  let line = 0;
  let hasMore = false;
  try {
    for await (const value of jsonValues(path, text)) {
      hasMore = hasMorePages(value);
      for (const values of objectsOf(value)) yield { line: (line += 1), values };
    }
    if (hasMore) {
      throw new ExportFileError(
        `${path} ends with a page that is not the last one of its list (has_more). What the other pages have would be missing: download all of them, and write one object on each line, for example with: jq -c '.data[]'`,
      );
    }
  } catch (error) {
    throw fileError(path, error);
  }
}
