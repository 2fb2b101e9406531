import { randomUUID } from 'node:crypto';
import { STATUS_CODES } from 'node:http';
import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { ApiError } from './errors.ts';
import { problemReply } from './reply.ts';

/** Returns the error for a code of Node's HTTP parser. */
function toApiError(code: string | undefined): ApiError {
  switch (code) {
    case 'HPE_HEADER_OVERFLOW':
      return new ApiError('headers_too_large');
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return new ApiError('request_timeout');
    default:
      return new ApiError('invalid_request', {
        detail: 'The request is not valid HTTP. Check the request line and the headers.',
      });
  }
}

function respond(error: NodeJS.ErrnoException, socket: Socket): void {
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
 * Responds to input that is no valid request with a problem document and closes the connection. If an earlier request of
 * the connection has no response yet, only closes it, because that response would have to come first.
 */
export function respondToClientErrors(server: Server): void {
  const inProgress = new WeakMap<Duplex, number>();
  server.on('request', ({ socket }, response) => {
    inProgress.set(socket, (inProgress.get(socket) ?? 0) + 1);
    response.once('close', () => inProgress.set(socket, (inProgress.get(socket) ?? 1) - 1));
  });
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    if (error.code === 'ECONNRESET' || !socket.writable || (inProgress.get(socket) ?? 0) > 0)
      socket.destroy();
    else respond(error, socket as Socket);
  });
}
