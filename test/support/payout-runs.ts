import { randomUUID } from 'node:crypto';
import { eventually } from './eventually.ts';
import type { Founder } from './founder.ts';
import { runOn } from './postgres-admin.ts';

/** The longest wait for transactions that began before an entry, ms. */
const LONGEST_WAIT_MS = 2_000;

export interface Run {
  readonly id: string;
  readonly kind: 'pay' | 'resend';
  readonly status: string;
  readonly totalCents: number;
  readonly itemCount: number;
  readonly paidCount: number;
  readonly paidCents: number;
  readonly code?: string;
}

export interface RunFile {
  readonly id: string;
  readonly sha256: string;
}

/** Lets payees count that were set before. */
export const waitForPayees = async (databaseUrl: string): Promise<void> => {
  await runOn(
    databaseUrl,
    `alter table payees disable trigger payees_guard;
     update payees set set_at = set_at - interval '4 days', counts_from = counts_from - interval '4 days';
     alter table payees enable trigger payees_guard`,
  );
};

/** The calls of a founder about payout runs. */
export class RunCalls {
  readonly founder: Founder;

  constructor(founder: Founder) {
    this.founder = founder;
  }

  get #base(): string {
    return `/apps/${this.founder.app.id}`;
  }

  #path({ id }: Pick<Run, 'id'>): string {
    return `${this.#base}/payout-runs/${id}`;
  }

  async newCreator(name: string): Promise<string> {
    return (await this.founder.ok<{ id: string }>('POST', `${this.#base}/affiliates`, { name })).id;
  }

  /** Enters a bonus, or a deduction, that is due at once. */
  async add(creator: string, amountCents: number, dueAt?: number): Promise<{ readonly id: string }> {
    const added = await this.founder.ok<{ id: string }>(
      'POST',
      `${this.#base}/affiliates/${creator}/entries`,
      {
        amountCents,
        category: 'other',
        reason: 'A test',
        externalId: randomUUID(),
        ...(dueAt && { dueAt }),
      },
    );
    await this.#untilCounted();
    return added;
  }

  /**
   * Waits until the transactions are over that began before now: a run pays as of the oldest open one. A test that holds one open is not
   * delayed for long.
   */
  async #untilCounted(): Promise<void> {
    const { sql } = this.founder;
    if (sql === null) return;
    const { now } = await sql.one<{ now: string }>`select clock_timestamp()::text as now`;
    const isOver = async () =>
      (await sql.maybe`
        select from pg_stat_activity
         where datname = current_database() and pid <> pg_backend_pid() and xact_start < ${now}::timestamptz limit 1`) ===
      undefined;
    await eventually('earlier transactions are over', isOver, LONGEST_WAIT_MS).catch(() => null);
  }

  async setPayee(creator: string, payee: object): Promise<void> {
    await this.founder.ok('PUT', `${this.#base}/affiliates/${creator}/payee`, payee);
  }

  async draft(minimumCents = 0, withoutPayee = 'include', kind: Run['kind'] = 'pay'): Promise<Run> {
    const body = { minimumCents, withoutPayee, ...(kind === 'pay' ? {} : { kind }) };
    return await this.founder.ok<Run>('POST', `${this.#base}/payout-runs`, body);
  }

  async approve(run: Run, expectedTotalCents = run.totalCents) {
    return await this.founder.call<Run>('POST', `${this.#path(run)}/approve`, {
      body: { expectedTotalCents },
    });
  }

  async cancel(run: Run): Promise<Run> {
    return await this.founder.ok<Run>('POST', `${this.#path(run)}/cancel`);
  }

  async read(run: Run): Promise<Run> {
    return await this.founder.ok<Run>('GET', this.#path(run));
  }

  async list<T>(run: Run, what: 'items' | 'excluded' | 'files'): Promise<T[]> {
    return (await this.founder.ok<{ items: T[] }>('GET', `${this.#path(run)}/${what}`)).items;
  }

  async download(run: Run, file: RunFile | undefined): Promise<string> {
    return (await this.founder.call('POST', `${this.#path(run)}/files/${file?.id}/download`)).text;
  }

  async settled(run: Run): Promise<Run> {
    await eventually('the run is settled', async () => (await this.read(run)).status !== 'approved', 20_000);
    return await this.read(run);
  }

  /** Drafts a run, approves it and waits until it is settled. */
  async run(minimumCents = 0, withoutPayee = 'include', kind: Run['kind'] = 'pay'): Promise<Run> {
    const run = await this.draft(minimumCents, withoutPayee, kind);
    const { status, body } = await this.approve(run);
    if (status !== 202) throw new Error(`the run was not approved: ${status} ${body.code}`);
    return await this.settled(run);
  }
}
