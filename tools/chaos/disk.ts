import { execFile, execFileSync } from 'node:child_process';
import { mkdir } from 'node:fs/promises';
import { promisify } from 'node:util';

const run = promisify(execFile);
const UMOUNT = 'umount';
const WHOLE = '8g';
/** What is left on a full disk, bytes: less than Postgres needs for its next piece of log. */
const LEFT_BYTES = 256 * 1024;
const MOST_ATTEMPTS = 20;

/** A file system of its own for the data of Postgres, which can become full. */
export interface Disk {
  readonly fill: () => Promise<void>;
  readonly free: () => Promise<void>;
  readonly unmount: () => Promise<void>;
}

const mount = async (...options: readonly string[]) => await run('mount', ['-t', 'tmpfs', ...options]);

/** Mounts a file system in memory at a folder. Returns null where this process may not mount. */
export async function mountDisk(folder: string): Promise<Disk | null> {
  await mkdir(folder, { recursive: true });
  try {
    await mount('-o', `size=${WHOLE},mode=0755`, 'tributary-chaos', folder);
  } catch {
    return null;
  }
  const unmount = ['--lazy', folder];
  // Also when the run ends early.
  const whenExiting = () => void execFileSync(UMOUNT, unmount);
  process.once('exit', whenExiting);
  const resize = async (size: string) => await mount('-o', `remount,size=${size}`, folder);
  return {
    fill: async () => {
      for (let attempt = 1; ; attempt += 1) {
        const { stdout } = await run('df', ['--block-size=1', '--output=used', folder]);
        try {
          await resize(String(Number(stdout.split('\n')[1]) + LEFT_BYTES));
          return;
        } catch (error) {
          // Postgres has written more than that meanwhile.
          if (attempt === MOST_ATTEMPTS) throw error;
        }
      }
    },
    free: async () => void (await resize(WHOLE)),
    unmount: async () => {
      process.off('exit', whenExiting);
      await run(UMOUNT, unmount);
    },
  };
}
