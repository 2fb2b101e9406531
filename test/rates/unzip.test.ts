import { readFileSync } from 'node:fs';
import { describe, expect, test } from '@jest/globals';
import { RatesFileError } from '../../src/rates/parse-rates.ts';
import { MAX_RATES_BYTES, readRatesFile } from '../../src/rates/read-rates-file.ts';
import { isZip, unzipSingle } from '../../src/rates/unzip.ts';

const NOW = Date.UTC(2026, 2, 2);
const fixture = (name: string) => readFileSync(new URL(`../fixtures/rates/${name}`, import.meta.url));
const csv = fixture('eurofxref.csv');
const archive = fixture('eurofxref.zip');

/** Returns the archive with the byte at an offset inverted. */
function damaged(at: number): Buffer {
  const copy = Buffer.from(archive);
  copy[at] = (copy[at] ?? 0) ^ 0xff;
  return copy;
}

describe('a ZIP archive with one file', () => {
  // Both were written by Python's zipfile. In the streamed one the sizes are after the data.
  test.each(['eurofxref.zip', 'eurofxref-streamed.zip'])(
    'the archive %s is unpacked to its bytes',
    (name) => {
      expect(isZip(fixture(name))).toBe(true);
      expect(unzipSingle(fixture(name), 1_000).equals(csv)).toBe(true);
    },
  );

  test('an archive with a comment at its end is unpacked', () => {
    const end = Buffer.from(archive);
    end.writeUInt16LE(5, end.length - 2);
    expect(unzipSingle(Buffer.concat([end, Buffer.from('hello')]), 1_000).equals(csv)).toBe(true);
  });

  test('an archive is refused when its file exceeds the size limit', () => {
    expect(() => unzipSingle(archive, csv.length)).not.toThrow();
    expect(() => unzipSingle(archive, csv.length - 1)).toThrow(/has more than \d+ bytes/);
    const lying = Buffer.from(archive);
    lying.writeUInt32LE(1, lying.indexOf(Buffer.from([0x50, 0x4b, 1, 2])) + 24);
    expect(() => unzipSingle(lying, csv.length - 1)).toThrow(RatesFileError);
  });

  test('an archive that is damaged or truncated anywhere is refused in one sentence', () => {
    const directory = archive.indexOf(Buffer.from([0x50, 0x4b, 1, 2]));
    for (let at = 0; at < archive.length; at += 1) {
      expect(() => unzipSingle(archive.subarray(0, at), 1_000)).toThrow(RatesFileError);
    }
    const data = 30 + 'eurofxref.csv'.length;
    for (let at = data; at < directory; at += 1) {
      expect(() => unzipSingle(damaged(at), 1_000)).toThrow(RatesFileError);
    }
  });

  test('an archive with two files or none is refused', () => {
    const two = Buffer.from(archive);
    two.writeUInt16LE(2, two.length - 22 + 10);
    expect(() => unzipSingle(two, 1_000)).toThrow('the ZIP archive must hold exactly one file.');
  });
});

describe('a rates file', () => {
  test('a rates file is read the same as ZIP and as CSV', () => {
    expect(readRatesFile(archive, NOW)).toEqual(readRatesFile(csv, NOW));
    expect(readRatesFile(csv, NOW).rates).toHaveLength(6);
  });

  test('a rates file that is not text, or too large, is refused', () => {
    expect(() => readRatesFile(Buffer.from([0xff, 0xfe, 0x44]), NOW)).toThrow('it is not UTF-8 text.');
    expect(() => readRatesFile(Buffer.alloc(MAX_RATES_BYTES + 1, ' '), NOW)).toThrow(/has more than/);
  });
});
