import { parse } from 'csv-parse/browser/esm/sync';
import { api, Problem, read } from '../api/client.ts';
import type { Schemas } from '../api/client.ts';
import { newIdempotencyKey } from '../api/idempotency.ts';

/** A line that was pasted, as a creator to add, or with what is wrong with it. */
export interface PastedRow {
  readonly line: number;
  readonly creator: Schemas['NewAffiliate'] | null;
  readonly error: string | null;
}

const PERCENT_IN_BPS = 100;
const NAMES = {
  name: 'name',
  email: 'email',
  'e-mail': 'email',
  externalid: 'externalId',
  'external id': 'externalId',
  commission: 'rate',
  rate: 'rate',
} as const;
type Field = (typeof NAMES)[keyof typeof NAMES];

/** The order of columns without a header line. */
const ORDER: readonly Field[] = ['name', 'email', 'externalId', 'rate'];

/** Reads lines of CSV, also as copied from a spreadsheet: name, e-mail address, external id, commission in percent. */
export function parsePasted(text: string): readonly PastedRow[] {
  const [first = ''] = text.split('\n');
  const delimiter = first.includes('\t') ? '\t' : first.includes(';') ? ';' : ',';
  const parsed: unknown = parse(text, {
    delimiter,
    bom: true,
    info: true,
    trim: true,
    relax_column_count: true,
    relax_quotes: true,
    skip_empty_lines: true,
  });
  // The types do not know that `info` wraps each record.
  const records = parsed as {
    readonly record: readonly string[];
    readonly info: { readonly lines: number };
  }[];
  const head = (records[0]?.record ?? []).map((name) => NAMES[name.toLowerCase() as keyof typeof NAMES]);
  const hasHead = head.includes('name');
  const order = hasHead ? head : ORDER;
  return records.slice(hasHead ? 1 : 0).map(({ record, info }) => {
    const cell = (field: Field) => record[order.indexOf(field)] ?? '';
    const rate = cell('rate').replace(/\s*%$/, '').replace(',', '.');
    const error =
      cell('name') === ''
        ? 'The name is missing.'
        : rate !== '' && !(Number(rate) >= 0 && Number(rate) <= 100)
          ? 'The commission must be a number of percent from 0 to 100.'
          : null;
    if (error !== null) return { line: info.lines, creator: null, error };
    return {
      line: info.lines,
      error: null,
      creator: {
        name: cell('name'),
        ...(cell('email') === '' ? {} : { email: cell('email') }),
        ...(cell('externalId') === '' ? {} : { externalId: cell('externalId') }),
        ...(rate === '' ? {} : { defaultCommissionRateBps: Math.round(Number(rate) * PERCENT_IN_BPS) }),
      },
    };
  });
}

export interface RowResult {
  readonly state: 'added' | 'exists' | 'failed';
  readonly text: string;
}

const CHUNK = 100;

/**
 * Adds creators, a hundred at a time, and reports each row by its line. The service refuses a call with an invalid row as a
 * whole: that row is reported, and the others are sent again. `keys` has the idempotency key of each call, so that the
 * same lines can be sent again after a lost answer.
 */
export async function addPasted(
  appId: string,
  rows: readonly PastedRow[],
  keys: Map<string, string>,
): Promise<ReadonlyMap<number, RowResult>> {
  const results = new Map<number, RowResult>();
  let waiting: PastedRow[] = [];
  for (const row of rows) {
    if (row.creator === null) results.set(row.line, { state: 'failed', text: row.error ?? '' });
    else waiting.push(row);
  }
  while (waiting.length > 0) {
    const chunk = waiting.slice(0, CHUNK);
    const body = { rows: chunk.flatMap(({ creator }) => (creator === null ? [] : [creator])) };
    const name = JSON.stringify(body);
    const key = keys.get(name) ?? newIdempotencyKey();
    keys.set(name, key);
    try {
      const { created, existing } = await read(
        api.POST('/apps/{appId}/affiliates/bulk', {
          params: { path: { appId }, header: { 'Idempotency-Key': key } },
          body,
        }),
      );
      const known = new Set(existing.map(({ index }) => index));
      const added = chunk.filter((_, index) => !known.has(index));
      for (const { index } of existing)
        results.set(chunk[index]?.line ?? 0, { state: 'exists', text: 'A creator has this external id.' });
      added.forEach(({ line }, index) =>
        results.set(line, { state: 'added', text: created[index]?.warnings?.[0]?.message ?? '' }),
      );
      waiting = waiting.slice(CHUNK);
    } catch (error) {
      const invalid = error instanceof Problem ? error.fields : [];
      const refused = new Map<number, string>();
      for (const { path, message } of invalid) {
        const [, index, field] = /^rows[.[](\d+)\]?\.?(.*)$/.exec(path) ?? [];
        if (index !== undefined) refused.set(Number(index), `${field ?? ''}: ${message}`);
      }
      if (refused.size === 0) throw error;
      for (const [index, text] of refused) results.set(chunk[index]?.line ?? 0, { state: 'failed', text });
      waiting = waiting.filter((_, index) => !refused.has(index));
    }
  }
  return results;
}
