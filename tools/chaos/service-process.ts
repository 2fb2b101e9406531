import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { open } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';
import { projectRoot } from '../../src/config/project-root.ts';
import { endWithThisProcess } from '../../src/embedded/processes.ts';
import { eventually } from '../../test/support/eventually.ts';
import { send } from './answers.ts';

const START_TIMEOUT_MS = 180_000;
/** A client notices the end of a process a little later or, with a request in flight, had sent it earlier. */
const NOTICE_MS = 2_000;

/** One process of the service, behind an address that it keeps when it is started again. */
export class ServiceProcess {
  readonly base: string;
  readonly metricsBase: string;
  readonly logFile: string;
  readonly #environment: Readonly<Record<string, string>>;
  #child: ChildProcess | undefined;
  #log: FileHandle | undefined;
  #stopWatching = (): void => {};
  #ended: Promise<void> = Promise.resolve();
  /** Exits that nobody asked for. */
  readonly crashes: string[] = [];
  #isEnding = false;
  #isUp = false;
  #hasEnded = false;
  /** When it did not run or did not move, epoch ms. The last interval may be open. */
  readonly #away: { readonly from: number; to: number }[] = [];

  constructor(
    ports: { readonly api: number; readonly metrics: number },
    logFile: string,
    environment: Readonly<Record<string, string>>,
  ) {
    this.base = `http://127.0.0.1:${ports.api}`;
    this.metricsBase = `http://127.0.0.1:${ports.metrics}`;
    this.logFile = logFile;
    this.#environment = { ...environment, PORT: String(ports.api), METRICS_PORT: String(ports.metrics) };
  }

  get pid(): number | undefined {
    return this.#child?.pid;
  }

  /** Answers that this process may give because of what was done to it, beside the usual ones. */
  readonly tolerated = new Set<number>();

  /** Starts the process, with other settings until its end. It is usable when `whenReady` has returned. */
  async start(others: Readonly<Record<string, string>> = {}): Promise<void> {
    this.#log = await open(this.logFile, 'a');
    const child = spawn(process.execPath, ['--enable-source-maps', 'dist/src/main.js'], {
      cwd: projectRoot,
      env: { PATH: process.env['PATH'] ?? '', ...this.#environment, ...others },
      stdio: ['ignore', this.#log.fd, this.#log.fd],
    });
    this.#child = child;
    this.#stopWatching = endWithThisProcess(child.pid ?? 0, 'TERM');
    const log = this.#log;
    this.#isEnding = false;
    this.#isUp = false;
    this.#hasEnded = false;
    this.#ended = new Promise((resolve) => {
      child.once('exit', (status, signal) => {
        this.#stopWatching();
        this.#hasEnded = true;
        // A start that fails is tried again, as Compose does.
        if (!this.#isEnding && this.#isUp)
          this.crashes.push(`ended by itself with ${status ?? signal}: ${this.logFile}`);
        void log.close().then(resolve);
      });
    });
  }

  /** Waits until it answers requests. */
  async whenReady(): Promise<void> {
    await eventually(
      `the process at ${this.base} answers (${this.logFile})`,
      async () => {
        if (this.#hasEnded) await this.start();
        return await send(this.base, 'GET', '/healthz').then(
          ({ status }) => status === 200,
          () => false,
        );
      },
      START_TIMEOUT_MS,
    );
    this.#isUp = true;
    const last = this.#away.at(-1);
    if (last?.to === Infinity) last.to = Date.now() + NOTICE_MS;
  }

  /** Ends it by a signal and waits until it has ended. */
  async end(signal: 'SIGKILL' | 'SIGTERM'): Promise<void> {
    this.#noteAway();
    this.#isEnding = true;
    this.#child?.kill(signal);
    await this.#ended;
  }

  /** Stops its clock: it keeps its connections, and neither reads nor answers. */
  freeze(): void {
    this.#noteAway();
    this.#child?.kill('SIGSTOP');
  }

  thaw(): void {
    this.#child?.kill('SIGCONT');
    const last = this.#away.at(-1);
    if (last !== undefined) last.to = Date.now() + NOTICE_MS;
  }

  #noteAway(): void {
    if (this.#away.at(-1)?.to !== Infinity) this.#away.push({ from: Date.now() - NOTICE_MS, to: Infinity });
  }

  /** Whether it was unavailable at some time of that interval. */
  wasAway(from: number, to: number): boolean {
    return this.#away.some((interval) => interval.from <= to && interval.to >= from);
  }
}
