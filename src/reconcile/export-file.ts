import { createReadStream } from 'node:fs';
import { open, stat } from 'node:fs/promises';
import { Transform } from 'node:stream';
import type { Readable } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { parse } from 'csv-parse';
import { delimiterOf } from '../domain/csv-delimiter.ts';
import { PROVIDER_NAMES, providers } from '../providers/index.ts';
import type { ProviderName } from '../providers/index.ts';
import type { ExportContext, ExportFormat } from '../providers/shared/export.ts';
import { ExportFileError, fileError } from './export-file-error.ts';
import { jsonRows } from './json-rows.ts';
import type { JsonObject } from './json-rows.ts';
import type { NumberedRow } from './numbered-row.ts';

/** An export, with its rows as they are read. */
export interface OpenedExport {
  readonly format: ExportFormat;
  readonly context: ExportContext;
  readonly rows: AsyncIterable<NumberedRow>;
}

/** Bytes at the start of the file that show its form. */
const HEAD_BYTES = 64 * 1024;

/** More than any row of an export. */
const MAX_RECORD_BYTES = 1_000_000;

const GZIP = Buffer.from([0x1f, 0x8b]);
const ZIP = Buffer.from('PK');
const UTF_16 = [Buffer.from([0xff, 0xfe]), Buffer.from([0xfe, 0xff])];

async function readHead(path: string): Promise<Buffer> {
  const file = await open(path).catch((error: NodeJS.ErrnoException) => {
    throw new ExportFileError(`${path} can't be read (${error.code ?? error.message}).`);
  });
  try {
    const { bytesRead, buffer } = await file.read(Buffer.alloc(4), 0, 4, 0);
    return buffer.subarray(0, bytesRead);
  } catch (error) {
    throw new ExportFileError(`${path} can't be read (${(error as NodeJS.ErrnoException).code}).`);
  } finally {
    await file.close();
  }
}

/** Passes UTF-8 on as text, without a byte order mark. */
function decodeUtf8(path: string): Transform {
  const decoder = new TextDecoder('utf-8', { fatal: true });
  const decode = (chunk?: Buffer) => {
    try {
      return chunk === undefined ? decoder.decode() : decoder.decode(chunk, { stream: true });
    } catch (error) {
      throw new ExportFileError(`${path} is not UTF-8 text. Export it again as UTF-8.`, { cause: error });
    }
  };
  const attempt = (chunk: Buffer | undefined, done: (error: Error | null, text?: string) => void): void => {
    try {
      done(null, decode(chunk));
    } catch (error) {
      done(error as Error);
    }
  };
  return new Transform({
    readableObjectMode: false,
    encoding: 'utf8',
    transform: (chunk: Buffer, _, done) => attempt(chunk, done),
    flush: (done) => attempt(undefined, done),
  });
}

/** Pipes streams together. An error of one ends the last with it. */
function chain(first: Readable, ...others: readonly Transform[]): Readable {
  return others.reduce<Readable>((source, next) => {
    source.once('error', (error) => next.destroy(error));
    return source.pipe(next);
  }, first);
}

/** Opens a file as text, unpacked if it is gzip. */
async function openText(path: string): Promise<Readable> {
  const head = await readHead(path);
  if (head.length === 0) throw new ExportFileError(`${path} is empty.`);
  if (head.subarray(0, 2).equals(ZIP)) {
    throw new ExportFileError(`${path} is a ZIP archive or a spreadsheet. Unpack it, or save it as CSV.`);
  }
  if (UTF_16.some((mark) => head.subarray(0, 2).equals(mark))) {
    throw new ExportFileError(`${path} is UTF-16 text. Export it again as UTF-8.`);
  }
  const bytes = createReadStream(path, { highWaterMark: 256 * 1024 });
  return head.subarray(0, 2).equals(GZIP)
    ? chain(bytes, createGunzip(), decodeUtf8(path))
    : chain(bytes, decodeUtf8(path));
}

/** Reads the start of a text without losing it. */
async function peek(text: AsyncIterator<string>): Promise<string> {
  let head = '';
  while (head.length < HEAD_BYTES) {
    const { value, done } = await text.next();
    if (done === true) break;
    head += value;
  }
  return head;
}

async function* after(head: string, text: AsyncIterator<string>): AsyncGenerator<string> {
  yield head;
  for (let next = await text.next(); next.done !== true; next = await text.next()) yield next.value;
}

/** Opens an export of a provider and finds its form. Throws `ExportFileError`. */
export async function openExport(path: string, provider: ProviderName): Promise<OpenedExport> {
  const stream = await openText(path);
  const text = stream[Symbol.asyncIterator]() as AsyncIterator<string>;
  const head = await readable(path, peek(text));
  const first = head.trimStart()[0];
  if (first === undefined) throw new ExportFileError(`${path} is empty.`);
  const whole = after(head, text);
  const opened =
    first === '{' || first === '['
      ? await openJson(path, provider, whole)
      : await openCsv(path, provider, head, whole);
  return { ...opened, context: { exportedAt: await writtenAt(path) } };
}

/** Returns when a file was written, epoch ms. A time of the future is now. */
async function writtenAt(path: string): Promise<number> {
  const { mtimeMs } = await readable(path, stat(path));
  return Math.floor(Math.min(mtimeMs, Date.now()));
}

/** Throws an error of the file as an `ExportFileError`. */
async function readable<T>(path: string, reading: Promise<T>): Promise<T> {
  try {
    return await reading;
  } catch (error) {
    throw fileError(path, error);
  }
}

const formatsOf = (provider: ProviderName, form: ExportFormat['form']) =>
  providers[provider].exports.formats.filter((format) => format.form === form);

/** Returns the provider whose export has these columns, for a hint. */
function looksLike(columns: ReadonlySet<string>, but: ProviderName): ProviderName | undefined {
  return PROVIDER_NAMES.find(
    (name) =>
      name !== but &&
      formatsOf(name, 'csv').some(({ required }) => required.every((column) => columns.has(column))),
  );
}

/** Returns the CSV format that has all its columns; throws an error that names what the best match lacks. */
function csvFormat(path: string, provider: ProviderName, header: readonly string[]): ExportFormat {
  const columns = new Set(header);
  const formats = formatsOf(provider, 'csv');
  const lacks = ({ required }: ExportFormat) => required.filter((column) => !columns.has(column));
  const found = formats.find((format) => lacks(format).length === 0);
  if (found !== undefined) return found;
  const other = looksLike(columns, provider);
  const hint =
    other === undefined
      ? ''
      : ` It looks like an export of ${providers[other].title}: use --provider ${other}.`;
  const [best] = formats.toSorted((a, b) => lacks(a).length - lacks(b).length);
  const { title } = providers[provider];
  if (best === undefined) {
    const forms = formatsOf(provider, 'json').map((format) => format.title);
    throw new ExportFileError(
      `${path} is CSV, and of ${title} only JSON can be compared: ${forms.join(' or ')}.${hint} docs/reconcile.md says how to get it.`,
    );
  }
  throw new ExportFileError(
    `${path} is not the export "${best.title}" of ${title}: it lacks the columns ${lacks(best).join(', ')}.${hint} docs/reconcile.md says how to export it.`,
  );
}

async function openCsv(
  path: string,
  provider: ProviderName,
  head: string,
  text: AsyncGenerator<string>,
): Promise<Omit<OpenedExport, 'context'>> {
  let format: ExportFormat | undefined;
  const parser = parse({
    delimiter: delimiterOf(head),
    info: true,
    // Quotes inside a cell without quotes around it are text.
    relax_quotes: true,
    skip_empty_lines: true,
    // A quote that is never closed makes the rest of the file one record.
    max_record_size: MAX_RECORD_BYTES,
    trim: false,
    columns: (header: readonly string[]) => {
      const names = header.map((name) => name.trim());
      format = csvFormat(path, provider, names);
      const read = new Set([...format.required, ...format.optional]);
      // Other columns are not kept. Of two columns with one name the first counts.
      return names.map((name, index) => (read.has(name) && names.indexOf(name) === index ? name : false));
    },
  });
  const feeding = (async () => {
    try {
      for await (const part of text) {
        if (parser.destroyed) return;
        if (!parser.write(part)) await drained(parser);
      }
      parser.end();
    } catch (error) {
      parser.destroy(error as Error);
    }
  })();
  const rows = numbered(path, parser, feeding);
  // The header is read with the first row.
  const first = await rows.next();
  if (format === undefined) throw new ExportFileError(`${path} has no header line.`);
  return { format, rows: withFirst(first, rows) };
}

async function drained(parser: ReturnType<typeof parse>): Promise<void> {
  if (parser.destroyed) return;
  await new Promise<void>((resolve) => {
    const onEnd = () => {
      parser.off('drain', onEnd).off('close', onEnd);
      resolve();
    };
    parser.once('drain', onEnd).once('close', onEnd);
  });
}

async function* numbered(
  path: string,
  parser: ReturnType<typeof parse>,
  feeding: Promise<void>,
): AsyncGenerator<NumberedRow> {
  try {
    for await (const { record, info } of parser as AsyncIterable<{
      record: Record<string, string>;
      info: { lines: number };
    }>) {
      yield { line: info.lines, values: record };
    }
  } catch (error) {
    throw fileError(path, error);
  } finally {
    parser.destroy();
    await feeding;
  }
}

async function* withFirst<T>(first: IteratorResult<T>, rest: AsyncGenerator<T>): AsyncGenerator<T> {
  try {
    if (first.done !== true) yield first.value;
    yield* rest;
  } finally {
    await rest.return(undefined);
  }
}

function acceptsObject(format: ExportFormat, values: JsonObject): boolean {
  return format.required.every((field) => field in values) && format.accepts?.(values) !== false;
}

async function openJson(
  path: string,
  provider: ProviderName,
  text: AsyncGenerator<string>,
): Promise<Omit<OpenedExport, 'context'>> {
  const rows = jsonRows(path, text);
  const first = await rows.next();
  const { title } = providers[provider];
  if (first.done === true) throw new ExportFileError(`${path} has no objects.`);
  const formats = formatsOf(provider, 'json');
  const find = (name: ProviderName) =>
    formatsOf(name, 'json').find((one) => acceptsObject(one, first.value.values));
  const format = find(provider);
  if (format === undefined) {
    const other = PROVIDER_NAMES.find((name) => name !== provider && find(name) !== undefined);
    const hint =
      other === undefined
        ? ''
        : ` It looks like a list of ${providers[other].title}: use --provider ${other}.`;
    const known = formats.map((one) => one.title).join(', ');
    throw new ExportFileError(
      known === ''
        ? `${path} is JSON, and of ${title} only CSV can be compared.${hint} docs/reconcile.md says how to export it.`
        : `${path} is none of the JSON lists of ${title} that can be compared (${known}).${hint} docs/reconcile.md says how to get one.`,
    );
  }
  return { format, rows: sameFormat(path, format, withFirst(first, rows)) };
}

async function* sameFormat(
  path: string,
  format: ExportFormat,
  rows: AsyncGenerator<NumberedRow>,
): AsyncGenerator<NumberedRow> {
  for await (const row of rows) {
    if (!acceptsObject(format, row.values)) {
      throw new ExportFileError(
        `Object ${row.line} of ${path} does not belong to the ${format.title}. Compare each kind of list in a file of its own.`,
      );
    }
    yield row;
  }
}
