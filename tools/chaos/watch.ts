import { Agent } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { send } from './answers.ts';
import type { Sign } from './fault-kinds.ts';
import type { Beat } from './probes.ts';
import type { ServiceProcess } from './service-process.ts';

/* What the operator can see while a fault lasts: the health checks and metrics of each process. */

const EVERY_MS = 500;
/** How long a health check waits for its answer. The check itself waits at most 6 s for a silent database. */
const TIMEOUT_MS = 7_000;
/** A request, or a turn of the event loop, that takes longer is slow, s. */
const SLOW_REQUEST_S = 2.5;
const SLOW_TURN_S = 0.5;

/** An answer to a health check. */
interface HealthAnswer {
  readonly process: ServiceProcess;
  /** Ms after the start of the fault at which the answer came. */
  readonly atMs: number;
  /** What was asked: the checks that fail, or null when nothing answers. */
  readonly failed: readonly string[] | null;
  readonly isReady: boolean;
}

/** Counts of the metrics of one process that tell overload. */
interface Load {
  readonly refused: number;
  readonly slow: number;
  readonly lagS: number;
}

const agent = new Agent({ keepAlive: false });

/** Asks the metrics port, which names the causes. */
async function askReadiness(process: ServiceProcess, since: number): Promise<HealthAnswer> {
  const answer = await send(process.metricsBase, 'GET', '/readyz', { timeoutMs: TIMEOUT_MS, agent }).catch(
    () => undefined,
  );
  const atMs = Date.now() - since;
  if (answer === undefined) return { process, atMs, failed: null, isReady: false };
  const { checks = [] } = JSON.parse(answer.body.toString()) as {
    checks?: readonly { readonly name: string; readonly ok: boolean }[];
  };
  const failed = checks.filter(({ ok }) => !ok).map(({ name }) => name);
  return { process, atMs, failed, isReady: answer.status === 200 };
}

const REQUESTS = 'tributary_http_request_duration_seconds';
const HEALTH = /route="\/(healthz|readyz)"/;

/** Reads what one process counts. Undefined when it does not answer. */
async function readLoad(process: ServiceProcess): Promise<Load | undefined> {
  const answer = await send(process.metricsBase, 'GET', '/metrics', { timeoutMs: TIMEOUT_MS, agent }).catch(
    () => undefined,
  );
  if (answer === undefined) return undefined;
  const lines = answer.body.toString().split('\n');
  const total = (name: string, isMeant: (labels: string) => boolean) =>
    lines
      .filter((line) => line.startsWith(name) && !HEALTH.test(line) && isMeant(line))
      .reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0);
  const all = total(`${REQUESTS}_count`, () => true);
  const quick = total(`${REQUESTS}_bucket`, (line) => line.includes(`le="${SLOW_REQUEST_S}"`));
  return {
    refused: total(`${REQUESTS}_count`, (line) => line.includes('status="503"')),
    slow: all - quick,
    lagS: total('nodejs_eventloop_lag_p99_seconds', () => true),
  };
}

/** What was seen until the end of a fault. */
interface Seen {
  readonly answers: readonly HealthAnswer[];
  readonly lastedMs: number;
  /** How long the fault was complete, ms: a server takes seconds to stop, for example. */
  readonly completeMs: number;
  readonly before: readonly (Load | undefined)[];
  readonly after: readonly (Load | undefined)[];
}

interface Ended extends Seen {
  readonly says: Sign;
  /** The process that the fault concerns; undefined when it concerns all. */
  readonly affected: ServiceProcess | undefined;
  readonly beats: readonly Beat[];
}

interface Said {
  /** False when the fault was so short that nothing had to be noticed. */
  readonly wasAsked: boolean;
  readonly missing: readonly string[];
}

/** Watches all processes from its start to its end. */
export class Watch {
  readonly #processes: readonly ServiceProcess[];
  readonly #answers: HealthAnswer[] = [];
  readonly #since = Date.now();
  readonly #before: Promise<readonly (Load | undefined)[]>;
  #completeAt = this.#since;
  #isOver = false;

  constructor(processes: readonly ServiceProcess[]) {
    this.#processes = processes;
    this.#before = this.#readLoads();
    void this.#watch();
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /** The fault is complete: from now on the service has to notice it. */
  begin(): void {
    this.#completeAt = Date.now();
  }

  async #readLoads(): Promise<readonly (Load | undefined)[]> {
    return await Promise.all(this.#processes.map(readLoad));
  }

  async #watch(): Promise<void> {
    while (!this.#isOver) {
      for (const process of this.#processes)
        void askReadiness(process, this.#since).then((answer) => this.#answers.push(answer));
      await sleep(EVERY_MS);
    }
  }

  /** Ends the watch at the end of the fault. Returns what was seen until then. */
  async end(): Promise<Seen> {
    const lastedMs = Date.now() - this.#since;
    const completeMs = Date.now() - this.#completeAt;
    const answers = [...this.#answers];
    this.#isOver = true;
    const [before, after] = await Promise.all([this.#before, this.#readLoads()]);
    return { answers, lastedMs, completeMs, before, after };
  }

  /** Returns what the service should have said during the fault and did not. */
  compare(one: Ended): Said {
    const { says, affected, answers, lastedMs, completeMs } = one;
    const concerned = 'at' in says && says.at === 'one process' ? [affected] : this.#processes;
    const wrong = (isRight: (process: ServiceProcess) => boolean, text: string) =>
      concerned.flatMap((process) =>
        process === undefined || isRight(process) ? [] : [`${process.base} ${text}`],
      );
    const seenAt = (process: ServiceProcess) => answers.filter((each) => each.process === process);
    // The other processes go on.
    const missing = affected === undefined ? [] : this.#notServing(one);
    switch (says.kind) {
      case 'check': {
        // A shorter fault may end before it must be noticed.
        if (completeMs < says.withinMs + EVERY_MS) return { wasAsked: false, missing };
        const names = (process: ServiceProcess) =>
          seenAt(process).some(
            ({ failed, isReady }) =>
              failed?.some((check) => says.checks.includes(check)) === true && !(isReady && says.isNotReady),
          );
        const isMissed = (process: ServiceProcess) => says.mayMiss === true && this.#isServing(process, one);
        const text = `did not name ${says.checks.join(' or ')}`;
        return {
          wasAsked: true,
          missing: [...missing, ...wrong((process) => names(process) || isMissed(process), text)],
        };
      }
      case 'away': {
        // A frozen process answers nothing, so its health checks are still open.
        const isAway = (process: ServiceProcess) =>
          seenAt(process).some(({ isReady }) => !isReady) ||
          Math.max(0, ...seenAt(process).map(({ atMs }) => atMs)) < lastedMs - EVERY_MS * 3;
        return {
          wasAsked: true,
          missing: [...missing, ...wrong(isAway, 'answered as if nothing was wrong')],
        };
      }
      case 'fair refusals':
      case 'slow': {
        const unsaid = isSaid(one) ? [] : ['no metric shows refused or slow requests'];
        const unfair = says.kind === 'slow' ? [] : this.#unfairShares(one);
        return { wasAsked: true, missing: [...unsaid, ...unfair] };
      }
      case 'serves':
        return { wasAsked: true, missing: this.#notServing(one) };
    }
  }

  /** Returns how many webhooks were sent to a process, and how many of them it accepted. */
  #countBeats(
    process: ServiceProcess,
    { beats }: Ended,
  ): { readonly sent: number; readonly accepted: number } {
    const mine = beats.filter((beat) => beat.process === process);
    return { sent: mine.length, accepted: mine.filter(({ isAccepted }) => isAccepted).length };
  }

  /** Whether a process has accepted nearly all webhooks: all but one that met the start of the fault. */
  #isServing(process: ServiceProcess, one: Ended): boolean {
    const { sent, accepted } = this.#countBeats(process, one);
    return sent - accepted <= 1 && sent > 2;
  }

  #unfairShares(one: Ended): string[] {
    return this.#processes.flatMap((process) => {
      const { sent, accepted } = this.#countBeats(process, one);
      if (accepted * 2 >= sent) return [];
      return [`${process.base} accepted ${accepted} of ${sent} webhooks of another app`];
    });
  }

  #notServing(one: Ended): string[] {
    return this.#processes
      .filter((process) => process !== one.affected && this.#countBeats(process, one).accepted === 0)
      .map(({ base }) => `${base} accepted no webhook`);
  }
}

/** Whether the metrics of a process show more refused or slow requests than before. */
function isSaid({ says, before, after }: Ended): boolean {
  return after.some((now, n) => {
    const then = before[n];
    // A process that can't answer within the time that Prometheus waits for is reported by its absence.
    if (now === undefined || then === undefined) return says.kind === 'slow';
    if (now.refused > then.refused) return true;
    return says.kind === 'slow' && (now.slow > then.slow || now.lagS > SLOW_TURN_S);
  });
}
