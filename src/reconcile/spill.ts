/** Temporary files for more data than memory should hold. */
import { createReadStream, mkdtempSync, rmSync } from 'node:fs';
import { lstat, open, readdir, rm } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { readLines } from '../db/read-lines.ts';

/** Characters that a file buffers before they are written. */
const BUFFER = 128 * 1024;

/** A file with one JSON value on each line. It is written first and read afterwards. */
class SpillFile<T> {
  readonly #path: string;
  #handle: FileHandle | undefined;
  #buffer: string[] = [];
  #buffered = 0;

  constructor(path: string) {
    this.#path = path;
  }

  async append(value: T): Promise<void> {
    const line = `${JSON.stringify(value)}\n`;
    this.#buffer.push(line);
    this.#buffered += line.length;
    if (this.#buffered >= BUFFER) await this.#flush();
  }

  async #flush(): Promise<void> {
    // The folder belongs to this process, and rows name users.
    this.#handle ??= await open(this.#path, 'wx', 0o600);
    const text = this.#buffer.join('');
    this.#buffer = [];
    this.#buffered = 0;
    await this.#handle.appendFile(text);
  }

  /** Ends the writing. */
  async close(): Promise<void> {
    if (this.#buffered > 0) await this.#flush();
    await this.#handle?.close();
  }

  /** Reads the values in the order in which they were written. */
  async *read(): AsyncGenerator<T> {
    if (this.#handle === undefined) return;
    const incomplete = () => new Error(`${this.#path} is incomplete. Compare the export again.`);
    const lines = readLines(createReadStream(this.#path), incomplete);
    for await (const line of lines) yield JSON.parse(line) as T;
  }
}

const PREFIX = 'tributary-reconcile-';
const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/** The folders of this process. They are removed when it exits, or when a signal ends it. */
const live = new Set<string>();

function removeAll(): void {
  for (const path of live) rmSync(path, { recursive: true, force: true });
  live.clear();
  for (const signal of SIGNALS) process.off(signal, onSignal);
  process.off('exit', removeAll);
}

function onSignal(signal: NodeJS.Signals): void {
  removeAll();
  // Without the listener the signal ends the process, and the shell sees that it did.
  process.kill(process.pid, signal);
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ESRCH';
  }
}

/** Removes the folders that dead processes of this machine and user left, for example after SIGKILL. */
async function removeStale(parent: string): Promise<void> {
  const start = `${PREFIX}${hostname()}-`;
  for (const entry of await readdir(parent, { withFileTypes: true }).catch(() => [])) {
    const path = join(parent, entry.name);
    if (!entry.isDirectory() || !entry.name.startsWith(start) || live.has(path)) continue;
    const [, pid] = /^(\d+)-[A-Za-z0-9]{6}$/.exec(entry.name.slice(start.length)) ?? [];
    if (pid === undefined || (Number(pid) !== process.pid && isAlive(Number(pid)))) continue;
    const folder = await lstat(path).catch(() => null);
    if (folder?.uid !== process.getuid?.()) continue;
    // Another comparison may be removing it too.
    await rm(path, { recursive: true, force: true }).catch(() => {});
  }
}

/** A folder that exists until `remove`, or until the process ends. Only its owner can read it. */
export class SpillFolder {
  readonly path: string;
  #files = 0;

  private constructor(path: string) {
    this.path = path;
  }

  static async create(parent = tmpdir()): Promise<SpillFolder> {
    await removeStale(parent);
    const path = mkdtempSync(join(parent, `${PREFIX}${hostname()}-${process.pid}-`));
    if (live.size === 0) {
      for (const signal of SIGNALS) process.on(signal, onSignal);
      process.on('exit', removeAll);
    }
    live.add(path);
    return new SpillFolder(path);
  }

  file<T>(): SpillFile<T> {
    this.#files += 1;
    return new SpillFile<T>(join(this.path, String(this.#files)));
  }

  async remove(): Promise<void> {
    await rm(this.path, { recursive: true, force: true });
    live.delete(this.path);
    if (live.size === 0) removeAll();
  }
}

const BUCKETS = 128;

/** Returns a 32-bit hash of a text (FNV-1a). */
function hash(text: string): number {
  let value = 0x811c9dc5;
  for (let index = 0; index < text.length; index += 1) {
    value = Math.imul(value ^ text.charCodeAt(index), 0x01000193) >>> 0;
  }
  return value;
}

/** Values that are divided by a key, so that all values with one key are read together. */
export class Buckets<T> {
  readonly #folder: SpillFolder;
  readonly #files = new Map<number, SpillFile<T>>();

  constructor(folder: SpillFolder) {
    this.#folder = folder;
  }

  async append(key: string, value: T): Promise<void> {
    const bucket = hash(key) % BUCKETS;
    const file = this.#files.get(bucket) ?? this.#folder.file<T>();
    this.#files.set(bucket, file);
    await file.append(value);
  }

  /** Returns the values of one bucket after the other, each in the order in which they were appended. */
  async *read(): AsyncGenerator<readonly T[]> {
    for (const file of this.#files.values()) {
      await file.close();
      const values: T[] = [];
      for await (const value of file.read()) values.push(value);
      yield values;
    }
  }
}

/** Values in memory before they are sorted and written. */
const RUN = 20_000;

/** Sorts any number of values, with temporary files. */
export class Sorter<T> {
  readonly #folder: SpillFolder;
  readonly #compare: (a: T, b: T) => number;
  readonly #runs: SpillFile<T>[] = [];
  #values: T[] = [];

  constructor(folder: SpillFolder, compare: (a: T, b: T) => number) {
    this.#folder = folder;
    this.#compare = compare;
  }

  async add(value: T): Promise<void> {
    this.#values.push(value);
    if (this.#values.length < RUN) return;
    const run = this.#folder.file<T>();
    for (const next of this.#values.toSorted(this.#compare)) await run.append(next);
    await run.close();
    this.#runs.push(run);
    this.#values = [];
  }

  /** Reads all values in order, any number of times. */
  async *read(): AsyncGenerator<T> {
    const rest = this.#values.toSorted(this.#compare)[Symbol.iterator]();
    const sources: (Iterator<T> | AsyncIterator<T>)[] = [...this.#runs.map((run) => run.read()), rest];
    const heads = await Promise.all(sources.map(async (source) => await source.next()));
    for (;;) {
      let least = -1;
      for (const [index, head] of heads.entries()) {
        if (head.done === true) continue;
        const other = heads[least];
        if (other === undefined || other.done === true || this.#compare(head.value, other.value) < 0) {
          least = index;
        }
      }
      const head = heads[least];
      const source = sources[least];
      if (head === undefined || head.done === true || source === undefined) return;
      yield head.value;
      heads[least] = await source.next();
    }
  }
}
