import { writeFile } from 'node:fs/promises';
import { Agent } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { Client, Connection, WorkflowNotFoundError } from '@temporalio/client';
import { historyToJSON } from '@temporalio/common/lib/proto-utils.js';
import { PAYOUT_REQUESTED } from '../../src/domain/signals.ts';
import { workflowIdOf } from '../../src/domain/workflow-id.ts';
import { awaitedQueue } from '../../temporal/names.ts';
import type { payout } from '../../workflows/payout.ts';
import { send } from './answers.ts';
import { exportRequest } from './load.ts';
import type { Load } from './load.ts';
import { duePayment, planKnownUser, PROBED_APP } from './plan.ts';
import type { Fact, Story } from './plan.ts';
import type { ServiceProcess } from './service-process.ts';
import type { Stack } from './stack.ts';

/*
 * Requests beside the load, of an app of their own: one webhook a second at each process while a fault lasts, and what must
 * succeed at each process after it. Each webhook is a payment that is due at once, so each export pays something.
 */

const BEAT_MS = 1_000;
const BEAT_TIMEOUT_MS = 6_000;
/** The pauses between attempts, which do not wait for each other. */
const TRY_AFTER_MS = [250, 250, 500] as const;
const TRY_LATER_MS = 1_000;
const TRY_TIMEOUT_MS = 20_000;
const ASK_TIMEOUT_MS = 10_000;
/** After this time, a recovery is given up. */
const GIVE_UP_MS = 120_000;
const USER = 'probe';
const MINOR = 1_999;

/** What a webhook of a probe met at one process. */
export interface Beat {
  readonly process: ServiceProcess;
  readonly tookMs: number;
  readonly isAccepted: boolean;
}

/** The first successes at one process, ms after the end of a fault. */
export interface Recovery {
  readonly process: number;
  readonly readyMs: number;
  readonly webhookMs: number;
  readonly exportMs: number;
  /** When the Temporal server itself accepted calls for the workflow of that export: its own recovery is not the service's. */
  readonly temporalMs: number;
}

/** A request of the probe's creator that is settled. */
interface SettledRequest {
  readonly requestId: string;
  readonly installationId: string;
}

type EventFact = Fact & { readonly kind: 'event' };

/** Waits for the first success of a request whose attempts don't wait for each other. Returns when it was, ms after `from`. */
async function firstSuccess(from: number, once: () => Promise<boolean>): Promise<number> {
  const first = { ms: Infinity };
  const attempt = async () => {
    if (await once().catch(() => false)) first.ms = Math.min(first.ms, Date.now() - from);
  };
  for (let n = 0; first.ms === Infinity && Date.now() - from < GIVE_UP_MS; n += 1) {
    // An attempt may hang on a connection of the fault.
    void attempt();
    await sleep(TRY_AFTER_MS[n] ?? TRY_LATER_MS);
  }
  return first.ms;
}

/** Waits for the first success of a call that is made once at a time. Returns when it was, ms after `from`. */
async function firstInTurn(from: number, once: () => Promise<boolean>): Promise<number> {
  while (Date.now() - from < GIVE_UP_MS) {
    if (await once().catch(() => false)) return Date.now() - from;
    await sleep(TRY_AFTER_MS[0]);
  }
  return Infinity;
}

export class Probes {
  readonly #stack: Stack;
  readonly #load: Load;
  #settled: SettledRequest | undefined;
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 256 });
  readonly #facts: Fact[] = [...planKnownUser(USER, PROBED_APP, 0)];
  readonly #accepted = new Set<string>();
  #exports = 0;

  constructor(stack: Stack, load: Load) {
    this.#stack = stack;
    this.#load = load;
  }

  /** Everything that was sent, for the model. */
  get story(): Story {
    return { app: PROBED_APP, creator: 0, facts: this.#facts };
  }

  /** Sends the touch of the user, or what was not accepted yet, until it is accepted. */
  async complete(): Promise<void> {
    const facts = this.#facts.filter(({ id }) => !this.#accepted.has(id));
    for (const { id } of facts) this.#accepted.add(id);
    const after = (fact: Fact) => fact.after.filter((id) => facts.some((other) => other.id === id));
    await this.#load.play({
      stories: [{ ...this.story, facts: facts.map((fact) => ({ ...fact, after: after(fact) })) }],
      exports: [],
    });
  }

  #nextPayment(process: number): EventFact {
    const n = this.#facts.length;
    const fact: EventFact = {
      id: `probe ${n}`,
      sentAt: 0,
      after: [],
      copies: [],
      process,
      kind: 'event',
      event: duePayment(USER, `880${n}`, MINOR),
      skewMs: 0,
    };
    this.#facts.push(fact);
    return fact;
  }

  async #sendWebhook({ base }: ServiceProcess, fact: EventFact, timeoutMs: number): Promise<boolean> {
    const [route, options] = this.#load.requestOf(fact, PROBED_APP);
    const answer = await send(base, 'POST', route, { ...options, timeoutMs, agent: this.#agent });
    if (answer.status !== 503) this.#load.answers.answered('probe', answer);
    if (answer.status === 200) this.#accepted.add(fact.id);
    return answer.status === 200;
  }

  /** Sends a webhook a second to each process, until `isOver`. */
  async beat(isOver: () => boolean): Promise<readonly Beat[]> {
    const beats: Promise<Beat>[] = [];
    const one = async (process: ServiceProcess, n: number): Promise<Beat> => {
      const from = Date.now();
      const sent = this.#sendWebhook(process, this.#nextPayment(n), BEAT_TIMEOUT_MS);
      const isAccepted = await sent.catch(() => false);
      return { process, tookMs: Date.now() - from, isAccepted };
    };
    while (!isOver()) {
      beats.push(...this.#stack.processes.map(async (process, n) => await one(process, n)));
      await sleep(BEAT_MS);
    }
    return await Promise.all(beats);
  }

  /** Measures when each process is ready, accepts a webhook and pays an export again after a fault. */
  async recover(from: number): Promise<readonly Recovery[]> {
    return await Promise.all(
      this.#stack.processes.map(async (process, n) => {
        const fact = this.#nextPayment(n);
        const key = `probe-export-${(this.#exports += 1)}`;
        const [readyMs, webhookMs, exportMs, temporalMs] = await Promise.all([
          firstSuccess(from, async () => {
            const options = { timeoutMs: TRY_TIMEOUT_MS, agent: this.#agent };
            return (await send(process.base, 'GET', '/readyz', options)).status === 200;
          }),
          firstSuccess(from, async () => await this.#sendWebhook(process, fact, TRY_TIMEOUT_MS)),
          firstSuccess(from, async () => await this.#sendExport(process, key)),
          firstInTurn(from, async () => await this.#askTemporal()),
        ]);
        // Nobody knows whether an export that was not answered has paid.
        if (exportMs === Infinity) await this.#load.pay(PROBED_APP, 0, key, n);
        return { process: n, readyMs, webhookMs, exportMs, temporalMs };
      }),
    );
  }

  /** Writes the history of the probe's payouts into a file, which shows what a late export waited for. */
  async keepHistory(file: string): Promise<void> {
    const connection = await Connection.connect({ address: this.#temporalAddress });
    try {
      const { workflow } = new Client({ connection });
      const history = await connection.withDeadline(Date.now() + ASK_TIMEOUT_MS, () =>
        workflow.getHandle(this.#payoutsWorkflow).fetchHistory(),
      );
      await writeFile(file, historyToJSON(history));
    } finally {
      await connection.close();
    }
  }

  /** The Temporal server, past the proxies. */
  get #temporalAddress(): string {
    return `127.0.0.1:${this.#stack.temporal.port}`;
  }

  get #payoutsWorkflow(): string {
    return workflowIdOf('payout', this.#load.affiliateOf(PROBED_APP, 0));
  }

  /**
   * Whether the Temporal server, past the proxies, takes a signal for the workflow of the probe's payouts: that of a request that
   * was settled before, which changes nothing. Before the first one, whether it can say that there is no such workflow.
   */
  async #askTemporal(): Promise<boolean> {
    const affiliateId = this.#load.affiliateOf(PROBED_APP, 0);
    const workflowId = this.#payoutsWorkflow;
    const connection = await Connection.connect({ address: this.#temporalAddress });
    try {
      const { workflow } = new Client({ connection });
      this.#settled ??= await this.#findSettled(affiliateId);
      const settled = this.#settled;
      await connection.withDeadline(Date.now() + ASK_TIMEOUT_MS, async () => {
        if (settled === undefined) return await workflow.getHandle(workflowId).describe();
        return await workflow.signalWithStart<typeof payout, [string]>('payout', {
          workflowId,
          taskQueue: awaitedQueue(settled.installationId),
          args: [{ affiliateId }],
          signal: PAYOUT_REQUESTED,
          signalArgs: [settled.requestId],
        });
      });
      return true;
    } catch (error) {
      // After the loss of its data, it knows none.
      return error instanceof WorkflowNotFoundError;
    } finally {
      await connection.close();
    }
  }

  async #findSettled(affiliateId: string): Promise<SettledRequest | undefined> {
    return await this.#stack.sql().maybe<SettledRequest>`
      select r.id as request_id, i.id as installation_id
        from payout_requests r, installation i
       where r.affiliate_id = ${affiliateId} and r.status <> 'open' limit 1`;
  }

  async #sendExport({ base }: ServiceProcess, key: string): Promise<boolean> {
    const affiliateId = this.#load.affiliateOf(PROBED_APP, 0);
    const [route, options] = exportRequest(this.#load.tenant, PROBED_APP, affiliateId, key);
    const answer = await send(base, 'POST', route, {
      ...options,
      timeoutMs: TRY_TIMEOUT_MS,
      agent: this.#agent,
    });
    if (answer.status !== 503) this.#load.answers.answered('probe export', answer);
    if (answer.status !== 200) return false;
    const { payoutId, body: csv } = answer;
    this.#load.payouts.push({ app: PROBED_APP, affiliateId, key, payoutId, csv });
    return true;
  }

  close(): void {
    this.#agent.destroy();
  }
}
