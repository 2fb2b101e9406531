import type { RatesFile } from '../domain/exchange-rate.ts';
import { parseRates, RatesFileError } from './parse-rates.ts';
import { isZip, unzipSingle } from './unzip.ts';

/** Far more than the European Central Bank's file of all days since 1999, which has about three. */
export const MAX_RATES_BYTES = 16 * 1024 * 1024;

/** The day that an instant (epoch ms) belongs to, in UTC: `2026-11-20`. */
export function utcDay(epochMs: number): string {
  return new Date(epochMs).toISOString().slice(0, 10);
}

/** Reads a file of rates as it was downloaded: CSV, or a ZIP archive with one CSV in it. Throws `RatesFileError`. */
export function readRatesFile(bytes: Buffer, now: number): RatesFile {
  if (bytes.length > MAX_RATES_BYTES) throw new RatesFileError(`it has more than ${MAX_RATES_BYTES} bytes.`);
  const csv = isZip(bytes) ? unzipSingle(bytes, MAX_RATES_BYTES) : bytes;
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(csv);
  } catch (error) {
    throw new RatesFileError('it is no text in UTF-8.', { cause: error });
  }
  return parseRates(text, utcDay(now));
}
