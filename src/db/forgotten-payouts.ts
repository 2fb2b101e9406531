import { createHash } from 'node:crypto';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { neutralizeFormula } from '../domain/csv-cells.ts';
import { isId } from '../domain/ids.ts';
import type { AppId, PayoutId } from '../domain/ids.ts';
import { acting } from './audit.ts';
import { storeCsv } from './stored-payouts.ts';
import { COLUMNS, csvMatchesPayout, linesOf, storePayoutCsv } from './payout-csv.ts';
import type { Sql } from './sql.ts';

/** A line of a payout's CSV. */
interface Line {
  readonly position: number;
  readonly commissionId: string;
  readonly cents: number;
  readonly occurredAt: number;
  /** Empty for the line of an entry. */
  readonly eventId: string;
  readonly isEntry: boolean;
}

export type RecordedPayout =
  | {
      readonly kind: 'recorded';
      readonly payoutId: PayoutId;
      readonly totalCents: number;
      /** Lines whose commission has another id since its delivery arrived again. */
      readonly replaced: number;
      /** Whether the stored CSV has the bytes of the file. */
      readonly isSameFile: boolean;
    }
  | { readonly kind: 'known'; readonly payoutId: PayoutId }
  /** The total that was paid was not given, or is not that of the file. */
  | {
      readonly kind: 'total_wanted' | 'another_total';
      readonly payoutId: PayoutId;
      readonly totalCents: number;
      readonly lines: number;
    }
  /** The database has the payout with another total. */
  | { readonly kind: 'known_otherwise'; readonly payoutId: PayoutId; readonly totalCents: number }
  /** These lines state another event or time than their commissions. */
  | { readonly kind: 'altered'; readonly payoutId: PayoutId; readonly lines: readonly string[] }
  /** The file is not the standard CSV of one payout, or names no affiliate of this database. */
  | { readonly kind: 'unreadable' }
  /** Commissions of these lines are missing: their deliveries have to arrive again first. */
  | { readonly kind: 'missing'; readonly payoutId: PayoutId; readonly lines: readonly string[] }
  /** Commissions of these lines were paid by another payout meanwhile. */
  | { readonly kind: 'paid_otherwise'; readonly payoutId: PayoutId; readonly lines: readonly string[] };

const compress = promisify(gzip);

const WHOLE_NUMBER = /^-?\d{1,15}$/;

/**
 * Returns what a standard CSV states; undefined for another file. A file that was cut off within a line is none: what is missing would be
 * due, and paid again.
 */
function readFile(csv: Buffer) {
  const text = csv.toString('utf8');
  const [names = [], ...rows] = linesOf(text);
  const records = rows.map((cells) => Object.fromEntries(COLUMNS.map((name, n) => [name, cells[n] ?? ''])));
  const [first] = records;
  const payoutId = first?.['payout_id'] ?? '';
  const affiliateId = first?.['affiliate_id'] ?? '';
  const isWhole = text.endsWith('\n') && rows.every((cells) => cells.length === COLUMNS.length);
  if (names.join() !== COLUMNS.join() || !isWhole) return undefined;
  if (!isId('payout', payoutId) || !isId('affiliate', affiliateId)) return undefined;
  const isOne = records.every(
    (line) =>
      line['payout_id'] === payoutId &&
      line['affiliate_id'] === affiliateId &&
      line['affiliate_name'] === first?.['affiliate_name'] &&
      line['currency'] === 'USD' &&
      Number(line['amount_usd']).toFixed(2) === (Number(line['amount_usd_cents']) / 100).toFixed(2) &&
      [line['amount_usd_cents'], line['occurred_at']].every((number) => WHOLE_NUMBER.test(number ?? '')),
  );
  const isOnceEach = new Set(records.map((line) => line['commission_id'])).size === records.length;
  if (!isOne || !isOnceEach) return undefined;
  const lines: Line[] = records.map((line, n) => ({
    position: n + 1,
    commissionId: line['commission_id'] ?? '',
    cents: Number(line['amount_usd_cents']),
    occurredAt: Number(line['occurred_at']),
    eventId: line['event_id'] ?? '',
    isEntry: line['event_id'] === '',
  }));
  const totalCents = lines.reduce((sum, { cents }) => sum + cents, 0);
  return { payoutId, affiliateId, name: nameIn(first?.['affiliate_name'] ?? ''), lines, totalCents };
}

/** Returns the name of a cell: without the apostrophe that the CSV puts before a name such as `@ann`. */
function nameIn(cell: string): string {
  const name = cell.slice(1);
  return cell.startsWith("'") && neutralizeFormula(name) === cell ? name : cell;
}

/**
 * Records a payout that was paid and that this database has forgotten, from its CSV: the payout gets its old id, and its
 * commissions are paid by it. A commission whose delivery arrived again since has a new id: it is found by its creator, amount
 * and time. All or nothing, in one statement; a second run changes nothing. Allowed while payouts are stopped. `paidCents` is what was
 * paid: a file that lacks its last lines has another total. Without it, nothing is recorded.
 */
export async function recordPayout(sql: Sql, csv: Buffer, paidCents: number | null): Promise<RecordedPayout> {
  const file = readFile(csv);
  if (file === undefined) return { kind: 'unreadable' };
  const { payoutId, affiliateId, name, lines, totalCents } = file;
  const affiliate = await sql.maybe<{
    appId: AppId;
  }>`select app_id from affiliates where id = ${affiliateId}`;
  if (affiliate === undefined) return { kind: 'unreadable' };
  const { appId } = affiliate;
  const known = await sql.maybe`select from payouts where id = ${payoutId}`;
  if (known === undefined) {
    const found = await findCommissions(sql, { appId, affiliateId, lines });
    const missing = found.filter(({ id }) => id === null).map(({ commissionId }) => commissionId);
    if (missing.length > 0) return { kind: 'missing', payoutId, lines: missing };
    const paid = found.filter(({ isPaid }) => isPaid).map(({ commissionId }) => commissionId);
    if (paid.length > 0) return { kind: 'paid_otherwise', payoutId, lines: paid };
    const altered = found.filter(({ isAltered }) => isAltered).map(({ commissionId }) => commissionId);
    if (altered.length > 0) return { kind: 'altered', payoutId, lines: altered };
    if (paidCents !== totalCents) {
      const kind = paidCents === null ? 'total_wanted' : 'another_total';
      return { kind, payoutId, totalCents, lines: lines.length };
    }
    const items = found.map(({ id, position, cents }) => ({ id, position, cents }));
    await sql.forManyRows()`
      with given as (
        select id, position, cents from jsonb_to_recordset(${sql.json(items)}) g (id text, position integer, cents bigint)
      ), due as materialized (
        select c.id, c.amount_cents, g.position
          from given g join commissions c on c.id = g.id
         where c.app_id = ${appId} and c.affiliate_id = ${affiliateId} and c.status <> 'paid' and c.amount_cents = g.cents
           for no key update of c
      ), payout as (
        insert into payouts (id, app_id, affiliate_id, affiliate_name, item_count, total_cents, recorded_at)
        select ${payoutId}, ${appId}, ${affiliateId}, ${name}, ${items.length}, (select sum(amount_cents) from due), now()
         where (select count(*) from due) = ${items.length} and ${acting(sql)}
        on conflict do nothing
        returning id, app_id, affiliate_id
      ), items as (
        insert into payout_items (payout_id, commission_id, app_id, affiliate_id, amount_cents, position)
        select payout.id, due.id, payout.app_id, payout.affiliate_id, due.amount_cents, due.position from payout, due
      )
      update commissions c
         set status = 'paid', matured_at = coalesce(c.matured_at, now()), paid_at = now(), payout_id = payout.id
        from payout, due where c.id = due.id`;
  }
  const row = await sql.maybe<{ totalCents: number; isRecorded: boolean; hasCsv: boolean }>`
    select total_cents, recorded_at is not null as is_recorded, csv_sha256 is not null as has_csv
      from payouts where id = ${payoutId}`;
  // A concurrent payout took a commission between the two statements.
  if (row === undefined) return { kind: 'paid_otherwise', payoutId, lines: [] };
  if (row.totalCents !== totalCents) return { kind: 'known_otherwise', payoutId, totalCents: row.totalCents };
  if (!row.isRecorded || row.hasCsv) return { kind: 'known', payoutId };
  const stored = await sql<{ id: string; position: number }>`
    select commission_id as id, position from payout_items where payout_id = ${payoutId}`;
  const own = new Map(stored.map(({ id, position }) => [position, id]));
  const replaced = lines.filter(({ position, commissionId }) => own.get(position) !== commissionId).length;
  const isSameFile = replaced === 0;
  if (isSameFile) {
    await storeCsv(sql, payoutId, {
      gzip: await compress(csv),
      sha256: createHash('sha256').update(csv).digest(),
    });
    if (!(await csvMatchesPayout(sql, appId, payoutId, 0)))
      throw new Error(`the CSV of ${payoutId} states other events than the database: run ledger check`);
  } else await storePayoutCsv(sql, appId, payoutId);
  return { kind: 'recorded', payoutId, totalCents: row.totalCents, replaced, isSameFile };
}

interface FoundLine extends Line {
  readonly id: string | null;
  readonly isPaid: boolean;
  /** Whether the commission of this id has another event or time. */
  readonly isAltered: boolean;
}

/**
 * Finds the commission of each line: by its id, else an unpaid one of the creator with its amount and time. A person has to add a
 * forgotten entry again: it is found by its amount among those that are due and were added after all entries of the file. One that was
 * undone, or undoes one that is not paid, is none of them.
 */
async function findCommissions(
  sql: Sql,
  of: { readonly appId: AppId; readonly affiliateId: string; readonly lines: readonly Line[] },
): Promise<readonly FoundLine[]> {
  return await sql.forManyRows()<FoundLine>`
    with lines as (
      select * from jsonb_to_recordset(${sql.json(of.lines)})
        l ("position" integer, "commissionId" text, cents bigint, "occurredAt" bigint, "eventId" text, "isEntry" boolean)
    ), own as (
      select c.*, case when c.entry_id is null then epoch_ms(c.occurred_at) end as purchased_at,
             c.entry_id is not null and c.due_at <= now()
             and (n.undoes_entry_id is null
                  or exists (select from commissions x where x.entry_id = n.undoes_entry_id and x.status = 'paid'))
             and not exists (select from payouts p where p.id = c.payout_id and p.recorded_at is not null)
             and not exists (select from entries u where u.undoes_entry_id = n.id)
             and epoch_ms(c.occurred_at) >= all (select "occurredAt" from lines where "isEntry") as may_be_added_again
        from commissions c left join entries n on n.id = c.entry_id
       where c.app_id = ${of.appId} and c.affiliate_id = ${of.affiliateId}
         and (c.entry_id is not null or epoch_ms(c.occurred_at) in (select "occurredAt" from lines where not "isEntry"))
    ), exact as (
      select l."position", c.id, c.status, (c.event_id, epoch_ms(c.occurred_at)) is distinct from (nullif(l."eventId", ''), l."occurredAt") as is_altered
        from lines l join own c on c.id = l."commissionId" and c.amount_cents = l.cents
    ), rest as (
      select l."position", row_number() over (partition by l.cents, p.purchased_at order by l."position") as nth, l.cents, p.purchased_at
        from lines l cross join lateral (select case when not l."isEntry" then l."occurredAt" end as purchased_at) p
       where l."position" not in (select "position" from exact)
    ), unused as (
      select c.id, row_number() over (partition by c.amount_cents, c.purchased_at order by c.status = 'paid', c.id) as nth,
             c.amount_cents, c.purchased_at, c.status
        from own c
       where c.id not in (select id from exact) and case when c.entry_id is null then c.status <> 'paid' else c.may_be_added_again end
    )
    select l."position", l."commissionId" as commission_id, l.cents, l."occurredAt" as occurred_at,
           l."eventId" as event_id, l."isEntry" as is_entry,
           coalesce(e.id, u.id) as id, coalesce(coalesce(e.status, u.status) = 'paid', false) as is_paid,
           coalesce(e.is_altered, false) as is_altered
      from lines l
      left join exact e on e."position" = l."position"
      left join rest r on r."position" = l."position"
      left join unused u on u.nth = r.nth and u.amount_cents = r.cents and u.purchased_at is not distinct from r.purchased_at
     order by l."position"`;
}
