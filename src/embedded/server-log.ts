import { open, stat } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';

/** The log of a local server, which appends to it, is cut when it is larger, bytes. */
export const LOG_LIMIT_BYTES = 10_000_000;
/** What a cut keeps, bytes. Half, so that a log that grows is not cut at every check. */
const KEPT_BYTES = LOG_LIMIT_BYTES / 2;
/** How often the size is checked while the server runs, ms. */
const CHECK_MS = 10_000;

const megabytes = (bytes: number): string => `${(bytes / 1_000_000).toFixed(1)} MB`;

/** Reads a file from a position to its end, at most `LOG_LIMIT_BYTES`. */
async function readFrom(file: FileHandle, position: number): Promise<Buffer> {
  const buffer = Buffer.alloc(LOG_LIMIT_BYTES);
  let length = 0;
  for (;;) {
    const { bytesRead } = await file.read(buffer, length, buffer.length - length, position + length);
    length += bytesRead;
    if (bytesRead === 0 || length === buffer.length) return buffer.subarray(0, length);
  }
}

/**
 * Cuts the beginning of a log that is too large. Its first line then says how much was cut. The server may be running: it
 * appends, so it continues at the new end. What it writes in the moment between the last read and the cut is lost.
 */
async function cut(path: string): Promise<void> {
  if ((await stat(path)).size <= LOG_LIMIT_BYTES) return;
  const file = await open(path, 'a+');
  try {
    const { size } = await file.stat();
    const end = await readFrom(file, Math.max(0, size - KEPT_BYTES));
    await file.truncate(0);
    const kept = end.subarray(end.indexOf('\n') + 1);
    const line = `[${new Date().toISOString()} The first ${megabytes(size - kept.length)} of this file were cut: it has at most ${megabytes(LOG_LIMIT_BYTES)}.]\n`;
    await file.appendFile(Buffer.concat([Buffer.from(line), kept]));
  } finally {
    await file.close();
  }
}

/** Cuts the beginning of a log that is too large. A missing log, or one that cannot be cut, stays as it is. */
export async function cutLog(path: string): Promise<void> {
  await cut(path).catch(() => undefined);
}

/** Cuts a log whenever it is too large, until the returned function is called or this process ends. */
export function keepLogSmall(path: string, checkMs = CHECK_MS): () => void {
  let isCutting = false;
  const timer = setInterval(() => {
    if (isCutting) return;
    isCutting = true;
    void cutLog(path).finally(() => {
      isCutting = false;
    });
  }, checkMs);
  timer.unref();
  return () => clearInterval(timer);
}
