import { createHash } from 'node:crypto';
import { StringDecoder } from 'node:string_decoder';
import { setImmediate as turn, setTimeout as sleep } from 'node:timers/promises';
import { createGunzip } from 'node:zlib';
import type { PayoutId } from '../domain/ids.ts';
import { cellsOf, changedCsv } from './payout-csv.ts';
import type { CompressedCsv } from './payout-csv.ts';

/** How much of a CSV is unpacked at a time, bytes: about 450 lines, which take less than a millisecond. */
const PART_BYTES = 64 * 1024;
/** How long the reading of a part is followed by a rest, as a multiple of its time and of the CSVs that are read at the time. */
const REST = 2;
const MOST_REST_MS = 50;

/** How many CSVs this process reads at the time. */
let inProgress = 0;

/** Yields the lines of a text that arrives in parts, without their line ends. A line end inside quotes ends no line. */
class Lines {
  #rest = '';

  *add(text: string): Generator<string> {
    const all = this.#rest + text;
    let start = 0;
    let from = 0;
    for (;;) {
      const end = all.indexOf('\n', from);
      if (end < 0) break;
      const line = all.slice(start, end);
      from = end + 1;
      if (isInQuotes(line)) continue;
      start = from;
      yield line.endsWith('\r') ? line.slice(0, -1) : line;
    }
    this.#rest = all.slice(start);
  }
}

/** Whether a text ends inside quotes. */
function isInQuotes(text: string): boolean {
  let isOpen = false;
  for (let at = text.indexOf('"'); at >= 0; at = text.indexOf('"', at + 1)) isOpen = !isOpen;
  return isOpen;
}

/**
 * Yields the rows of a stored CSV in parts, each row with the cells of `columns` in their order; a column that the CSV lacks is
 * empty. The event loop has a turn after each part, and all CSVs that are read at the time together take at most half of the
 * main thread. Throws after the last row if the bytes do not have their hash: what was read before must not be used then.
 */
export async function* readRows(
  payoutId: PayoutId,
  { gzip, sha256 }: CompressedCsv,
  columns: readonly string[],
): AsyncGenerator<readonly (readonly string[])[]> {
  const hash = createHash('sha256');
  const decoder = new StringDecoder('utf8');
  const lines = new Lines();
  let indexes: readonly number[] | null = null;
  const rowsOf = (text: string) => {
    const rows: (readonly string[])[] = [];
    for (const line of lines.add(text)) {
      const cells = cellsOf(line);
      if (indexes === null) indexes = columns.map((name) => cells.indexOf(name));
      else rows.push(indexes.map((index) => cells[index] ?? ''));
    }
    return rows;
  };
  const unpacked = createGunzip({ chunkSize: PART_BYTES });
  unpacked.end(gzip);
  inProgress += 1;
  try {
    for await (const part of unpacked as AsyncIterable<Buffer>) {
      const began = performance.now();
      hash.update(part);
      yield rowsOf(decoder.write(part));
      const tookMs = performance.now() - began;
      await sleep(Math.min(MOST_REST_MS, REST * inProgress * tookMs));
      // On a machine that is busy, a rest may be over at once, and several in a row are no turn.
      await turn();
    }
  } catch (error) {
    if (unpacked.errored !== null) throw changedCsv(payoutId);
    throw error;
  } finally {
    inProgress -= 1;
    unpacked.destroy();
  }
  if (!hash.digest().equals(sha256)) throw changedCsv(payoutId);
}
