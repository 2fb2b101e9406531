import type { IncomingMessage } from 'node:http';
import { expect, test } from '@jest/globals';
import { RequestFraming } from '../../src/http/request-framing.ts';

const HEAD = 'POST /clicks HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n';

/** Returns how a connection that sends a chunked request in these packets is cut, from the body on. */
function chunksOf(packets: readonly string[]): string[] {
  const framing = new RequestFraming();
  expect(framing.cut(Buffer.from(HEAD))).toBe(HEAD.length);
  framing.beginBody({ headers: { 'transfer-encoding': 'chunked' } } as IncomingMessage);
  return packets.flatMap((packet) => {
    const pieces: string[] = [];
    for (let left = Buffer.from(packet); left.length > 0;) {
      const size = framing.cut(left);
      pieces.push(left.toString('latin1', 0, size));
      left = left.subarray(size);
    }
    return pieces;
  });
}

test.each([
  ['with leading zeros', [`${'0'.repeat(30)}1\r\na\r\n`, '1\r\nb\r\n1\r\nc\r\n']],
  ['with its size in two packets', ['0'.repeat(30), '01\r\na\r\n', '1\r\nb\r\n1\r\nc\r\n']],
  ['with an extension', ['1;name=value\r\na\r\n', '1\r\nb\r\n1\r\nc\r\n']],
])('a chunk %s is one piece, and the next chunk another', (_, packets) => {
  expect(chunksOf(packets).slice(-3)).toEqual([expect.stringMatching(/a\r\n$/), '1\r\nb\r\n', '1\r\nc\r\n']);
});

test('a head that arrives in packets which begin with its line ends takes nothing of the body along', () => {
  const framing = new RequestFraming();
  for (const packet of [HEAD.slice(0, -4), '\r\nX: FFFFFFFFFF', '\r\n'])
    expect(framing.cut(Buffer.from(packet))).toBeGreaterThan(0);
  const rest = Buffer.from('\r\n1\r\na\r\n1\r\nb\r\n');
  expect(framing.cut(rest)).toBe(2);
  framing.beginBody({ headers: { 'transfer-encoding': 'chunked' } } as IncomingMessage);
  expect(framing.cut(rest.subarray(2))).toBe('1\r\na\r\n'.length);
});
