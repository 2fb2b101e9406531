import { headOf, packetsOf } from './packets.ts';
import type { PacketDelivery } from './packets.ts';
import type { Delivery, SentRequest } from './requests-without-key.ts';

const PACKET_BYTES = 64 * 1024;
/** How many chunks of one byte a request sends that is not complete. */
const UNFINISHED_CHUNKS = 120;
/** How many bytes of a body are sent in a packet each. */
const BYTE_PACKETS = 1_000;

/** Returns the bytes of a request. */
export function bytesOf(sent: SentRequest): Buffer {
  const { body } = sent;
  const length = body === null ? {} : { 'content-length': String(body.length) };
  return Buffer.concat([Buffer.from(headOf(sent, length)), body ?? Buffer.alloc(0)]);
}

const oneByteChunks = (body: Buffer) =>
  Buffer.concat(Array.from(body, (byte) => Buffer.from([0x31, 0x0d, 0x0a, byte, 0x0d, 0x0a])));

/** Returns a request in chunks of one byte, with the final chunk. */
export function chunkedBytesOf(sent: SentRequest): Buffer {
  const head = headOf(sent, { 'transfer-encoding': 'chunked' });
  return Buffer.concat([
    Buffer.from(head),
    oneByteChunks(sent.body ?? Buffer.alloc(0)),
    Buffer.from('0\r\n\r\n'),
  ]);
}

/** Returns a request in ten chunks whose extensions are as long as the parser reads. */
export function extendedBytesOf(sent: SentRequest): Buffer {
  const chunk = `1;${'a=b;'.repeat(400)}\r\n \r\n`;
  return Buffer.from(`${headOf(sent, { 'transfer-encoding': 'chunked' })}${chunk.repeat(10)}0\r\n\r\n`);
}

/** Returns a request with an empty body and as many trailers as the parser reads. */
export function trailedBytesOf(sent: SentRequest): Buffer {
  const trailers = 'a:b\r\n'.repeat(3_000);
  return Buffer.from(`${headOf(sent, { 'transfer-encoding': 'chunked' })}2\r\n{}\r\n0\r\n${trailers}\r\n`);
}

/** Returns as many short requests of a route as fit into one read of a connection, and how many they are. */
export function packetOf(sent: SentRequest): { readonly bytes: Buffer; readonly count: number } {
  const { 'user-agent': _agent, ...headers } = sent.headers;
  const host = (headers['host'] ?? 'x').length > 100 ? 'x' : headers['host'];
  const [at = ''] = sent.path.split('?');
  const authorization = (headers['authorization'] ?? '').length > 1_000 ? { authorization: 'Bearer x' } : {};
  const one = bytesOf({
    ...sent,
    path: at.slice(0, 200),
    headers: { ...headers, ...authorization, ...(host === undefined ? {} : { host }) },
    body: sent.body === null ? null : Buffer.from('{}'),
  });
  const count = Math.max(1, Math.floor(PACKET_BYTES / one.length));
  return { bytes: Buffer.concat(Array.from({ length: count }, () => one)), count };
}

/** Returns the pieces of a request, each of which is a packet: the head, the first bytes of its body one by one, and the rest. */
export function* bytePackets(sent: SentRequest): Generator<Buffer> {
  const body = sent.body ?? Buffer.alloc(0);
  yield Buffer.from(headOf(sent, { 'content-length': String(body.length) }));
  for (let at = 0; at < BYTE_PACKETS; at += 1) yield body.subarray(at, at + 1);
  yield body.subarray(BYTE_PACKETS);
}

/** Returns the packets of a head of which each has one byte. */
export function* headPackets(sent: SentRequest): Generator<Buffer> {
  for (const byte of headOf(sent, {})) yield Buffer.from(byte);
}

/** Whether a body arrives in pieces of one size. */
export const isInPackets = (delivery: Delivery): delivery is PacketDelivery => / of \d+ bytes/.test(delivery);

/** Returns the bytes of a request that lacks its end, so that the service waits for the rest. */
export function unfinishedBytesOf(delivery: Delivery, sent: SentRequest): Buffer {
  if (isInPackets(delivery)) return Buffer.concat(packetsOf(delivery, sent).pieces).subarray(0, -10);
  switch (delivery) {
    case 'at once':
    case 'a byte per packet':
    case 'the head too in a byte per packet':
      return bytesOf(sent).subarray(0, -1);
    case 'in chunks with long extensions':
      return extendedBytesOf(sent).subarray(0, -5);
    case 'with long trailers':
      return trailedBytesOf(sent).subarray(0, -2);
    case 'in chunks of one byte':
      return chunkedBytesOf({
        ...sent,
        body: (sent.body ?? Buffer.alloc(0)).subarray(0, UNFINISHED_CHUNKS),
      }).subarray(0, -5);
    case 'as many as fit into 64 KiB':
      return packetOf(sent).bytes;
    case 'without its end':
      return Buffer.from(`${sent.method} /${'x'.repeat(15 * 1024)}`);
  }
}
