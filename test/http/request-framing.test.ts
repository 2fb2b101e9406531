import type { IncomingMessage } from 'node:http';
import { expect, test } from '@jest/globals';
import { RequestFraming } from '../../src/http/request-framing.ts';

const head = (header: string) => `POST /clicks HTTP/1.1\r\nHost: localhost\r\n${header}\r\n\r\n`;

/** Returns how bytes that arrive together are cut. The heads of their requests are read with the pieces of these indexes. */
function piecesOf(text: string, headers: Readonly<Record<number, IncomingMessage['headers']>>): string[] {
  const framing = new RequestFraming();
  const pieces: string[] = [];
  for (let left = Buffer.from(text); left.length > 0;) {
    const size = framing.cut(left);
    pieces.push(left.toString('utf8', 0, size));
    left = left.subarray(size);
    const read = headers[pieces.length - 1];
    if (read !== undefined) framing.beginBody({ headers: read } as IncomingMessage);
  }
  return pieces;
}

test('a head and a body without a line end are one piece', () => {
  const text = `${head('Content-Length: 13')}{"slug":"mia"}`;
  expect(piecesOf(text, { 0: { 'content-length': '13' } })).toEqual([text]);
});

test('a body that arrives in two packets has the announced length, also when the first came with the head', () => {
  const framing = new RequestFraming();
  const first = Buffer.from(`${head('Content-Length: 14')}{"slug":`);
  expect(framing.cut(first)).toBe(first.length);
  framing.beginBody({ headers: { 'content-length': '14' } } as IncomingMessage);
  expect(framing.cut(Buffer.from('"mia"}GET / HTTP/1.1\r\n\r\n'))).toBe('"mia"}'.length);
});

test('a head is a piece of its own when line ends follow, which may end further requests or chunks', () => {
  const next = head('Content-Length: 0');
  expect(piecesOf(`${next}${next}`, { 0: {}, 1: {} })).toEqual([next, next]);
  const chunked = head('Transfer-Encoding: chunked');
  const headers = { 0: { 'transfer-encoding': 'chunked' } };
  expect(piecesOf(`${chunked}1\r\na\r\n1\r\nb\r\n`, headers)).toEqual([chunked, '1\r\na\r\n', '1\r\nb\r\n']);
});

test('the size of a chunk that begins in the packet of the head is read to its end in the next one', () => {
  const framing = new RequestFraming();
  const first = Buffer.from(`${head('Transfer-Encoding: chunked')}1`);
  expect(framing.cut(first)).toBe(first.length);
  framing.beginBody({ headers: { 'transfer-encoding': 'chunked' } } as IncomingMessage);
  const chunk = `0\r\n${'a'.repeat(16)}\r\n`;
  expect(framing.cut(Buffer.from(`${chunk}1\r\nb\r\n`))).toBe(chunk.length);
});

test('what follows the end of a request, and is no whole line, does not count as the body of the next one', () => {
  const framing = new RequestFraming();
  framing.cut(Buffer.from(head('Transfer-Encoding: chunked')));
  framing.beginBody({ headers: { 'transfer-encoding': 'chunked' } } as IncomingMessage);
  expect(framing.cut(Buffer.from('0\r\n\r\nPOST /clicks'))).toBe('0\r\n'.length);
  expect(framing.cut(Buffer.from('\r\nPOST /clicks'))).toBe('\r\nPOST /clicks'.length);
  framing.end();
  const rest = Buffer.from(' HTTP/1.1\r\nContent-Length: 2\r\n\r\n');
  expect(framing.cut(rest)).toBe(rest.length);
  framing.beginBody({ headers: { 'content-length': '2' } } as IncomingMessage);
  expect(framing.cut(Buffer.from('{}{}'))).toBe(2);
});
