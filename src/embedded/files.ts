import { randomUUID } from 'node:crypto';
import { open, readFile, rename, rm } from 'node:fs/promises';
import type { z } from 'zod';
import { errorCode } from './error-text.ts';

/** Replaces a file atomically. Only its owner may read it. */
export async function writePrivateFile(path: string, content: string): Promise<void> {
  const temporary = `${path}.${randomUUID()}`;
  try {
    const file = await open(temporary, 'wx', 0o600);
    try {
      await file.writeFile(content);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(temporary, path);
  } finally {
    await rm(temporary, { force: true });
  }
}

/** Returns the text of a file, or undefined when there is none. */
export async function readIfPresent(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return undefined;
    throw error;
  }
}

/** Parses a JSON text; undefined when there is no text or it does not have that shape. */
export function parseJson<T>(shape: z.ZodType<T>, text: string | undefined): T | undefined {
  try {
    return text === undefined ? undefined : shape.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}
