import { randomUUID } from 'node:crypto';
import { STATUS_CODES } from 'node:http';
import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { ApiError } from './errors.ts';
import { problemReply } from './reply.ts';

const RETRY_AFTER_SECONDS = 5;
/** How long a connection stays open after the response that ends it: closed at once, a client that still sends would lose it. */
const LINGER_MS = 1_000;

/**
 * Returns the error for a code of Node's HTTP parser. A request that took too long while this process itself was late may
 * have arrived in time: that is no fault of the caller, who sends it again after a 503.
 */
function toApiError(code: string | undefined, wasLate: () => boolean): ApiError {
  switch (code) {
    case 'HPE_HEADER_OVERFLOW':
      return new ApiError('headers_too_large');
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return wasLate()
        ? new ApiError('unavailable', { headers: { 'Retry-After': String(RETRY_AFTER_SECONDS) } })
        : new ApiError('request_timeout');
    default:
      return new ApiError('invalid_request', {
        detail: 'The request is not valid HTTP. Check the request line and the headers.',
      });
  }
}

function respond(error: ApiError, socket: Socket): void {
  const requestId = randomUUID();
  const { status, headers, body } = problemReply(error, requestId);
  const lines = Object.entries({
    ...headers,
    'X-Request-Id': requestId,
    'Content-Length': String(Buffer.byteLength(body)),
    Connection: 'close',
  }).map(([name, value]) => `${name}: ${value}`);
  socket.end([`HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}`, ...lines, '', body].join('\r\n'));
  const timer = setTimeout(() => socket.destroy(), LINGER_MS);
  socket.once('close', () => clearTimeout(timer));
}

/**
 * Responds to input that is no valid request with a problem document and closes the connection. If an earlier request of
 * the connection has no response yet, only closes it, because that response would have to come first.
 */
export function respondToClientErrors(server: Server, wasLate: () => boolean): void {
  const inProgress = new WeakMap<Duplex, number>();
  server.on('request', ({ socket }, response) => {
    inProgress.set(socket, (inProgress.get(socket) ?? 0) + 1);
    response.once('close', () => inProgress.set(socket, (inProgress.get(socket) ?? 1) - 1));
  });
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    if (error.code === 'ECONNRESET' || !socket.writable || (inProgress.get(socket) ?? 0) > 0)
      socket.destroy();
    else respond(toApiError(error.code, wasLate), socket as Socket);
  });
}
