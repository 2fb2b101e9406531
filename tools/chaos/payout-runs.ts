import { setTimeout as sleep } from 'node:timers/promises';
import { waitForPayees } from '../../test/support/payout-runs.ts';
import type { FounderAnswer, FounderCall, Load } from './load.ts';
import { BONUS_APP, creatorsOfRuns } from './plan.ts';
import { Rail } from './rail.ts';
import type { Random } from './random.ts';
import type { Stack } from './stack.ts';

/*
 * A founder who pays by payout runs meanwhile, one after another: drafts, approves and cancels, each also twice and at both
 * processes, changes payees and deducts in between, downloads the files, uploads them to the payment services, imports their
 * reports, and sends again what came back. A seed decides what the founder does; how often it is done depends on the machine.
 */

const POLL_MS = 700;
/** How long after an approval a run is cancelled at most. */
const CANCEL_WITHIN_MS = 1_500;
const FINAL_BONUS_CENTS = 1_000_000;

type RunKind = 'pay' | 'resend';

/** A run as the API shows it. */
export interface ShownRun {
  readonly id: string;
  readonly kind: RunKind;
  readonly status: string;
  readonly itemCount: number;
  readonly totalCents: number;
  readonly paidCount: number;
  readonly paidCents: number;
  readonly stoppedAt: number | null;
}

export interface ShownItem {
  readonly id: string;
  readonly affiliateId: string;
  readonly expectedCents: number;
  readonly outcome: string | null;
  readonly payoutId: string | null;
  readonly transferState: string | null;
}

interface ShownFile {
  readonly id: string;
  readonly rowCount: number;
  readonly totalCents: number;
  readonly sha256: string;
  readonly downloadCount: number;
}

/** A file of a run, and its bytes as they came. */
export interface DownloadedFile {
  readonly runId: string;
  readonly file: ShownFile;
  /** Of each download, with the hash that its response stated. */
  readonly downloads: readonly { readonly bytes: Buffer; readonly stated: string | undefined }[];
}

/** What a founder knows of a run. */
export interface KnownRun {
  readonly app: number;
  readonly id: string;
  readonly drafted: ShownRun;
  /** Items of the draft. */
  items: readonly ShownItem[];
  wasApproved: boolean;
  /** Creators whose payee was changed, or of whom something was deducted, before the approval. */
  readonly changed: Set<string>;
  /** The items as they were after the response to its cancellation. */
  stopped: readonly ShownItem[] | undefined;
  /** The run and its items after its end. */
  ended: ShownRun | undefined;
  endItems: readonly ShownItem[];
  files: readonly DownloadedFile[];
}

/** A bonus or a deduction that was accepted. */
export interface AcceptedEntry {
  readonly app: number;
  readonly creator: number;
  readonly externalId: string;
  readonly cents: number;
}

/** Returns the cells of the rows of a file. PayPal's has no line of names; no cell of this load is quoted. */
export function rowsOf(bytes: Buffer): readonly (readonly string[])[] {
  const lines = bytes.toString().trimEnd().split('\r\n');
  return lines.map((line) => line.split(',')).filter(([first]) => first !== 'name' && first !== 'item_id');
}

/** Returns the item that a row names: by its id, or by the end of it. */
export function itemOfRow<T extends { readonly id: string }>(
  cells: readonly string[],
  items: readonly T[],
): T | undefined {
  return items.find(({ id }) => cells.includes(id) || cells.includes(id.slice(-16)));
}

/** Returns the amount of a row, US cents. */
export function centsOfRow(cells: readonly string[]): number {
  return Number(cells.find((cell) => /^\d+\.\d\d$/.test(cell))?.replace('.', ''));
}

/** Whether an item is in the files of its run. */
export const isFiled = ({ outcome }: ShownItem): boolean => outcome === 'paid' || outcome === 'resent';

/** The founder of one app. */
export class PayingFounder {
  readonly runs: KnownRun[] = [];
  readonly entries: AcceptedEntry[] = [];
  readonly rail: Rail;
  /** What the founder found to be wrong at once. */
  readonly problems: string[] = [];
  /** How often payees were set. */
  payeeVersions = 0;
  imports = 0;
  readonly #stack: Stack;
  readonly #load: Load;
  readonly #app: number;
  readonly #random: Random;
  #keys = 0;

  constructor(stack: Stack, load: Load, app: number, random: Random) {
    this.#stack = stack;
    this.#load = load;
    this.#app = app;
    this.#random = random;
    this.rail = new Rail(`${app}-`);
  }

  #nextKey(what: string): string {
    return `${what}-${this.#app}-${(this.#keys += 1)}`;
  }

  async #ask<T>(name: string, route: string, call: FounderCall = {}): Promise<FounderAnswer<T>> {
    return await this.#load.ask<T>(name, this.#app, route, call);
  }

  async #get<T>(name: string, route: string): Promise<T> {
    const process = this.#random.int(0, this.#stack.processes.length - 1);
    return (await this.#ask<T>(name, route, { method: 'GET', process })).json;
  }

  /** Makes a call several times at the same time, at each process, with one `Idempotency-Key` or with none. */
  async #several<T>(name: string, route: string, call: FounderCall): Promise<readonly FounderAnswer<T>[]> {
    const first = this.#random.int(0, 1);
    return await Promise.all(
      Array.from(
        { length: this.#random.int(1, 3) },
        async (_, n) => await this.#ask<T>(name, route, { ...call, process: first + n }),
      ),
    );
  }

  /** Sets the address and the payee of each creator but the fourth, which has no payee. */
  async setUp(): Promise<void> {
    for (const creator of creatorsOfRuns(this.#app)) {
      const affiliate = this.#load.affiliateOf(this.#app, creator);
      const email = `creator-${this.#app}-${creator}@creators.example`;
      await this.#ask('creator', `/affiliates/${affiliate}`, { method: 'PATCH', body: { email } });
      if (creator !== 3) await this.#setPayee(creator, 0);
    }
    await this.#waitForPayees();
  }

  async #setPayee(creator: number, version: number): Promise<void> {
    const email = `money-${version}-${this.#app}-${creator}@creators.example`;
    const name = `Creator ${creator}`;
    const payees = [
      { method: 'paypal', recipient: { email } },
      { method: 'wise', recipient: { email, name, receiverType: 'PERSON' } },
      { method: 'other', recipient: { name, reference: `account ${version}` } },
    ];
    const affiliate = this.#load.affiliateOf(this.#app, creator);
    const body = payees[(creator + version) % payees.length];
    await this.#ask('payee', `/affiliates/${affiliate}/payee`, {
      method: 'PUT',
      ...(body === undefined ? {} : { body }),
    });
    this.payeeVersions += 1;
  }

  /** Lets the payees count that were set. The wait of days is over at once. */
  async #waitForPayees(): Promise<void> {
    for (;;) {
      try {
        await waitForPayees(this.#stack.postgres.ownerUrl);
        return;
      } catch {
        // Postgres is away, or ended the statement in a deadlock.
        await sleep(POLL_MS);
      }
    }
  }

  /** Pays until that moment, epoch ms. */
  async play(until: number): Promise<void> {
    while (Date.now() < until) {
      if (this.#app === BONUS_APP) await this.#addBonuses();
      await this.#pay('pay');
      if (this.rail.payments.some(({ status }) => status === 'Returned') && this.#random.chance(0.6))
        await this.#pay('resend');
      await sleep(this.#random.int(0, 2_000));
    }
  }

  /** Pays every creator, also those without a payee, when nothing is broken any more. All payments arrive, and all reports are imported. */
  async finish(): Promise<void> {
    if (this.#app === BONUS_APP)
      for (const creator of creatorsOfRuns(this.#app)) await this.#addEntry(creator, FINAL_BONUS_CENTS);
    await this.#waitForPayees();
    await this.#importAll();
    for (const kind of ['pay', 'resend'] as const) {
      const run = await this.#draft(kind, { withoutPayee: 'include' });
      if (run.drafted.itemCount === 0) await this.#cancel(run);
      else await this.#approveAndEnd(run);
      this.rail.complete();
    }
    await this.#importAll();
  }

  async #importAll(): Promise<void> {
    for (const { ended, id } of this.runs) if (ended?.status === 'settled') await this.#import(id);
  }

  async #addBonuses(): Promise<void> {
    await Promise.all(
      Array.from({ length: this.#random.int(4, 12) }, async () => {
        const creator = this.#random.pick(creatorsOfRuns(this.#app));
        await this.#addEntry(
          creator,
          this.#random.chance(0.15) ? -this.#random.int(1, 200) : this.#random.int(1, 9_000),
        );
      }),
    );
  }

  async #addEntry(creator: number, amountCents: number): Promise<void> {
    const affiliate = this.#load.affiliateOf(this.#app, creator);
    const externalId = this.#nextKey('entry');
    const body = { amountCents, category: 'other', reason: 'Chaos', externalId };
    // The same call again has the response of the first one, and without a key it names the entry.
    const key = this.#random.chance(0.5) ? { key: externalId } : {};
    const answers = await this.#several<{ code?: string }>('entry', `/affiliates/${affiliate}/entries`, {
      body,
      expected: [409],
      ...key,
    });
    for (const { status, json } of answers)
      if (status === 409 && json.code !== 'external_id_taken')
        this.problems.push(`the entry ${externalId} was answered with ${json.code}`);
    this.entries.push({ app: this.#app, creator, externalId, cents: amountCents });
  }

  async #items(runId: string): Promise<readonly ShownItem[]> {
    const items: ShownItem[] = [];
    for (let cursor = ''; ;) {
      const route = `/payout-runs/${runId}/items?limit=100${cursor === '' ? '' : `&cursor=${cursor}`}`;
      const page = await this.#get<{ items: ShownItem[]; nextCursor: string | null }>('run items', route);
      items.push(...page.items);
      if (page.nextCursor === null) return items;
      cursor = page.nextCursor;
    }
  }

  /** Drafts a run by several calls with one `Idempotency-Key`, which must be one run. */
  async #draft(kind: RunKind, terms: object): Promise<KnownRun> {
    const body = kind === 'pay' ? terms : { kind };
    const key = this.#nextKey('draft');
    const answers = await this.#several<ShownRun>('run draft', '/payout-runs', { body, key });
    const [first] = answers;
    if (first === undefined) throw new Error('a draft was not answered');
    if (answers.some(({ json }) => json.id !== first.json.id))
      this.problems.push(
        `the calls with the key ${key} have drafted ${answers.map(({ json }) => json.id).join(', ')}`,
      );
    const run: KnownRun = {
      app: this.#app,
      id: first.json.id,
      drafted: first.json,
      items: await this.#items(first.json.id),
      wasApproved: false,
      changed: new Set(),
      stopped: undefined,
      ended: undefined,
      endItems: [],
      files: [],
    };
    this.runs.push(run);
    return run;
  }

  /** Approves a run, which must be refused. */
  async #expectRefusal(
    run: KnownRun,
    code: string,
    expectedTotalCents = run.drafted.totalCents,
  ): Promise<void> {
    const answer = await this.#ask<{ code?: string }>('run approval', `/payout-runs/${run.id}/approve`, {
      body: { expectedTotalCents },
      expected: [409],
    });
    if (answer.status !== 409 || answer.json.code !== code)
      this.problems.push(
        `the approval of ${run.id} was answered ${answer.status} ${answer.json.code}, not ${code}`,
      );
  }

  async #cancel({ id }: KnownRun): Promise<ShownRun | undefined> {
    const key = this.#random.chance(0.5) ? { key: this.#nextKey('cancel') } : {};
    const [first] = await this.#several<ShownRun>('run cancellation', `/payout-runs/${id}/cancel`, key);
    return first?.json;
  }

  /** Drafts a run and does with it what founders do. */
  async #pay(kind: RunKind): Promise<void> {
    const terms = () => ({
      minimumCents: this.#random.pick([0, 0, 500]),
      withoutPayee: this.#random.pick(['include', 'exclude', 'exclude']),
    });
    let run = await this.#draft(kind, terms());
    const choice = this.#random.next();
    if (run.drafted.itemCount === 0 || choice < 0.1) {
      if (run.drafted.itemCount === 0) await this.#expectRefusal(run, 'payout_run_not_possible');
      await this.#cancel(run);
      await this.#expectRefusal(run, 'payout_run_not_possible');
      return;
    }
    if (choice < 0.18) {
      const replaced = run;
      run = await this.#draft(kind, terms());
      await this.#expectRefusal(replaced, 'payout_run_not_possible');
      if (run.drafted.itemCount === 0) {
        await this.#cancel(run);
        return;
      }
    } else if (choice < 0.26) {
      await this.#expectRefusal(run, 'total_changed', run.drafted.totalCents + 1);
    }
    if (this.#random.chance(0.25)) await this.#changeOne(run);
    await this.#approveAndEnd(run);
  }

  /** Changes what the run must not pay any more: the payee of a creator, or what is due to the creator. */
  async #changeOne(run: KnownRun): Promise<void> {
    const item = run.items[this.#random.int(0, run.items.length - 1)];
    const creator = creatorsOfRuns(this.#app).find(
      (n) => this.#load.affiliateOf(this.#app, n) === item?.affiliateId,
    );
    if (item === undefined || creator === undefined) return;
    if (run.drafted.kind === 'pay' && this.#app === BONUS_APP && this.#random.chance(0.5))
      await this.#addEntry(creator, -1);
    else await this.#setPayee(creator, this.#random.int(1, 1_000_000));
    run.changed.add(item.affiliateId);
  }

  async #approveAndEnd(run: KnownRun): Promise<void> {
    const route = `/payout-runs/${run.id}`;
    const body = { expectedTotalCents: run.drafted.totalCents };
    const approve = async () =>
      await this.#several('run approval', `${route}/approve`, {
        body,
        ...(this.#random.chance(0.5) ? { key: this.#nextKey('approve') } : {}),
      });
    await approve();
    run.wasApproved = true;
    if (this.#random.chance(0.15)) {
      await sleep(this.#random.int(0, CANCEL_WITHIN_MS));
      const cancelled = await this.#cancel(run);
      if (cancelled?.stoppedAt != null) run.stopped = await this.#items(run.id);
    }
    for (;;) {
      run.ended = await this.#get<ShownRun>('run', route);
      if (run.ended.status !== 'approved') break;
      await sleep(POLL_MS);
    }
    // Who does not know that it was approved approves it again.
    if (this.#random.chance(0.3)) await approve();
    run.endItems = await this.#items(run.id);
    run.files = await this.#download(run);
    if (run.drafted.kind === 'pay') await this.#readPayouts(run);
    if (run.changed.size > 0) await this.#waitForPayees();
    this.#upload(run);
    this.rail.goOn(this.#random);
    await this.#import(run.id);
    const earlier = this.runs.filter(({ ended }) => ended?.status === 'settled');
    const another = earlier[this.#random.int(0, earlier.length - 1)];
    if (another !== undefined) await this.#import(another.id);
  }

  /** Fetches the CSV of each payout of a run. */
  async #readPayouts({ endItems }: KnownRun): Promise<void> {
    await Promise.all(
      endItems.filter(isFiled).map(async ({ affiliateId, payoutId }) => {
        const route = `/payouts/${payoutId}/csv`;
        const { body: csv } = await this.#ask('payout CSV', route, { method: 'GET' });
        this.#load.payouts.push({ app: this.#app, affiliateId, key: null, payoutId: payoutId ?? '', csv });
      }),
    );
  }

  async #download({ id: runId }: KnownRun): Promise<readonly DownloadedFile[]> {
    const list = async () =>
      (await this.#get<{ items: ShownFile[] }>('run files', `/payout-runs/${runId}/files`)).items;
    const downloaded: DownloadedFile[] = [];
    for (const file of await list()) {
      const route = `/payout-runs/${runId}/files/${file.id}/download`;
      const downloads = await Promise.all(
        [0, 1].map(async (process) => {
          const { body: bytes, sha256: stated } = await this.#ask('run download', route, { process });
          return { bytes, stated };
        }),
      );
      downloaded.push({ runId, file, downloads });
    }
    for (const file of await list())
      if (file.downloadCount < 2)
        this.problems.push(
          `the file ${file.id} was downloaded twice, and ${file.downloadCount} downloads are noted`,
        );
    return downloaded;
  }

  /** Uploads each file of a run once. */
  #upload({ id: runId, endItems, files }: KnownRun): void {
    for (const { downloads } of files) {
      const rows = rowsOf(downloads[0]?.bytes ?? Buffer.from('')).flatMap((cells) => {
        const item = itemOfRow(cells, endItems);
        if (item?.payoutId == null) {
          this.problems.push(`a row of a file of ${runId} belongs to no payout: ${cells.join(',')}`);
          return [];
        }
        const key = cells.includes(item.id) ? item.id : item.id.slice(-16);
        return [{ key, payoutId: item.payoutId, cents: centsOfRow(cells) }];
      });
      this.rail.upload(runId, rows);
    }
  }

  /** Imports the report of the payment services about a run, also twice at the same time. */
  async #import(runId: string): Promise<void> {
    const csv = this.rail.reportOf(runId);
    const route = `/payout-runs/${runId}/results`;
    if (!csv.includes('\n')) return;
    const preview = await this.#ask<{ sentCount: number; returnedCount: number; conflictCount: number }>(
      'run preview',
      `${route}/preview`,
      { body: { csv } },
    );
    const { sentCount, returnedCount, conflictCount } = preview.json;
    if (conflictCount !== 0) this.problems.push(`the report of ${runId} has ${conflictCount} conflicts`);
    const key = this.#random.chance(0.5) ? { key: this.#nextKey('results') } : {};
    await this.#several('run results', route, {
      body: { csv, expected: { sentCount, returnedCount } },
      ...key,
    });
    this.imports += 1;
  }
}

/** Returns a founder for each app that pays by runs. */
export function foundersOf(
  stack: Stack,
  load: Load,
  random: Random,
  apps: readonly number[],
): PayingFounder[] {
  return apps.map((app) => new PayingFounder(stack, load, app, random.part(`runs ${app}`)));
}
