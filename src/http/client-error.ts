import { randomUUID } from 'node:crypto';
import { STATUS_CODES } from 'node:http';
import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { ApiError } from './errors.ts';
import { problemReply } from './reply.ts';

/** What Node's parser refuses, by its error code; everything else is no HTTP at all. */
function toApiError(code: string | undefined): ApiError {
  switch (code) {
    case 'HPE_HEADER_OVERFLOW':
      return new ApiError('headers_too_large');
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return new ApiError('request_timeout');
    default:
      return new ApiError('invalid_request', { detail: 'The request is not valid HTTP.' });
  }
}

function answer(error: NodeJS.ErrnoException, socket: Socket): void {
  const requestId = randomUUID();
  const { status, headers, body } = problemReply(toApiError(error.code), requestId);
  const lines = Object.entries({
    ...headers,
    'X-Request-Id': requestId,
    'Content-Length': String(Buffer.byteLength(body)),
    Connection: 'close',
  }).map(([name, value]) => `${name}: ${value}`);
  socket.end([`HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}`, ...lines, '', body].join('\r\n'));
}

/**
 * Answers what never became a request as a problem document like every other error, and ends its connection. Where an
 * earlier request of the connection still waits for its answer, nothing may come before that one: it just ends.
 */
export function answerClientErrors(server: Server): void {
  const answering = new WeakMap<Duplex, number>();
  server.on('request', ({ socket }, response) => {
    answering.set(socket, (answering.get(socket) ?? 0) + 1);
    response.once('close', () => answering.set(socket, (answering.get(socket) ?? 1) - 1));
  });
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    if (error.code === 'ECONNRESET' || !socket.writable || (answering.get(socket) ?? 0) > 0) socket.destroy();
    else answer(error, socket as Socket);
  });
}
