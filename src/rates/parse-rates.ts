import type { RatesFile, ReferenceRate } from '../domain/exchange-rate.ts';

/** A rates file that cannot be used. The message is one sentence, with the number of the wrong line if there is one. */
export class RatesFileError extends Error {
  override readonly name = 'RatesFileError';
}

const OPERATOR_HEADER = 'date,currency,usd_rate';
/**
 * One unit of no currency in which stores charge is worth more, except Chile's unit of account: a rate above it is the wrong way round, and
 * what it converts stays converted.
 */
const MOST_DOLLARS = 10;
const WORTH_MORE = 'CLF';
const CURRENCY = /^[A-Z]{3}$/;
const RATE = /^\d{1,12}(\.\d{1,12})?$/;
const ISO_DAY = /^\d{4}-\d{2}-\d{2}$/;
const LONG_DAY = /^(\d{1,2}) ([A-Z][a-z]+) (\d{4})$/;
const MONTHS = 'January February March April May June July August September October November December'.split(
  ' ',
);
const FIRST_DAY = '1970-01-01';

/** The European Central Bank's mark for a missing rate. */
const NO_RATE = 'N/A';

interface Line {
  readonly number: number;
  readonly cells: readonly string[];
}

function errorAt({ number }: Line, reason: string): RatesFileError {
  return new RatesFileError(`line ${number}: ${reason}`);
}

/** Returns the cells of each line. These formats have no quoting. The bank's lines end with a comma. */
function linesOf(text: string): Line[] {
  const lines = text.replace(/^\uFEFF/, '').split(/\r?\n/);
  while (lines.at(-1)?.trim() === '') lines.pop();
  return lines.map((line, index) => {
    const cells = line.split(',').map((cell) => cell.trim());
    if (cells.length > 1 && cells.at(-1) === '') cells.pop();
    return { number: index + 1, cells };
  });
}

/** Returns `2026-11-20` for that text or for `20 November 2026`; null for any other text or a day that does not exist. */
function isoDay(text: string): string | null {
  const [, dayOfMonth = '', month = '', year = ''] = LONG_DAY.exec(text) ?? [];
  const monthNumber = String(MONTHS.indexOf(month) + 1).padStart(2, '0');
  const iso = ISO_DAY.test(text) ? text : `${year}-${monthNumber}-${dayOfMonth.padStart(2, '0')}`;
  const at = new Date(`${iso}T00:00:00Z`);
  return Number.isNaN(at.getTime()) || at.toISOString().slice(0, 10) !== iso || iso < FIRST_DAY ? null : iso;
}

function dayOf(line: Line, today: string): string {
  const day = isoDay(line.cells[0] ?? '');
  if (day === null) throw errorAt(line, 'the date must be like 2026-11-20 or 20 November 2026.');
  if (day > today) throw errorAt(line, `${day} is in the future, today is ${today} (UTC).`);
  return day;
}

function rateIn(line: Line, text: string, currency: string): string {
  if (!RATE.test(text) || Number(text) === 0) {
    throw errorAt(
      line,
      `the rate of ${currency} must be a decimal above zero, at most 12 digits on each side.`,
    );
  }
  return text;
}

/** Parses the bank's file: one column per currency, in units per euro. The column `USD` converts the others to dollars. */
function parseEcb([header, ...lines]: readonly [Line, ...Line[]], today: string): ReferenceRate[] {
  const currencies = header.cells.slice(1);
  const wrong = currencies.find(
    (code, index) => !CURRENCY.test(code) || code === 'EUR' || currencies.indexOf(code) !== index,
  );
  if (wrong !== undefined) throw errorAt(header, `"${wrong.slice(0, 20)}" is not a valid column.`);
  const usdAt = currencies.indexOf('USD');
  if (usdAt === -1) throw errorAt(header, 'the column USD is missing.');
  const days = new Set<string>();
  const rates: ReferenceRate[] = [];
  for (const line of lines) {
    const day = dayOf(line, today);
    const cells = line.cells.slice(1);
    if (cells.length !== currencies.length) {
      throw errorAt(line, `it must have ${currencies.length} rates, but has ${cells.length}.`);
    }
    if (days.has(day)) throw errorAt(line, `${day} appears twice.`);
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

/** Parses the operator's file: one line per currency and day, with the US dollars for one unit. */
function parseOperatorFile(lines: readonly Line[], today: string): ReferenceRate[] {
  const seen = new Set<string>();
  return lines.map((line) => {
    const [, currency = '', usdRate = ''] = line.cells;
    if (line.cells.length !== 3) throw errorAt(line, `it must have three cells: ${OPERATOR_HEADER}.`);
    const day = dayOf(line, today);
    if (!CURRENCY.test(currency)) throw errorAt(line, 'the currency must be three capital letters.');
    if (currency === 'USD') throw errorAt(line, 'USD needs no rate.');
    if (seen.has(currency + day)) throw errorAt(line, `${currency} appears twice for ${day}.`);
    seen.add(currency + day);
    const worthUsd = rateIn(line, usdRate, currency);
    if (Number(worthUsd) > MOST_DOLLARS && currency !== WORTH_MORE) {
      throw errorAt(
        line,
        `one ${currency} is not worth ${worthUsd} dollars. usd_rate is the dollars for one unit, not the units for a dollar.`,
      );
    }
    return { currency, day, units: '1', worthUsd };
  });
}

/**
 * Parses the European Central Bank's daily or historical CSV file, or the operator's `date,currency,usd_rate`. `today` is
 * the current UTC day: a later day is an error. Throws `RatesFileError`, so a file counts as a whole or not at all.
 */
export function parseRates(text: string, today: string): RatesFile {
  if (/^\uFEFF?\s*</.test(text)) throw new RatesFileError('it is HTML or XML, not CSV.');
  const [header, ...lines] = linesOf(text);
  if (header === undefined) throw new RatesFileError('it is empty.');
  const isOperatorFile = header.cells.join(',') === OPERATOR_HEADER;
  if (!isOperatorFile && (header.cells[0] !== 'Date' || header.cells.length < 2)) {
    throw errorAt(
      header,
      `the header must be ${OPERATOR_HEADER}, or Date,USD,… as in the European Central Bank's files.`,
    );
  }
  if (lines.length === 0) throw new RatesFileError('it has a header but no rates.');
  return isOperatorFile
    ? { source: 'operator', rates: parseOperatorFile(lines, today) }
    : { source: 'ecb', rates: parseEcb([header, ...lines], today) };
}
