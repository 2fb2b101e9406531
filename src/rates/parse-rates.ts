import type { RatesFile, ReferenceRate } from '../domain/exchange-rate.ts';

/** A file that can't be used. The message is one sentence, with the number of the line where one is at fault. */
export class RatesFileError extends Error {
  override readonly name = 'RatesFileError';
}

const OWN_HEADER = 'date,currency,usd_rate';
const CURRENCY = /^[A-Z]{3}$/;
const RATE = /^\d{1,12}(\.\d{1,12})?$/;
const ISO_DAY = /^\d{4}-\d{2}-\d{2}$/;
const WRITTEN_DAY = /^(\d{1,2}) ([A-Z][a-z]+) (\d{4})$/;
const MONTHS = 'January February March April May June July August September October November December'.split(
  ' ',
);
const FIRST_DAY = '1970-01-01';

/** What the files of the European Central Bank have where there is no rate. */
const NO_RATE = 'N/A';

interface Line {
  readonly number: number;
  readonly cells: readonly string[];
}

function fault({ number }: Line, reason: string): RatesFileError {
  return new RatesFileError(`line ${number}: ${reason}`);
}

/** The cells of each line. Nothing in these formats is quoted; the bank ends its lines with a comma. */
function linesOf(text: string): Line[] {
  const lines = text.replace(/^\uFEFF/, '').split(/\r?\n/);
  while (lines.at(-1)?.trim() === '') lines.pop();
  return lines.map((line, index) => {
    const cells = line.split(',').map((cell) => cell.trim());
    if (cells.length > 1 && cells.at(-1) === '') cells.pop();
    return { number: index + 1, cells };
  });
}

/** `2026-11-20` from that or from `20 November 2026`; null for a day that no calendar has. */
function isoDay(text: string): string | null {
  const [, dayOfMonth = '', month = '', year = ''] = WRITTEN_DAY.exec(text) ?? [];
  const monthNumber = String(MONTHS.indexOf(month) + 1).padStart(2, '0');
  const iso = ISO_DAY.test(text) ? text : `${year}-${monthNumber}-${dayOfMonth.padStart(2, '0')}`;
  const at = new Date(`${iso}T00:00:00Z`);
  return Number.isNaN(at.getTime()) || at.toISOString().slice(0, 10) !== iso || iso < FIRST_DAY ? null : iso;
}

function dayOf(line: Line, today: string): string {
  const day = isoDay(line.cells[0] ?? '');
  if (day === null) throw fault(line, 'the date must be like 2026-11-20 or 20 November 2026.');
  if (day > today) throw fault(line, `${day} is in the future, today is ${today} (UTC).`);
  return day;
}

function rateIn(line: Line, text: string, currency: string): string {
  if (!RATE.test(text) || Number(text) === 0) {
    throw fault(
      line,
      `the rate of ${currency} must be a decimal above zero, at most 12 digits on each side.`,
    );
  }
  return text;
}

/** The bank's files: a column per currency, in units for one euro. `USD` is what the others are measured by. */
function parseEcb([header, ...lines]: readonly [Line, ...Line[]], today: string): ReferenceRate[] {
  const currencies = header.cells.slice(1);
  const wrong = currencies.find(
    (code, index) => !CURRENCY.test(code) || code === 'EUR' || currencies.indexOf(code) !== index,
  );
  if (wrong !== undefined) throw fault(header, `"${wrong.slice(0, 20)}" is no column of this format.`);
  const usdAt = currencies.indexOf('USD');
  if (usdAt === -1) throw fault(header, 'there is no column USD.');
  const days = new Set<string>();
  const rates: ReferenceRate[] = [];
  for (const line of lines) {
    const day = dayOf(line, today);
    const cells = line.cells.slice(1);
    if (cells.length !== currencies.length) {
      throw fault(line, `${cells.length} rates stand under ${currencies.length} currencies.`);
    }
    if (days.has(day)) throw fault(line, `${day} stands twice.`);
    days.add(day);
    const worthUsd = rateIn(line, cells[usdAt] ?? '', 'USD');
    rates.push({ currency: 'EUR', day, units: '1', worthUsd });
    for (const [index, currency] of currencies.entries()) {
      const cell = cells[index] ?? '';
      if (index === usdAt || cell === NO_RATE) continue;
      rates.push({ currency, day, units: rateIn(line, cell, currency), worthUsd });
    }
  }
  return rates;
}

/** The operator's own file: dollars for one unit, one currency and day a line. */
function parseOwn(lines: readonly Line[], today: string): ReferenceRate[] {
  const seen = new Set<string>();
  return lines.map((line) => {
    const [, currency = '', usdRate = ''] = line.cells;
    if (line.cells.length !== 3) throw fault(line, `it must have three cells: ${OWN_HEADER}.`);
    const day = dayOf(line, today);
    if (!CURRENCY.test(currency)) throw fault(line, 'the currency must be three capital letters.');
    if (currency === 'USD') throw fault(line, 'USD needs no rate.');
    if (seen.has(currency + day)) throw fault(line, `${currency} of ${day} stands twice.`);
    seen.add(currency + day);
    return { currency, day, units: '1', worthUsd: rateIn(line, usdRate, currency) };
  });
}

/**
 * Reads the European Central Bank's daily or historical CSV file, or the operator's `date,currency,usd_rate`. `today` is
 * a day of UTC: a later one is refused. Throws `RatesFileError`, so a file counts as a whole or not at all.
 */
export function parseRates(text: string, today: string): RatesFile {
  if (/^\uFEFF?\s*</.test(text)) throw new RatesFileError('it is HTML or XML, not CSV.');
  const [header, ...lines] = linesOf(text);
  if (header === undefined) throw new RatesFileError('it is empty.');
  const isOwn = header.cells.join(',') === OWN_HEADER;
  if (!isOwn && (header.cells[0] !== 'Date' || header.cells.length < 2)) {
    throw fault(
      header,
      `the header must be ${OWN_HEADER}, or Date,USD,… as the European Central Bank has it.`,
    );
  }
  if (lines.length === 0) throw new RatesFileError('it has a header and no rates.');
  return isOwn
    ? { source: 'operator', rates: parseOwn(lines, today) }
    : { source: 'ecb', rates: parseEcb([header, ...lines], today) };
}
