import {
  findCodesOfCreators,
  findKnownUserKeys,
  findRecorded,
  findRefundReporting,
  listPaymentsOf,
} from '../db/reconciliation.ts';
import type { FoundGroup, PaymentPosition, RefundReporting } from '../db/reconciliation.ts';
import type { Sql } from '../db/sql.ts';
import type { PaymentFact } from '../domain/events.ts';
import type { LikelyCause } from '../domain/likely-causes.ts';
import { compareGroup, paymentNotInExport, unreadableRow } from '../domain/reconcile.ts';
import type {
  ComparisonScope,
  ExportedGroup,
  Finding,
  FindingKind,
  RecordedGroup,
} from '../domain/reconcile-findings.ts';
import { providers } from '../providers/index.ts';
import type { ExportContext, ExportFormat, RowReading } from '../providers/shared/export.ts';
import type { Payload } from '../providers/shared/sample.ts';
import type { ComparisonRequest, ExportComparison, FeedableFinding } from './comparison.ts';
import { bodiesOf, exportedGroup, groupOf, parseBody, storeOf } from './exported-events.ts';
import type { Item } from './exported-events.ts';
import { ExportFileError } from './export-file-error.ts';
import { openExport } from './export-file.ts';
import type { NumberedRow } from './numbered-row.ts';
import { IdSet } from './id-set.ts';
import { Buckets, Sorter, SpillFolder } from './spill.ts';

/** Payments whose stored side is read with one statement. */
const LOOK_UP = 500;
/** Stored payments that one statement examines. */
const PAGE = 5_000;
const PROGRESS_ROWS = 100_000;

/** Orders findings by time. Rows that can't be read come first, by their line. */
function byTime(a: Finding, b: Finding): number {
  return (
    (a.at ?? 0) - (b.at ?? 0) ||
    (a.line ?? 0) - (b.line ?? 0) ||
    (a.paymentRef ?? '').localeCompare(b.paymentRef ?? '')
  );
}

/** Counts by a key. */
class Tally<K> {
  readonly counts = new Map<K, number>();

  add(key: K, count = 1): void {
    this.counts.set(key, (this.counts.get(key) ?? 0) + count);
  }
}

/** Compares an export with the ledger. Throws `ExportFileError` where the file can't be compared. */
export async function compareExport(sql: Sql, request: ComparisonRequest): Promise<ExportComparison> {
  const folder = await SpillFolder.create();
  try {
    return await new Comparing(sql, request, folder).run();
  } catch (error) {
    await folder.remove();
    throw error;
  }
}

class Comparing {
  readonly #sql: Sql;
  readonly #request: ComparisonRequest;
  readonly #folder: SpillFolder;
  readonly #items: Buckets<Item>;
  readonly #findings: Sorter<FeedableFinding>;
  readonly #skipped = new Tally<string>();
  readonly #kinds = new Tally<FindingKind>();
  readonly #causes = new Tally<LikelyCause>();
  readonly #known = new IdSet();
  /** For each store, the payments that the rows are about and those that the service has. */
  readonly #stores = new Map<string, { payments: number; matched: number }>();
  /** The payments that the service lacks, by store, amount and time. */
  readonly #missing = new IdSet();
  /** The stores with a payment that the service lacks and one that the export lacks, with the same amount and time. */
  readonly #doubtful = new Set<string>();
  #rows = 0;
  #payments = 0;
  #matched = 0;
  #first = Infinity;
  #last = -Infinity;

  constructor(sql: Sql, request: ComparisonRequest, folder: SpillFolder) {
    this.#sql = sql;
    this.#request = request;
    this.#folder = folder;
    this.#items = new Buckets(folder);
    this.#findings = new Sorter<FeedableFinding>(folder, byTime);
  }

  async run(): Promise<ExportComparison> {
    const { path, provider, from, to, isOneWay } = this.#request;
    const { format, rows, context } = await openExport(path, provider);
    await this.#readRows(format, rows, context);
    const range =
      from !== null || to !== null || this.#first <= this.#last
        ? {
            from: from ?? Math.min(this.#first, to ?? this.#first),
            to: to === null ? Math.max(this.#last, from ?? this.#last) : to - 1,
          }
        : null;
    if (range !== null) {
      await this.#compareBuckets(format, range);
      const mayDoubt = this.#missing.size > 0;
      if (format.lists !== 'refunds' && (!isOneWay || mayDoubt)) await this.#findOthers(range, isOneWay);
    }
    return {
      title: format.title,
      rows: this.#rows,
      skipped: [...this.#skipped.counts].map(([reason, count]) => ({ reason, rows: count })),
      range,
      payments: this.#payments,
      matched: this.#matched,
      earnedNothing: [...this.#causes.counts].map(([cause, payments]) => ({ cause, payments })),
      counts: Object.fromEntries(this.#kinds.counts),
      unmatchedStores: [...this.#stores].filter(([, { matched }]) => matched === 0).map(([store]) => store),
      findings: () => this.#readFindings(),
      close: async () => await this.#folder.remove(),
    };
  }

  async #add(finding: Finding, bodies: readonly Payload[] = []): Promise<void> {
    this.#kinds.add(finding.kind);
    await this.#findings.add({ ...finding, bodies });
  }

  /** Returns the findings. What is known of a store only after all rows refuses its payments. */
  async *#readFindings(): AsyncGenerator<FeedableFinding> {
    for await (const finding of this.#findings.read()) {
      const refusal = finding.feedBack === 'yes' ? this.#refusalOfStore(finding) : null;
      yield refusal === null ? finding : { ...finding, feedBack: refusal, bodies: [] };
    }
  }

  /** Returns why no event may be made of a finding because of its store, as a sentence. */
  #refusalOfStore({ kind, store }: Finding): string | null {
    if (store === null || this.#request.isWithoutMatch) return null;
    if (this.#stores.get(store)?.matched === 0) return unmatchedStore(store);
    return kind === 'missing_payment' && this.#doubtful.has(store) ? doubtfulStore(store) : null;
  }

  async #readRows(
    format: ExportFormat,
    rows: AsyncIterable<NumberedRow>,
    context: ExportContext,
  ): Promise<void> {
    for await (const { line, values } of rows) {
      this.#rows += 1;
      if (this.#rows % PROGRESS_ROWS === 0) this.#request.onProgress(`${this.#rows} rows read`);
      const reading = format.read(values, context);
      if (reading.kind === 'refused') throw new ExportFileError(reading.reason);
      if (reading.kind === 'skipped') {
        this.#skipped.add(reading.reason);
        continue;
      }
      if (reading.kind === 'unreadable') {
        await this.#add(unreadableRow(line, reading.reason));
        continue;
      }
      for (const body of reading.bodies) await this.#readBody(line, body, reading);
    }
  }

  async #readBody(
    line: number,
    body: Payload,
    { group, refusal = null, isNegative = false }: RowReading & { readonly kind: 'events' },
  ): Promise<void> {
    const parsed = parseBody(this.#request.provider, body);
    if (parsed.kind === 'unreadable') {
      await this.#add(unreadableRow(line, parsed.reason));
      return;
    }
    if (parsed.kind === 'skipped') {
      this.#skipped.add(parsed.reason);
      return;
    }
    const { event } = parsed;
    const at = event.occurredAt;
    this.#first = Math.min(this.#first, at);
    this.#last = Math.max(this.#last, at);
    const key = group ?? groupOf(event);
    await this.#items.append(key, { line, group: key, body, event, refusal, isNegative });
  }

  async #compareBuckets(format: ExportFormat, range: { from: number; to: number }): Promise<void> {
    const { provider, appId } = this.#request;
    const hasRefunds = format.lists !== 'payments';
    const reporting =
      provider === 'stripe' && hasRefunds ? await findRefundReporting(this.#sql, appId) : 'single';
    const scope: ComparisonScope = {
      ...range,
      hasRefundIds: providers[provider].exports.hasRefundIds,
      hasRefundAmounts: providers[provider].exports.hasRefundAmounts,
      hasRefunds,
      partialRefusal: reporting === 'unknown' ? UNKNOWN_REPORTING : null,
    };
    for await (const items of this.#items.read()) {
      const byGroup = new Map<string, Item[]>();
      for (const item of items) {
        const group = byGroup.get(item.group);
        if (group === undefined) byGroup.set(item.group, [item]);
        else group.push(item);
      }
      const groups: (readonly Item[])[] = [];
      const beside: (readonly Item[])[] = [];
      for (const group of byGroup.values()) {
        const merged = this.#merged(format, group);
        const inRange = this.#withinRange(group, merged);
        if (inRange.length > 0) groups.push(inRange);
        else if (merged.some(({ event }) => isBeside(event.occurredAt, range))) beside.push(merged);
      }
      for (let start = 0; start < beside.length; start += LOOK_UP)
        await this.#noteKnown(beside.slice(start, start + LOOK_UP));
      for (let start = 0; start < groups.length; start += LOOK_UP) {
        await this.#compareGroups(format, scope, groups.slice(start, start + LOOK_UP), reporting);
      }
    }
  }

  /** Notes which payments of the service those are that the export has just outside of the range, so that it does not seem to lack them. */
  async #noteKnown(groups: readonly (readonly Item[])[]): Promise<void> {
    const asked = groups.map((items) => ({
      store: storeOf(items),
      refs: exportedGroup(items, () => null).refs,
    }));
    for (const { paymentIds } of await findRecorded(this.#sql, this.#request.appId, asked))
      for (const id of paymentIds) this.#known.add(id);
  }

  /** Makes one payment of several rows that report its parts. */
  #merged(format: ExportFormat, group: readonly Item[]): readonly Item[] {
    const parts = group.filter(({ event }) => event.payment !== null);
    const [last] = parts.toReversed();
    if (format.merge === null || last === undefined || (parts.length === 1 && !last.isNegative)) return group;
    const body = format.merge(parts);
    const parsed = body === null ? null : parseBody(this.#request.provider, body);
    const refusal = parts.find((part) => part.refusal !== null)?.refusal ?? null;
    const merged =
      body !== null && parsed?.kind === 'event' ? [{ ...last, body, event: parsed.event, refusal }] : [];
    return [...merged, ...group.filter(({ event }) => event.payment === null)];
  }

  /** Leaves out payments and refunds outside of the range that the operator named. A payment of several rows has one time. */
  #withinRange(rows: readonly Item[], merged: readonly Item[]): readonly Item[] {
    return merged.filter((item) => {
      if (this.#isInRange(item.event.occurredAt)) return true;
      const isMerged = !rows.includes(item);
      const left = isMerged ? rows.filter(({ event }) => event.payment !== null).length : 1;
      this.#skipped.add('a time outside of --from and --to', left);
      return false;
    });
  }

  #isInRange(at: number): boolean {
    const { from, to } = this.#request;
    return (from === null || at >= from) && (to === null || at < to);
  }

  async #compareGroups(
    format: ExportFormat,
    scope: ComparisonScope,
    groups: readonly (readonly Item[])[],
    reporting: RefundReporting,
  ): Promise<void> {
    const { appId, provider } = this.#request;
    const unnamed = format.namesUsers ? [] : groups.flat().filter(({ event }) => event.userIds.length === 0);
    const keys = unnamed.flatMap(({ event }) => event.userKeys);
    const codes = unnamed.flatMap(({ event }) => event.codes);
    const known: ReadonlySet<string> =
      keys.length === 0 ? new Set() : await findKnownUserKeys(this.#sql, appId, provider, [...new Set(keys)]);
    const ofCreators: ReadonlySet<string> =
      codes.length === 0 ? new Set() : await findCodesOfCreators(this.#sql, appId, codes);
    const refusalOf = ({ event, refusal }: Item): string | null => {
      if (refusal !== null) return refusal;
      if (event.payment === null) return reporting === 'running_totals' ? RUNNING_TOTALS : null;
      const isNamed =
        event.userIds.length > 0 ||
        event.userKeys.some((key) => known.has(key)) ||
        event.codes.some(({ value }) => ofCreators.has(value));
      return format.namesUsers || isNamed ? null : format.withoutUser;
    };
    const exported = groups.map((items) => exportedGroup(items, refusalOf));
    const found = await findRecorded(
      this.#sql,
      appId,
      exported.map(({ refs }, index) => ({ store: storeOf(groups[index] ?? []), refs })),
    );
    for (const [index, group] of exported.entries()) {
      const items = groups[index] ?? [];
      const recorded = found[index] ?? { payment: null, adjustments: [], paymentIds: [] };
      await this.#compareOne(group, recorded, items, scope);
    }
  }

  async #compareOne(
    exported: ExportedGroup,
    recorded: FoundGroup,
    items: readonly Item[],
    scope: ComparisonScope,
  ): Promise<void> {
    for (const id of recorded.paymentIds) this.#known.add(id);
    this.#payments += 1;
    if (recorded.payment !== null) this.#matched += 1;
    const store = storeOf(items);
    const { payments, matched } = this.#stores.get(store) ?? { payments: 0, matched: 0 };
    this.#stores.set(store, {
      payments: payments + 1,
      matched: recorded.payment === null ? matched : matched + 1,
    });
    if (exported.payment !== null && recorded.payment === null) {
      const { fact, at } = exported.payment;
      for (const minute of [-1, 0, 1]) this.#missing.add(likenessOf(fact, at + minute * MINUTE_MS));
    }
    for (const finding of compareGroup(exported, this.#inRange(recorded), scope)) {
      if (finding.kind === 'earned_nothing') {
        if (finding.cause !== null) this.#causes.add(finding.cause);
        if (!this.#request.listsUnattributed) continue;
      }
      await this.#add(finding, finding.feedBack === 'yes' ? bodiesOf(finding, items, scope) : []);
    }
  }

  /** Leaves out refunds outside of the range that the operator named, as in the export. */
  #inRange(recorded: RecordedGroup): RecordedGroup {
    const adjustments = recorded.adjustments.filter(({ occurredAt }) => this.#isInRange(occurredAt));
    return { ...recorded, adjustments };
  }

  /**
   * Finds the payments of the range that are stored and not in the export. Those of the provider are findings, unless only what
   * the service lacks is looked for. Those that are like a payment that the service lacks make their store doubtful.
   */
  async #findOthers(range: { from: number; to: number }, isOneWay: boolean): Promise<void> {
    const { appId, provider: source } = this.#request;
    let after: PaymentPosition | null = null;
    do {
      const page: Awaited<ReturnType<typeof listPaymentsOf>> = await listPaymentsOf(
        this.#sql,
        { appId, source, from: range.from - MINUTE_MS, to: range.to + MINUTE_MS },
        after,
        PAGE,
      );
      for (const { paymentId, isOwn, ...payment } of page.payments) {
        if (this.#known.has(paymentId)) continue;
        if (this.#missing.has(likenessOf(payment, payment.occurredAt))) this.#doubtful.add(payment.store);
        const isInRange = payment.occurredAt >= range.from && payment.occurredAt <= range.to;
        if (isOwn && isInRange && !isOneWay) await this.#add(paymentNotInExport(payment));
      }
      after = page.next;
    } while (after !== null);
  }
}

const RUNNING_TOTALS =
  'A webhook endpoint of this app reports the running totals of charges instead of single refunds, so a refund of the export could count twice. Have Stripe send the webhook again.';

const UNKNOWN_REPORTING =
  'The refund is partial, and no webhook has shown yet that the endpoint reports single refunds of charges, so it could count twice. Have Stripe send the webhook again.';

const MINUTE_MS = 60_000;

/** Whether `findOthers` reads payments of an instant though it is outside of the range. */
const isBeside = (at: number, { from, to }: { readonly from: number; readonly to: number }): boolean =>
  at >= from - MINUTE_MS && at <= to + MINUTE_MS;

/** Returns what two reports of one payment under different ids have in common. */
function likenessOf({ store, currency, amountMinor }: PaymentFact, at: number): string {
  return `${store} ${currency} ${amountMinor} ${Math.floor(at / MINUTE_MS)}`;
}

/** Returns why events of a store are not made of an export that matches nothing of it. */
function unmatchedStore(store: string): string {
  return `The ledger has no payment of ${store} that is in this file, so the file may be of another app or account, or of a test mode, or its ids may differ from those of the webhooks. If it is the right file, add --without-match.`;
}

function doubtfulStore(store: string): string {
  return `The ledger has a payment of ${store} with the same amount and time as one that this file has under another id, so it may be the same payment. Compare their ids. If they are different payments, add --without-match.`;
}
