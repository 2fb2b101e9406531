import type { IncomingMessage } from 'node:http';

/** The most bytes of a head, or of a line between chunks, that are one piece. */
const PIECE_BYTES = 4 * 1024;
/** The longest size of a chunk, in hexadecimal digits without leading zeros, that is read. The parser refuses it before. */
const SIZE_DIGITS = 20;

const [CR, LF] = [0x0d, 0x0a];
const BLANK_LINES = ['\n\r\n', '\n\n'].map((line) => Buffer.from(line));

/** Returns how many line ends `bytes` begins with, bytes. */
function lineEnds(bytes: Buffer): number {
  let size = 0;
  while (size < bytes.length && size < PIECE_BYTES && (bytes[size] === CR || bytes[size] === LF)) size += 1;
  return size;
}

/** Returns the end of a head or of trailers that have begun: after the first blank line, also one that an earlier piece began. */
function endOfLines(bytes: Buffer): number {
  if (bytes[0] === LF) return 1;
  if (bytes[0] === CR && bytes[1] === LF) return 2;
  const piece = bytes.subarray(0, PIECE_BYTES);
  const ends = BLANK_LINES.map((line) => ({ at: piece.indexOf(line), size: line.length }));
  return Math.min(piece.length, ...ends.flatMap(({ at, size }) => (at < 0 ? [] : [at + size])));
}

/**
 * Cuts what a connection receives into pieces that contain bytes of one request only, and of one chunk. The parser of Node gets
 * all bytes and decides alone what they mean: a wrong cut costs time at most.
 */
export class RequestFraming {
  #part: 'between' | 'lines' | 'length' | 'chunks' = 'between';
  /** How much of the body, or of a chunk and its line end, has not been cut, bytes. */
  #left = 0;
  /** The beginning of the line with the size of a chunk. */
  #sizeLine = '';

  /** Whether nothing of a request was cut since the last one ended. */
  get isBetween(): boolean {
    return this.#part === 'between';
  }

  /** Whether bytes of a body with a length were announced and not cut. */
  get isInLength(): boolean {
    return this.#part === 'length';
  }

  /** The parser has read the head of a request. */
  beginBody({ headers }: IncomingMessage): void {
    const isChunked = headers['transfer-encoding'] !== undefined;
    this.#part = isChunked ? 'chunks' : 'length';
    this.#left = isChunked ? 0 : Number(headers['content-length'] ?? 0);
    this.#sizeLine = '';
  }

  /** The request has its response. */
  end(): void {
    this.#part = 'between';
  }

  /** Returns the size of the piece at the beginning of `bytes`, which the parser gets next. */
  cut(bytes: Buffer): number {
    switch (this.#part) {
      case 'between':
        if (lineEnds(bytes) > 0) return lineEnds(bytes);
        this.#part = 'lines';
        return endOfLines(bytes);
      case 'lines':
        return endOfLines(bytes);
      case 'length':
        return this.#take(bytes, 0);
      case 'chunks':
        return this.#cutChunk(bytes);
    }
  }

  #take(bytes: Buffer, from: number): number {
    const size = Math.min(this.#left, bytes.length - from);
    this.#left -= size;
    // More than the announced length is left only when the parser sees another end of the body.
    return from + size === 0 ? endOfLines(bytes) : from + size;
  }

  #cutChunk(bytes: Buffer): number {
    if (this.#left > 0) return this.#take(bytes, 0);
    const line = bytes.subarray(0, PIECE_BYTES);
    const end = line.indexOf(LF) + 1;
    const text = this.#sizeLine + line.toString('latin1', 0, end === 0 ? line.length : end);
    this.#sizeLine = text.replace(/^0+(?=[\da-f])/i, '').slice(0, SIZE_DIGITS);
    if (end === 0) return line.length;
    const size = parseInt(this.#sizeLine, 16);
    this.#sizeLine = '';
    if (!(size > 0)) {
      this.#part = 'lines';
      return end;
    }
    this.#left = size + '\r\n'.length;
    return this.#take(bytes, end);
  }
}
