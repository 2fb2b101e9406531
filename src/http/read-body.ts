import { isUtf8 } from 'node:buffer';
import type { IncomingMessage } from 'node:http';
import type { BodyMemory } from './body-budget.ts';
import type { HttpContext } from './context.ts';
import type { HttpDeps } from './deps.ts';
import { ApiError, withAdvice } from './errors.ts';

/** The media types of a JSON body. */
export const JSON_TYPES = ['application/json', '+json'] as const;

/** The memory that a body gets at first, bytes. It doubles when the body needs more: one that is only announced holds nothing. */
const FIRST_BYTES = 8 * 1024;
/** The part of an announced body from whose arrival on it has all its memory, so that it is not copied again and again. */
const TRUSTED_PART = 1 / 8;

/**
 * A part is what the parser passes on at a time: a chunk, or what one packet has of it. Each costs about as much as hundreds
 * of bytes, so a body may have this many parts, and one more for each `PART_BYTES` bytes.
 */
const PARTS = 128;
const PART_BYTES = 512;

/** Whether a body of `bytes` bytes arrived in too many parts. */
const isFragmented = (parts: number, bytes: number): boolean => parts > PARTS + bytes / PART_BYTES;

function endedEarly(): ApiError {
  return new ApiError('invalid_request', { detail: 'The body is shorter than its Content-Length.' });
}

/** A body whose memory stays reserved until `free` is called. */
export interface HeldBody<T> {
  readonly body: T;
  readonly free: () => void;
}

/**
 * Receives a body into one buffer, which `memory` counts. Throws 400 for a body that ends early or arrives in too many parts,
 * and 413 beyond the limit; then nothing more is read.
 */
function receive(
  request: IncomingMessage,
  length: number | undefined,
  limitBytes: number,
  memory: BodyMemory,
): Promise<Buffer> {
  const tooLarge = () =>
    new ApiError('payload_too_large', { detail: `The body has more than ${limitBytes} bytes.` });
  return new Promise((resolve, reject) => {
    if (length !== undefined && length > limitBytes) throw tooLarge();
    if (request.destroyed) throw endedEarly();
    let buffer: Buffer = Buffer.alloc(0);
    let [size, parts] = [0, 0];
    const makeRoom = (bytes: number) => {
      if (bytes <= buffer.length) return;
      const room =
        length !== undefined && bytes >= length * TRUSTED_PART
          ? length
          : Math.min(length ?? limitBytes, Math.max(bytes, 2 * buffer.length, FIRST_BYTES));
      memory.reserve(room);
      const larger = Buffer.allocUnsafeSlow(room);
      buffer.copy(larger, 0, 0, size);
      buffer = larger;
    };
    const add = (part: Buffer) => {
      parts += 1;
      if (size + part.length > limitBytes) throw tooLarge();
      if (isFragmented(parts, size + part.length)) throw withAdvice('body_in_small_parts');
      if (part.length === length) {
        memory.reserve(length);
        buffer = part;
      } else {
        makeRoom(size + part.length);
        part.copy(buffer, size);
      }
      size += part.length;
    };
    const stop = () => {
      request.off('data', onData).off('end', onEnd).off('close', onClose).off('error', onClose);
    };
    const onData = (part: Buffer) => {
      try {
        add(part);
      } catch (error) {
        stop();
        request.pause();
        reject(error);
      }
    };
    const onEnd = () => {
      stop();
      resolve(buffer.subarray(0, size));
    };
    const onClose = () => {
      stop();
      reject(endedEarly());
    };
    request.on('data', onData).on('end', onEnd).on('close', onClose).on('error', onClose);
  });
}

/** Returns the bytes of a request's body as they were sent. Throws 400, 413, or 503 when too much memory is in use. */
export async function readBytes(
  ctx: HttpContext,
  { bodyBudget }: Pick<HttpDeps, 'bodyBudget'>,
  limitBytes: number,
): Promise<HeldBody<Buffer>> {
  const memory = bodyBudget.open(ctx.ip);
  try {
    const body = await receive(ctx.req, ctx.request.length, limitBytes, memory);
    return { body, free: memory.free };
  } catch (error) {
    memory.free();
    throw error;
  }
}

const BYTE_ORDER_MARK = '\u{FEFF}';

/** Returns the text of a request's body, without a byte order mark. Throws as `readBytes`, and 400 for a body that is not UTF-8. */
export async function readText(
  ctx: HttpContext,
  deps: Pick<HttpDeps, 'bodyBudget'>,
  limitBytes: number,
): Promise<string> {
  const { body, free } = await readBytes(ctx, deps, limitBytes);
  const text = isUtf8(body) ? body.toString('utf8') : null;
  free();
  // Decoded anyway, different names and ids could become one.
  if (text === null) throw new ApiError('invalid_request', { detail: 'The body is not UTF-8.' });
  return text.startsWith(BYTE_ORDER_MARK) ? text.slice(1) : text;
}
