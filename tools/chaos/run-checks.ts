import { createHash } from 'node:crypto';
import { centsOfRow, isFiled, itemOfRow, rowsOf } from './payout-runs.ts';
import type { KnownRun } from './payout-runs.ts';
import type { RailPayment } from './rail.ts';

/* What must hold of payout runs at the end. Pure functions of the rows, and of what founders and payment services know. */

export interface StoredRun {
  readonly id: string;
  readonly kind: string;
  readonly status: string;
  readonly itemCount: number;
  readonly totalCents: number;
  readonly paidCount: number | null;
  readonly paidCents: number | null;
}

/** An item of a run, with its payout. */
export interface StoredItem {
  readonly id: string;
  readonly runId: string;
  readonly expectedCents: number;
  /** That it has paid or sends again. Null: none. */
  readonly payoutId: string | null;
  /** Whether it was paid or sent again. */
  readonly isFiled: boolean;
}

export interface StoredFile {
  readonly id: string;
  readonly runId: string;
  readonly rowCount: number;
  readonly totalCents: number;
  /** Hexadecimal. */
  readonly sha256: string;
}

export interface StoredPayout {
  readonly id: string;
  readonly totalCents: number;
  /** The sum of the commissions in it. */
  readonly itemsCents: number;
  /** What was stated last. Null: nothing. */
  readonly stated: string | null;
}

export interface RunFacts {
  readonly runs: readonly StoredRun[];
  readonly items: readonly StoredItem[];
  readonly files: readonly StoredFile[];
  readonly payouts: readonly StoredPayout[];
  /** What founders know. */
  readonly known: readonly KnownRun[];
  /** Payouts that exports returned. */
  readonly exported: ReadonlySet<string>;
  readonly payments: readonly RailPayment[];
}

const sha256 = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex');
const sum = <T>(rows: readonly T[], cents: (row: T) => number) =>
  rows.reduce((all, row) => all + cents(row), 0);

function grouped<T>(rows: readonly T[], key: (row: T) => string): ReadonlyMap<string, readonly T[]> {
  const groups = new Map<string, T[]>();
  for (const row of rows) {
    const group = groups.get(key(row));
    if (group === undefined) groups.set(key(row), [row]);
    else group.push(row);
  }
  return groups;
}

/** Every run has ended, and is one that a founder drafted. */
function endProblems({ runs, known }: RunFacts): string[] {
  const names = new Set(known.map(({ id }) => id));
  return [
    ...runs
      .filter(({ status }) => status !== 'settled' && status !== 'cancelled')
      .map(({ id, status }) => `the run ${id} has not ended: ${status}`),
    ...runs
      .filter(({ id }) => !names.has(id))
      .map(({ id }) => `nobody drafted the run ${id}, or one draft made two`),
    ...known
      .filter(({ id, wasApproved }) => {
        const status = runs.find((run) => run.id === id)?.status;
        return status !== (wasApproved ? 'settled' : 'cancelled');
      })
      .map(
        ({ id, wasApproved }) =>
          `the run ${id}, ${wasApproved ? 'approved' : 'not approved'}, has another end`,
      ),
  ];
}

/** What was approved is what was paid and what is listed as not paid; the run, its payouts and its files have the same sums. */
function sumProblems({ runs, items, files, payouts, known }: RunFacts): string[] {
  const itemsOf = grouped(items, ({ runId }) => runId);
  const filesOf = grouped(files, ({ runId }) => runId);
  const payoutOf = new Map(payouts.map((payout) => [payout.id, payout]));
  const problems: string[] = [];
  for (const run of runs) {
    if (run.status !== 'settled') continue;
    const mine = itemsOf.get(run.id) ?? [];
    const filed = mine.filter((item) => item.isFiled);
    const expect = (what: string, is: number | null | undefined, wanted: number | null | undefined) => {
      if (is !== wanted) problems.push(`the run ${run.id}: ${what} ${is}, not ${wanted}`);
    };
    const approved = known.find(({ id }) => id === run.id);
    expect('the total is', run.totalCents, approved?.drafted.totalCents);
    expect(
      'the items add up to',
      sum(mine, (item) => item.expectedCents),
      run.totalCents,
    );
    expect('the number of items is', mine.length, run.itemCount);
    const unpaid = (approved?.endItems ?? []).filter((item) => !isFiled(item));
    const listed = sum(unpaid, ({ expectedCents }) => expectedCents);
    expect('what was paid and what is listed as not paid is', (run.paidCents ?? 0) + listed, run.totalCents);
    expect('the payouts are', filed.length, run.paidCount);
    expect(
      'the payouts add up to',
      sum(filed, ({ payoutId }) => payoutOf.get(payoutId ?? '')?.totalCents ?? NaN),
      run.paidCents,
    );
    expect(
      'the rows of its files are',
      sum(filesOf.get(run.id) ?? [], ({ rowCount }) => rowCount),
      run.paidCount,
    );
    expect(
      'its files add up to',
      sum(filesOf.get(run.id) ?? [], ({ totalCents }) => totalCents),
      run.paidCents,
    );
    const waiting = (approved?.endItems ?? []).filter(
      ({ outcome }) => outcome === null || outcome === 'waiting',
    );
    expect('the items without an end are', waiting.length, 0);
  }
  return problems;
}

/** Each payout of a run is one row of one file, with its amount. Each download had the same bytes, and they have the stored hash. */
function fileProblems({ runs, items, files, known, payouts }: RunFacts): string[] {
  const problems: string[] = [];
  const itemsOf = grouped(items, ({ runId }) => runId);
  const payoutOf = new Map(payouts.map((payout) => [payout.id, payout]));
  const stored = new Map(files.map((file) => [file.id, file]));
  for (const run of known) {
    if (runs.find(({ id }) => id === run.id)?.status !== 'settled') continue;
    const filed = (itemsOf.get(run.id) ?? []).filter((item) => item.isFiled);
    const rows = new Map(filed.map(({ id }) => [id, 0]));
    for (const { file, downloads } of run.files) {
      const hash = stored.get(file.id)?.sha256;
      for (const { bytes, stated } of downloads)
        if (sha256(bytes) !== hash || stated !== hash || file.sha256 !== hash)
          problems.push(
            `the file ${file.id} has the hash ${hash}; a download has ${sha256(bytes)} and states ${stated}`,
          );
      const cells = rowsOf(downloads[0]?.bytes ?? Buffer.from(''));
      if (cells.length !== file.rowCount)
        problems.push(`the file ${file.id} has ${cells.length} rows, not ${file.rowCount}`);
      for (const row of cells) {
        const item = itemOfRow(row, filed);
        if (item === undefined) {
          problems.push(`the file ${file.id} has a row of no payout of its run: ${row.join(',')}`);
          continue;
        }
        rows.set(item.id, (rows.get(item.id) ?? 0) + 1);
        const cents = payoutOf.get(item.payoutId ?? '')?.totalCents;
        if (centsOfRow(row) !== cents)
          problems.push(`the row of ${item.payoutId} has ${centsOfRow(row)} cents, and the payout ${cents}`);
      }
    }
    for (const [item, count] of rows)
      if (count !== 1)
        problems.push(`the item ${item} of ${run.id} has ${count} rows in the files of its run`);
    const listed = run.files.length;
    const all = files.filter(({ runId }) => runId === run.id).length;
    if (listed !== all) problems.push(`the run ${run.id} has ${all} files, and ${listed} were listed`);
  }
  return problems;
}

/** Each payout was made by one item of one run, or by exports, and has the sum of its commissions. */
function payoutProblems({ items, runs, payouts, exported }: RunFacts): string[] {
  const paying = new Set(runs.filter(({ kind }) => kind === 'pay').map(({ id }) => id));
  const made = grouped(
    items.filter((item) => item.isFiled && item.payoutId !== null && paying.has(item.runId)),
    ({ payoutId }) => payoutId ?? '',
  );
  return payouts.flatMap(({ id, totalCents, itemsCents }) => {
    const times = (made.get(id)?.length ?? 0) + (exported.has(id) ? 1 : 0);
    return [
      ...(times === 1 ? [] : [`the payout ${id} was made by ${times} items of runs and exports, not by one`]),
      ...(totalCents === itemsCents
        ? []
        : [`the payout ${id} of ${totalCents} cents has commissions of ${itemsCents}`]),
    ];
  });
}

/** A cancelled run has paid nobody after the response, and a changed creator is not paid by the run that was approved afterwards. */
function stopProblems({ items, known, runs }: RunFacts): string[] {
  return known.flatMap((run) => {
    const mine = items.filter(({ runId }) => runId === run.id);
    const paid = mine.filter((item) => item.isFiled);
    const isCancelled = runs.find(({ id }) => id === run.id)?.status === 'cancelled';
    const before = new Set((run.stopped ?? []).filter(isFiled).map(({ id }) => id));
    const after = run.stopped === undefined ? [] : paid.filter(({ id }) => !before.has(id));
    const changed = run.endItems.filter((item) => isFiled(item) && run.changed.has(item.affiliateId));
    return [
      ...(isCancelled ? paid : after).map(
        ({ id, payoutId }) => `the run ${run.id} has paid ${payoutId} by ${id} after it was cancelled`,
      ),
      ...changed.map(
        ({ id }) =>
          `the run ${run.id} has paid the item ${id}, whose payee or total was changed before the approval`,
      ),
    ];
  });
}

/** The payment services have the money of each payout of a run on its way once, and what they reported is stated. */
function moneyProblems({ items, payouts, payments }: RunFacts): string[] {
  const filed = new Set(items.filter((item) => item.isFiled).map(({ payoutId }) => payoutId ?? ''));
  const byPayout = grouped(payments, ({ payoutId }) => payoutId);
  return payouts
    .filter(({ id }) => filed.has(id))
    .flatMap(({ id, totalCents, stated }) => {
      const all = byPayout.get(id) ?? [];
      const out = all.filter(({ status }) => status !== 'Returned');
      const last = all.at(-1)?.status;
      const wanted = last === 'Returned' ? 'returned' : 'sent';
      return [
        ...(out.length > 1 || all.length === 0
          ? [
              `the money of ${id} was sent ${out.length} times, and came back ${all.length - out.length} times`,
            ]
          : []),
        ...(all.some(({ cents }) => cents !== totalCents)
          ? [`the money of ${id} is not ${totalCents} cents`]
          : []),
        ...(stated === wanted ? [] : [`the payout ${id} is stated as ${stated}; its payments say ${wanted}`]),
      ];
    });
}

/** Returns what does not hold of payout runs. */
export function runProblems(facts: RunFacts): string[] {
  return [endProblems, sumProblems, fileProblems, payoutProblems, stopProblems, moneyProblems].flatMap(
    (check) => check(facts),
  );
}
