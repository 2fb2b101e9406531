import type { SentRequest } from './requests-without-key.ts';

/** A body that arrives in many pieces. */
export type PacketDelivery =
  | `in chunks of ${number} bytes`
  | `slowly in packets of ${number} bytes`
  | `slowly in chunks of ${number} bytes, a packet each`;

/** The pieces of a request, each of which is a packet, and the time between them, ms. */
export interface Packets {
  readonly pieces: readonly Buffer[];
  readonly gapMs: number;
}

const SHAPE = /^(?<slowly>slowly )?in (?<unit>packets|chunks) of (?<bytes>\d+) bytes/;

/** Returns the head of a request. */
export function headOf(
  { method, path: at, headers }: SentRequest,
  more: Readonly<Record<string, string>>,
): string {
  const lines = Object.entries({ host: 'x', ...headers, ...more }).map(
    ([name, value]) => `${name}: ${value}`,
  );
  return `${method} ${at} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n`;
}

/** Returns the parts of a body, each as a chunk if it is to be chunked. */
function partsOf(body: Buffer, bytes: number, isChunked: boolean): Buffer[] {
  return Array.from({ length: Math.ceil(body.length / bytes) }, (_, nth) => {
    const part = body.subarray(nth * bytes, (nth + 1) * bytes);
    return isChunked
      ? Buffer.concat([Buffer.from(`${part.length.toString(16)}\r\n`), part, Buffer.from('\r\n')])
      : part;
  });
}

/** Returns how a request is sent in many pieces. */
export function packetsOf(delivery: PacketDelivery, sent: SentRequest): Packets {
  const { slowly, unit, bytes } = SHAPE.exec(delivery)?.groups ?? {};
  const body = sent.body ?? Buffer.alloc(0);
  const isChunked = unit === 'chunks';
  const parts = partsOf(body, Number(bytes), isChunked);
  const head = isChunked ? { 'transfer-encoding': 'chunked' } : { 'content-length': String(body.length) };
  const pieces = [Buffer.from(headOf(sent, head)), ...parts, Buffer.from(isChunked ? '0\r\n\r\n' : '')];
  return slowly === undefined ? { pieces: [Buffer.concat(pieces)], gapMs: 0 } : { pieces, gapMs: 1 };
}
