import { randomUUID } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { access, link, rename, rm } from 'node:fs/promises';
import { pipeline } from 'node:stream/promises';
import type { Duplex } from 'node:stream';
import { errorCode } from '../embedded/error-text.ts';

/**
 * Writes a new file that only its owner can read, through `transform`. The file has its name once it is complete and on the
 * disk: until then it is a file beside it whose name ends in `.partial`, which is removed when `chunks` fails. Two processes at the same
 * time have one each. An existing file is never replaced. Throws the error of `chunks`, or of the file system (`EEXIST` when the file exists).
 */
export async function writeNewFile(
  path: string,
  chunks: AsyncIterable<string>,
  transform: Duplex,
): Promise<void> {
  const partial = partialName(path);
  await refuseExisting(path);
  try {
    const file = createWriteStream(partial, { flags: 'wx', mode: 0o600, flush: true });
    await pipeline(chunks, transform, file);
    await giveName(partial, path);
  } finally {
    await rm(partial, { force: true });
  }
}

/**
 * Replaces a file, or writes a new one, once all of `chunks` are on the disk. Until then they are in a file beside it whose name ends in
 * `.partial`, which is removed when `chunks` fails. Two processes at the same time have one each. Throws the error of `chunks`, or of the
 * file system.
 */
export async function replaceFile(path: string, chunks: AsyncIterable<string>): Promise<void> {
  const partial = partialName(path);
  try {
    await pipeline(chunks, createWriteStream(partial, { flags: 'wx', flush: true }));
    await rename(partial, path);
  } finally {
    await rm(partial, { force: true });
  }
}

const partialName = (path: string): string => `${path}.${randomUUID()}.partial`;

/** What a file system without hard links answers. */
const WITHOUT_LINKS = new Set(['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS']);

/** Gives a complete file its name, unless another file has it. A file system without hard links checks that before, and not at once. */
async function giveName(partial: string, path: string): Promise<void> {
  try {
    await link(partial, path);
  } catch (error) {
    if (!WITHOUT_LINKS.has(errorCode(error) ?? '')) throw error;
    await refuseExisting(path);
    await rename(partial, path);
  }
}

async function refuseExisting(path: string): Promise<void> {
  const exists = await access(path).then(
    () => true,
    () => false,
  );
  if (exists) throw Object.assign(new Error(`${path} already exists`), { code: 'EEXIST', path });
}
