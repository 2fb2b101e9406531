import { setTimeout as sleep } from 'node:timers/promises';
import { eventually } from '../../test/support/eventually.ts';
import { say } from '../run-tool.ts';
import { isReady } from './http.ts';
import { start } from './image.ts';
import type { Image, RunningProcess } from './image.ts';

/** The service processes, by their address. */
export class ServiceProcesses {
  readonly #image: Image;
  readonly #environment: Readonly<Record<string, string>>;
  readonly #running = new Map<string, RunningProcess>();

  constructor(image: Image, environment: Readonly<Record<string, string>>) {
    this.#image = image;
    this.#environment = environment;
  }

  get addresses(): string[] {
    return [...this.#running.keys()];
  }

  launch(host: string): void {
    const environment = { ...this.#environment, HOST: host, METRICS_HOST: host };
    const command = ['node', '--enable-source-maps', 'dist/src/main.js'];
    this.#running.set(host, start(this.#image, command, environment));
  }

  /** Stops a process in order. Returns its exit status. */
  async stop(host: string): Promise<number | null | undefined> {
    const running = this.#running.get(host);
    running?.child.kill('SIGTERM');
    return await running?.ended;
  }

  /** Returns what the processes have printed as errors. */
  errors(): string {
    return [...this.#running.values()].map(({ errors }) => errors()).join('\n');
  }

  /** Stops each process and starts it again, as Compose and Kubernetes do: the next one when the balancer uses this one. */
  async restartInTurn(port: number): Promise<void> {
    for (const host of this.addresses) {
      const stoppedAt = Date.now();
      const status = await this.stop(host);
      if (status !== 0) throw new Error(`the process at ${host} ended with ${status}: ${this.errors()}`);
      const drained = Date.now() - stoppedAt;
      const lines = this.#running.get(host)?.lastLines() ?? '';
      const [stopLine = '{}'] = /\{[^\n]*"msg":"stopped in order"[^\n]*\}/.exec(lines) ?? [];
      const { requestsMs, loopsMs, startsMs, workersMs } = JSON.parse(stopLine) as Record<string, number>;
      this.launch(host);
      await eventually(
        'the new process is ready',
        async () => await isReady(`http://${host}:${port}`),
        60_000,
      );
      await sleep(2_500);
      say(
        `${host} was restarted: ${drained} ms to stop (requests ${requestsMs}, loops ${loopsMs}, starts ${startsMs}, workers ${workersMs}), ${Date.now() - stoppedAt} ms until it served again`,
      );
    }
  }
}
