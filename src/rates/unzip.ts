import { crc32, inflateRawSync } from 'node:zlib';
import { RatesFileError } from './parse-rates.ts';

/** Signatures and sizes of the parts of a ZIP archive (PKWARE's APPNOTE, 4.3). */
const LOCAL_HEADER = 0x04034b50;
const CENTRAL_ENTRY = 0x02014b50;
const END_OF_DIRECTORY = 0x06054b50;
const LOCAL_HEADER_BYTES = 30;
const END_BYTES = 22;
const MAX_COMMENT_BYTES = 65_535;

const STORED = 0;
const DEFLATED = 8;
const ENCRYPTED = 1;

/** Returns whether the bytes begin like a ZIP archive. */
export function isZip(bytes: Buffer): boolean {
  return bytes.length >= END_BYTES && bytes.readUInt32LE(0) === LOCAL_HEADER;
}

function findEnd(bytes: Buffer): number {
  const first = Math.max(0, bytes.length - END_BYTES - MAX_COMMENT_BYTES);
  for (let at = bytes.length - END_BYTES; at >= first; at -= 1) {
    if (bytes.readUInt32LE(at) === END_OF_DIRECTORY) return at;
  }
  throw new RatesFileError('the ZIP archive is incomplete.');
}

/**
 * Returns the only file in a ZIP archive, stored or deflated, of at most `maxBytes`. The European Central Bank offers its
 * CSV files this way. Sizes are read from the directory at the end, since a streamed archive has none at the start. Throws
 * `RatesFileError`.
 */
export function unzipSingle(bytes: Buffer, maxBytes: number): Buffer {
  try {
    const end = findEnd(bytes);
    if (bytes.readUInt16LE(end + 10) !== 1) {
      throw new RatesFileError('the ZIP archive must hold exactly one file.');
    }
    const entry = bytes.readUInt32LE(end + 16);
    const local = bytes.readUInt32LE(entry + 42);
    if (bytes.readUInt32LE(entry) !== CENTRAL_ENTRY || bytes.readUInt32LE(local) !== LOCAL_HEADER) {
      throw new RatesFileError('the ZIP archive is damaged.');
    }
    const method = bytes.readUInt16LE(entry + 10);
    if ((bytes.readUInt16LE(entry + 8) & ENCRYPTED) !== 0 || ![STORED, DEFLATED].includes(method)) {
      throw new RatesFileError('the ZIP archive is encrypted or uses an unsupported compression method.');
    }
    const from = local + LOCAL_HEADER_BYTES + bytes.readUInt16LE(local + 26) + bytes.readUInt16LE(local + 28);
    const packed = bytes.subarray(from, from + bytes.readUInt32LE(entry + 20));
    if (bytes.readUInt32LE(entry + 24) > maxBytes) throw tooLarge(maxBytes);
    const file = method === STORED ? packed : inflateRawSync(packed, { maxOutputLength: maxBytes });
    if (crc32(file) !== bytes.readUInt32LE(entry + 16)) {
      throw new RatesFileError('the ZIP archive is damaged: its checksum does not match.');
    }
    return file;
  } catch (error) {
    if (error instanceof RatesFileError) throw error;
    throw new RatesFileError('the ZIP archive is damaged.', { cause: error });
  }
}

function tooLarge(maxBytes: number): RatesFileError {
  return new RatesFileError(`the file in the ZIP archive has more than ${maxBytes} bytes.`);
}
