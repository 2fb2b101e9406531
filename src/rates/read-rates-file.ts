import type { RatesFile } from '../domain/exchange-rate.ts';
import { parseRates, RatesFileError } from './parse-rates.ts';
import { isZip, unzipSingle } from './unzip.ts';

/** Far more than the European Central Bank's file of all days since 1999, which has about 3 MiB. */
export const MAX_RATES_BYTES = 16 * 1024 * 1024;

/** Returns the UTC day of an instant (epoch ms), such as `2026-11-20`. */
export function utcDay(epochMs: number): string {
  return new Date(epochMs).toISOString().slice(0, 10);
}

/** Reads a downloaded rates file: CSV, or a ZIP archive with one CSV file. `now` is epoch ms. Throws `RatesFileError`. */
export function readRatesFile(bytes: Buffer, now: number): RatesFile {
  if (bytes.length > MAX_RATES_BYTES) throw new RatesFileError(`it has more than ${MAX_RATES_BYTES} bytes.`);
  const csv = isZip(bytes) ? unzipSingle(bytes, MAX_RATES_BYTES) : bytes;
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(csv);
  } catch (error) {
    throw new RatesFileError('it is not UTF-8 text.', { cause: error });
  }
  return parseRates(text, utcDay(now));
}
