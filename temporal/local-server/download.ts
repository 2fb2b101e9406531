import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { chmod, mkdtemp, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { promisify } from 'node:util';
import { CHILD_ENVIRONMENT } from '../../src/embedded/child-environment.ts';

const run = promisify(execFile);

/** Limits the wait for the first byte, and the whole download. */
const CONNECT_MS = 8_000;
const DOWNLOAD_MS = 180_000;

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

/** Fetches an archive. The connection must be established soon; a long download is fine. */
async function fetchArchive(url: string): Promise<Readable> {
  const connecting = new AbortController();
  const timer = setTimeout(() => connecting.abort(), CONNECT_MS);
  const { host } = new URL(url);
  try {
    const signal = AbortSignal.any([connecting.signal, AbortSignal.timeout(DOWNLOAD_MS)]);
    const response = await fetch(url, { signal }).catch((error: unknown) => {
      throw new Error(`${host} cannot be reached`, { cause: error });
    });
    if (!response.ok || response.body === null) {
      throw new Error(`${host} responded with ${response.status}`);
    }
    return Readable.fromWeb(response.body);
  } finally {
    clearTimeout(timer);
  }
}

/**
 * Downloads an archive, compares its SHA-256 with the pinned one, and writes the program in it to `target`. Nothing of an
 * archive with another hash is unpacked.
 */
export async function downloadProgram({ url, sha256, target }: Release & { target: string }): Promise<void> {
  const archive = `${target}.tar.gz`;
  const folder = await mkdtemp(`${target}-`);
  try {
    const hash = createHash('sha256');
    await pipeline(
      await fetchArchive(url),
      async function* (chunks: AsyncIterable<Buffer>) {
        for await (const chunk of chunks) {
          hash.update(chunk);
          yield chunk;
        }
      },
      createWriteStream(archive, { mode: 0o600 }),
    );
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
