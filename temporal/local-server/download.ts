import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { chmod, mkdtemp, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { promisify } from 'node:util';
import { startDeadline, withDeadline } from '../../src/lib/deadline.ts';
import type { Deadline } from '../../src/lib/deadline.ts';
import { CHILD_ENVIRONMENT } from '../../src/embedded/child-environment.ts';

const run = promisify(execFile);

/** Limits the wait for the first byte, the whole download, and its size. */
const CONNECT_MS = 8_000;
const DOWNLOAD_MS = 180_000;
const MAX_BYTES = 512 * 1024 * 1024;

/** SHA-256 of the archives of a release by platform, as the release publishes them. */
export const CHECKSUMS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  '1.5.1': {
    'darwin-arm64': 'cca01b7ea35ad56e2a328d9ae596bf716bd22313ef63c7a761c88354457c2415',
    'darwin-x64': 'bbb73e2a31135abe50a1f1cdb35030c42961df618e8ce9c60ae89f201540c5d9',
    'linux-arm64': 'bd1b0db9f18b051026de8bf6cc1505f2510f14bbb7a8b9a4a91fff46c77454f5',
    'linux-x64': 'ddc95e08b0b076efd4ea9733a3f488eb7d2be875f8834e616cd2a37358b4852d',
  },
};

/** A release archive for one platform. */
export interface Release {
  readonly url: string;
  readonly sha256: string;
}

/** Returns the archive of a version for this platform. Throws when no checksum is pinned for it. */
export function releaseOf(version: string): Release {
  const sha256 = CHECKSUMS[version]?.[`${process.platform}-${process.arch}`];
  if (sha256 === undefined) {
    throw new Error(`no checksum is pinned for ${version} on ${process.platform} ${process.arch}`);
  }
  const architecture = process.arch === 'x64' ? 'amd64' : process.arch;
  const file = `temporal_cli_${version}_${process.platform}_${architecture}.tar.gz`;
  return { url: `https://github.com/temporalio/cli/releases/download/v${version}/${file}`, sha256 };
}

/** Requests an archive, and returns its body as soon as it begins. */
async function fetchArchive(url: string, connecting: Deadline): Promise<Readable> {
  const { host } = new URL(url);
  const response = await connecting
    .race(fetch(url, { signal: connecting.signal }))
    .catch((error: unknown) => {
      throw new Error(`${host} cannot be reached`, { cause: error });
    })
    .finally(connecting.end);
  if (!response.ok || response.body === null) {
    throw new Error(`${host} responded with ${response.status}`);
  }
  return Readable.fromWeb(response.body);
}

/** Where an archive is, and the limits of its download. */
export interface Download extends Release {
  readonly target: string;
  readonly connectMs?: number;
  readonly downloadMs?: number;
  readonly maxBytes?: number;
}

/**
 * Downloads an archive, compares its SHA-256 with the pinned one, and writes the program in it to `target`. Nothing of an
 * archive with another hash is unpacked.
 */
export async function downloadProgram({
  url,
  sha256,
  target,
  connectMs = CONNECT_MS,
  downloadMs = DOWNLOAD_MS,
  maxBytes = MAX_BYTES,
}: Download): Promise<void> {
  const archive = `${target}.tar.gz`;
  const folder = await mkdtemp(`${target}-`);
  try {
    const hash = createHash('sha256');
    await withDeadline(downloadMs, async ({ signal }) => {
      await pipeline(
        await fetchArchive(url, startDeadline(connectMs, signal)),
        async function* (chunks: AsyncIterable<Buffer>) {
          let length = 0;
          for await (const chunk of chunks) {
            length += chunk.length;
            if (length > maxBytes) throw new Error(`the archive has more than ${maxBytes} bytes`);
            hash.update(chunk);
            yield chunk;
          }
        },
        createWriteStream(archive, { mode: 0o600 }),
        { signal },
      );
    });
    const found = hash.digest('hex');
    if (found !== sha256) {
      throw new Error(`the SHA-256 ${found} of the download is not the pinned one, ${sha256}`);
    }
    await run('tar', ['-xzf', archive, '-C', folder, 'temporal'], { env: CHILD_ENVIRONMENT });
    await chmod(join(folder, 'temporal'), 0o755);
    await rename(join(folder, 'temporal'), target);
  } finally {
    await rm(archive, { force: true });
    await rm(folder, { recursive: true, force: true });
  }
}
