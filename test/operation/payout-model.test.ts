import { strict as assert } from 'node:assert';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { startChildService } from '../support/child-service.ts';
import type { ChildService } from '../support/child-service.ts';
import { expectConsistentLedger } from '../support/consistent-ledger.ts';
import { createTestDatabase } from '../support/database.ts';
import type { TestDatabase } from '../support/database.ts';
import { setUpFounder } from '../support/founder.ts';
import type { Founder } from '../support/founder.ts';
import { isBack, PayoutModel } from '../support/payout-model.ts';
import type { ModelDraft, ModelItem, ModelPayout, RailRow } from '../support/payout-model.ts';
import { RunCalls } from '../support/payout-runs.ts';
import type { Run, RunFile } from '../support/payout-runs.ts';
import { rounds } from '../support/rounds.ts';

// `PAYOUT_MODEL_MINUTES=30 npm run test:operation -- test/operation/payout-model.test.ts` plays random sequences for half an hour;
// `PAYOUT_MODEL_SEED=1` plays those of a seed, and `PAYOUT_MODEL_STEPS=1` prints what is played.
const SEED = Number(process.env['PAYOUT_MODEL_SEED'] ?? 1);
const MINUTES = Number(process.env['PAYOUT_MODEL_MINUTES'] ?? 0);
const STEPS = 60;
const CREATORS = 3;
const ENV = { RATE_LIMIT_ACCOUNT: '0', RATE_LIMIT_REPORTS: '0', RATE_LIMIT_ADDRESS: '0' };

let database: TestDatabase;
let child: ChildService;

beforeAll(async () => {
  database = await createTestDatabase();
  child = await startChildService(database.url, ENV);
});
afterAll(async () => {
  await child.kill();
  await database.drop();
});

/** Returns numbers below 1 that a seed determines (mulberry32). */
function randomOf(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d_2b_79_f5) | 0;
    let n = Math.imul(state ^ (state >>> 15), 1 | state);
    n = (n + Math.imul(n ^ (n >>> 7), 61 | n)) ^ n;
    return ((n ^ (n >>> 14)) >>> 0) / 4_294_967_296;
  };
}

interface ListedItem {
  readonly id: string;
  readonly affiliateId: string;
  readonly expectedCents: number;
  readonly outcome: string | null;
  readonly payoutId: string | null;
  readonly transferState: string | null;
}

/** Plays a sequence to the service and to the model. */
class Sequence {
  readonly model = new PayoutModel();
  /** The runs that are settled and whose files were uploaded, each once. */
  readonly uploaded: string[] = [];
  draft: (ModelDraft & { readonly run: Run }) | null = null;
  kills = 0;
  /** The contradictions that the founder has decided. */
  decisions = 0;
  #payments = 0;
  readonly #founder: Founder;
  readonly #runs: RunCalls;
  readonly #random: () => number;

  constructor(founder: Founder, seed: number) {
    this.#founder = founder;
    this.#runs = new RunCalls(founder);
    this.#random = randomOf(seed);
  }

  get #base(): string {
    return `/apps/${this.#founder.app.id}`;
  }

  #below(most: number): number {
    return Math.floor(this.#random() * most);
  }

  #oneOf<T>(all: readonly T[]): T | undefined {
    return all[this.#below(all.length)];
  }

  async play(): Promise<void> {
    for (let n = 0; n < CREATORS; n += 1) this.model.addCreator(await this.#runs.newCreator(`Creator ${n}`));
    for (let step = 0; step < STEPS; step += 1) await this.#step();
    await this.check();
  }

  async #step(): Promise<void> {
    const steps: readonly (readonly [number, string, () => Promise<void>])[] = [
      [9, 'bonus', async () => await this.#add(1 + this.#below(500))],
      [3, 'deduction', async () => await this.#add(-1 - this.#below(300))],
      [1, 'block', async () => await this.#block(false)],
      [4, 'lift a block', async () => await this.#block(true)],
      [2, 'export', async () => await this.#export()],
      [6, 'draft', async () => await this.#draftPay()],
      [7, 'draft a resend', async () => await this.#draftResend()],
      [4, 'approve', async () => await this.#approve()],
      [1, 'cancel', async () => await this.#cancel()],
      [7, 'the payment service goes on', async () => this.#goOn()],
      [10, 'import a report', async () => await this.#import()],
      [2, 'send by hand', async () => await this.#sendByHand()],
      [5, 'decide', async () => await this.#decide()],
      [1, 'mark all', async () => await this.#markAll()],
    ];
    let left = this.#below(steps.reduce((all, [weight]) => all + weight, 0));
    for (const [weight, name, run] of steps) {
      left -= weight;
      if (left >= 0) continue;
      if (process.env['PAYOUT_MODEL_STEPS'] !== undefined) process.stderr.write(`${name}\n`);
      return await run();
    }
  }

  async #add(cents: number): Promise<void> {
    const creator = this.#oneOf([...this.model.creators.values()]);
    if (creator === undefined) return;
    await this.#runs.add(creator.id, cents);
    creator.entries.push({ cents, isPaid: false });
  }

  /** Blocks the payouts of a creator, or lifts the block of one. */
  async #block(wasBlocked: boolean): Promise<void> {
    const creator = this.#oneOf(
      [...this.model.creators.values()].filter(({ isBlocked }) => isBlocked === wasBlocked),
    );
    if (creator === undefined) return;
    const state = creator.isBlocked ? 'lifted' : 'blocked';
    await this.#founder.ok('POST', `${this.#base}/affiliates/${creator.id}/payout-blocks`, {
      state,
      reason: 'A test',
    });
    creator.isBlocked = !creator.isBlocked;
  }

  async #export(): Promise<void> {
    const creator = this.#oneOf([...this.model.creators.values()]);
    if (creator === undefined) return;
    const answer = await this.#founder.exportCsv(creator.id);
    assert.equal(answer.status, creator.isBlocked ? 409 : 200);
    if (creator.isBlocked) return;
    const payoutId = answer.headers.get('x-payout-id');
    assert.equal(payoutId !== null, this.model.due(creator.id) > 0);
    this.model.export(creator.id, payoutId);
  }

  async #draftPay(): Promise<void> {
    const minimum = this.#below(200);
    const run = await this.#runs.draft(minimum);
    await this.#expectDraft(run, this.model.draftPay(run.id, minimum));
  }

  async #draftResend(): Promise<void> {
    const run = await this.#runs.draft(0, 'include', 'resend');
    await this.#expectDraft(run, this.model.draftResend(run.id));
  }

  async #expectDraft(run: Run, draft: ModelDraft): Promise<void> {
    const items = await this.#runs.list<ListedItem>(run, 'items');
    const ofModel = draft.items.map(({ creatorId, cents, payoutId }) => `${creatorId} ${cents} ${payoutId}`);
    const listed = items.map(
      ({ affiliateId, expectedCents, payoutId }) => `${affiliateId} ${expectedCents} ${payoutId}`,
    );
    assert.deepEqual(listed.toSorted(), ofModel.toSorted());
    this.draft = { ...draft, run };
    if (this.#below(2) === 0) await this.#approve();
  }

  async #cancel(): Promise<void> {
    if (this.draft === null) return;
    await this.#runs.cancel(this.draft.run);
    this.draft = null;
  }

  /** Approves the draft, sometimes twice, with bonuses and a kill of the service in between. */
  async #approve(): Promise<void> {
    const { draft } = this;
    if (draft === null) return;
    this.draft = null;
    const { run } = draft;
    if (draft.items.length === 0) {
      assert.equal((await this.#runs.approve(run)).body.code, 'payout_run_not_possible');
      return;
    }
    const settled = draft.items.map((item) => ({ item, isSettled: this.model.isSettled(draft, item) }));
    const times = 1 + this.#below(2);
    const answers = await Promise.all(
      Array.from({ length: times }, async () => await this.#runs.approve(run)),
    );
    for (const { status } of answers) assert.equal(status, 202);
    if (this.#below(3) === 0) await this.#add(1 + this.#below(500));
    if (this.#below(12) === 0) await this.#kill();
    const after = await this.#runs.settled(run);
    assert.equal(after.status, 'settled');
    const items = await this.#runs.list<ListedItem>(run, 'items');
    for (const { item, isSettled } of settled) this.#settle(draft, items, item, isSettled);
    const expected = settled.filter(({ isSettled }) => isSettled);
    assert.deepEqual(
      [after.paidCount, after.paidCents],
      [expected.length, expected.reduce((total, { item }) => total + item.cents, 0)],
    );
    await this.#upload(run, items, expected.length);
  }

  #settle(draft: ModelDraft, items: readonly ListedItem[], item: ModelItem, isSettled: boolean): void {
    const listed = items.find(({ affiliateId, payoutId }) =>
      item.payoutId === null ? affiliateId === item.creatorId : payoutId === item.payoutId,
    );
    const outcome = draft.kind === 'pay' ? 'paid' : 'resent';
    assert.equal(listed?.outcome === outcome, isSettled);
    if (!isSettled || listed === undefined) return;
    if (draft.kind === 'pay') this.model.pay(draft, item, listed.payoutId ?? '');
    else this.model.resend(item.payoutId ?? '');
  }

  async #kill(): Promise<void> {
    this.kills += 1;
    await sleep(this.#below(300));
    await child.kill();
    child = await startChildService(database.url, ENV);
    this.#founder.url = child.url;
  }

  /** Uploads the files of a run: each row is sent. The payment service denies some batches, which the founder uploads again. */
  async #upload(run: Run, items: readonly ListedItem[], count: number): Promise<void> {
    const texts: string[] = [];
    for (const file of await this.#runs.list<RunFile>(run, 'files'))
      texts.push(await this.#runs.download(run, file));
    const lines = texts.flatMap((text) => text.trim().split('\r\n').slice(1));
    assert.equal(lines.length, count);
    const isDenied = this.#below(2) === 0;
    for (const line of lines) {
      const item = items.find(({ id }) => line.startsWith(id));
      const payout = this.model.payout(item?.payoutId ?? '');
      assert.ok(line.includes(`,${(payout.cents / 100).toFixed(2)},USD`));
      for (const status of isDenied ? (['Denied', 'Pending'] as const) : (['Pending'] as const)) {
        this.#payments += 1;
        const reference = `T${this.#payments}`;
        this.model.send(payout.id, { runId: run.id, itemId: item?.id ?? '', reference, status });
      }
    }
    this.uploaded.push(run.id);
  }

  /** Some pending payments arrive or come back, and so do a few that had arrived. */
  #goOn(): void {
    for (const { payments } of this.model.payouts.values()) {
      for (const payment of payments) {
        if (payment.runId === null) continue;
        if (payment.status === 'Pending' && this.#below(2) === 0)
          payment.status = this.#below(3) === 0 ? 'Completed' : 'Returned';
        else if (payment.status === 'Completed' && this.#below(10) === 0) payment.status = 'Returned';
      }
    }
  }

  /** Imports the report of any run, with some of its rows, and as often as it comes. Batches are in one report, or each in its own. */
  async #import(): Promise<void> {
    const runId = this.#oneOf(this.uploaded);
    if (runId === undefined) return;
    const payments = this.model.paymentsOf(runId);
    const named = new Set(payments.map(({ itemId }) => itemId).filter(() => this.#below(4) > 0));
    const rows = payments
      .filter(({ itemId }) => named.has(itemId))
      .map(({ itemId, reference, status }) => ({ itemId: itemId ?? '', reference, status }));
    const batches = [
      rows.filter(({ status }) => status === 'Denied'),
      rows.filter(({ status }) => status !== 'Denied'),
    ];
    const order = this.#below(3);
    const reports = order === 0 ? [rows] : order === 1 ? batches : batches.toReversed();
    for (const report of reports) await this.#importReport(runId, report);
  }

  async #importReport(runId: string, rows: readonly RailRow[]): Promise<void> {
    const lines = rows.map(({ itemId, reference, status }) => `${reference},${status},${itemId}`);
    const csv = ['Transaction ID,Status,Unique ID', ...lines].join('\n');
    const path = `${this.#base}/payout-runs/${runId}/results`;
    const { sentCount, returnedCount } = await this.#founder.ok<{ sentCount: number; returnedCount: number }>(
      'POST',
      `${path}/preview`,
      { csv },
    );
    const body = { csv, expected: { sentCount, returnedCount } };
    const answers = await Promise.all(
      Array.from(
        { length: 1 + this.#below(2) },
        async () => await this.#founder.call('POST', path, { body }),
      ),
    );
    for (const { status } of answers) assert.equal(status, 200);
    this.model.import(runId, rows);
  }

  /** The founder looks up where the money is of a payout that reports contradict, or that came back unnoticed, and states it. */
  async #decide(): Promise<void> {
    const unnoticed = [...this.model.payouts.values()].filter(
      ({ stated, payments }) => stated === 'sent' && payments.every(isBack),
    );
    const payout = this.#oneOf([...this.model.contradicted(), ...unnoticed]);
    if (payout === undefined || payout.payments.some(({ status }) => status === 'Pending')) return;
    const state = async (next: string) =>
      await this.#founder.ok('POST', `${this.#base}/payouts/${payout.id}/transfers`, { state: next });
    this.decisions += 1;
    if (payout.stated === 'returned') await state('return_withdrawn');
    const cameBack = payout.payments.every(isBack);
    if (cameBack) await state('returned');
    payout.stated = cameBack ? 'returned' : 'sent';
    payout.cameBack = true;
    payout.isContradicted = false;
  }

  /** The founder transfers returned money by hand, and says so. */
  async #sendByHand(): Promise<void> {
    const payout = this.#oneOf(this.model.returned());
    if (payout === undefined) return;
    await this.#founder.ok('POST', `${this.#base}/payouts/${payout.id}/transfers`, { state: 'sent' });
    this.model.send(payout.id, { runId: null, itemId: null, reference: '', status: 'Completed' });
    payout.stated = 'sent';
    payout.statedReference = '';
  }

  /** The founder says that all payouts of a run were sent. Only of one whose payments have all arrived. */
  async #markAll(): Promise<void> {
    const runId = this.uploaded.find((id) =>
      this.model.paymentsOf(id).every(({ status }) => status === 'Completed' || status === 'Denied'),
    );
    if (runId === undefined) return;
    await this.#founder.ok('POST', `${this.#base}/payout-runs/${runId}/transfers`, { state: 'sent' });
    this.model.markAll(runId);
  }

  /** Compares what is due, the payouts and the returned ones. */
  async check(): Promise<void> {
    const payouts = await database.sql<{
      id: string;
      affiliateId: string;
      totalCents: number;
      stated: string;
    }>`
      select p.id, p.affiliate_id, p.total_cents,
             -- A return that was withdrawn leaves it sent.
             coalesce((select case t.state when 'return_withdrawn' then 'sent' else t.state end from payout_transfers t where t.payout_id = p.id and t.position > coalesce((
                         select max(i.return_position) from payout_run_items i where i.payout_id = p.id), 0)
                        order by t.position desc limit 1), 'nothing') as stated
        from payouts p where p.app_id = ${this.#founder.app.id}`;
    const ofModel = [...this.model.payouts.values()].map(({ id, creatorId, cents, stated }: ModelPayout) => ({
      id,
      affiliateId: creatorId,
      totalCents: cents,
      stated,
    }));
    const byId = (a: { readonly id: string }, b: { readonly id: string }) => (a.id < b.id ? -1 : 1);
    assert.deepEqual([...payouts].toSorted(byId), ofModel.toSorted(byId));
    const due = await database.sql<{ id: string; cents: number }>`
      select affiliate_id as id, sum(amount_cents)::float8 as cents from commissions
       where app_id = ${this.#founder.app.id} and status <> 'paid' group by 1`;
    for (const { id } of this.model.creators.values()) {
      assert.deepEqual([id, due.find((row) => row.id === id)?.cents ?? 0], [id, this.model.due(id)]);
    }
    interface Returns {
      readonly count: number;
      readonly totalCents: number;
    }
    const list = await this.#founder.ok<Returns & { readonly contradicted: Returns }>(
      'GET',
      `${this.#base}/payouts/returned`,
    );
    for (const [listed, known] of [
      [list, this.model.returned()],
      [list.contradicted, this.model.contradicted()],
    ] as const)
      assert.deepEqual(
        [listed.count, listed.totalCents],
        [known.length, known.reduce((total, { cents }) => total + cents, 0)],
      );
  }
}

async function play(seed: number): Promise<Sequence> {
  const founder = await setUpFounder({ sql: database.sql, url: child.url });
  const sequence = new Sequence(founder, seed);
  try {
    await sequence.play();
  } catch (error) {
    throw new Error(`the sequence of PAYOUT_MODEL_SEED=${seed} differs from the model`, { cause: error });
  }
  return sequence;
}

// @promise run-model
test(
  'random runs, exports, entries, blocks, reports and kills leave what the model says, and no money is sent twice',
  async () => {
    const endsAt = Date.now() + MINUTES * 60_000;
    const counts = { sequences: 0, payouts: 0, resent: 0, decisions: 0, kills: 0 };
    for (let n = 0; n < rounds(2, 12) || Date.now() < endsAt; n += 1) {
      const { model, kills, decisions } = await play(SEED + n);
      counts.sequences += 1;
      counts.kills += kills;
      counts.decisions += decisions;
      counts.payouts += model.payouts.size;
      for (const { payments } of model.payouts.values())
        counts.resent += new Set(payments.map(({ runId }) => runId)).size > 1 ? 1 : 0;
    }
    if (MINUTES > 0) process.stderr.write(`${JSON.stringify(counts)}\n`);
    // Among ten, some send returned money again.
    expect(counts.sequences < 10 || counts.resent > 0).toBe(true);
    await expectConsistentLedger(database.sql);
  },
  300_000 + MINUTES * 60_000,
);
