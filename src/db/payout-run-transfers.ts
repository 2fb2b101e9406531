import { withTransferReferences } from '../domain/payout-transfer.ts';
import type { LiveTransfer, MoneyState, StatedItem, TransferState } from '../domain/payout-transfer.ts';
import type {
  AccountId,
  AffiliateId,
  AppId,
  KeyId,
  PayoutId,
  PayoutRunId,
  PayoutRunItemId,
} from '../domain/ids.ts';
import type { PayoutFileMethod } from '../domain/payout-run.ts';
import { acting } from './audit.ts';
import { retryAfterConflict } from './conflict-retries.ts';
import { newId } from './new-id.ts';
import type { Sql, Statements } from './sql.ts';

/** An item that is in a file of a settled run. */
export interface FiledItem extends StatedItem {
  readonly id: PayoutRunItemId;
  readonly affiliateId: AffiliateId;
  readonly affiliateName: string;
  readonly payoutId: PayoutId;
  readonly amountCents: number;
  readonly method: PayoutFileMethod;
  /** The latest of all statements about the payout, also of those before the file. */
  readonly latestState: TransferState | null;
  /** Whether anything was stated since the file, also if it was withdrawn. */
  readonly isStated: boolean;
}

/** What is to be stated about an item. */
export interface ItemReport {
  readonly statements: readonly MoneyState[];
  /** Their reference. */
  readonly reference: string | null;
  /** Other transfers, which are kept. */
  readonly others: readonly LiveTransfer[];
}

/** Returns the items that are in the files of a run, the largest first, with what was stated since about their payouts. */
export async function readFiledItems(
  sql: Statements,
  appId: AppId,
  runId: PayoutRunId,
): Promise<readonly FiledItem[]> {
  const items = await sql<FiledItem>`
    select i.id, i.affiliate_id, i.affiliate_name, p.id as payout_id, i.expected_cents as amount_cents, i.method,
           coalesce(l.position, 0) as position, l.state as latest_state, coalesce(l.position, 0) > s.since as is_stated,
           case when m.transfer_position > s.since then m.transfer_state end as state,
           case when m.transfer_position > s.since then m.transfer_position end as stated_position,
           case when m.transfer_position > s.since then h.reference end as stated_reference,
           b.position is not null as came_back, b.reference as returned_reference, n.return_position is not null as is_sent_again,
           coalesce((select jsonb_agg(jsonb_build_object('reference', x.reference, 'hasArrived', x.has_arrived, 'position', x.position)
                                          order by x.position, x.created_at, x.reference)
                       from other_transfers x where x.payout_id = p.id and x.position >= s.since), '[]') as others
      from payout_run_items i
     cross join lateral (select coalesce(i.return_position, 0) as since) s
      left join lateral (select * from payout_requests x where x.id = i.request_id and x.status = 'paid' offset 0) q on true
     cross join lateral (select coalesce(i.payout_id, q.payout_id) as id) p
      left join lateral (select * from payout_transfers x where x.payout_id = p.id order by x.position desc limit 1) l on true
      left join lateral (select * from money_of_payout(p.id)) m on true
      left join lateral (select * from payout_transfers x where x.payout_id = p.id and x.position = m.transfer_position offset 0) h on true
      -- The next file with the payout, and the last return before it.
      left join lateral (select min(x.return_position) as return_position from payout_run_items x
                          where x.payout_id = p.id and x.return_position > s.since) n on true
      left join lateral (select * from payout_transfers x
                          where x.payout_id = p.id and x.position > s.since and x.state = 'returned'
                            and (n.return_position is null or x.position <= n.return_position)
                          order by x.position desc limit 1) b on true
     where i.app_id = ${appId} and i.run_id = ${runId} and (q.payout_id is not null or i.return_position is not null)
     order by i.position`;
  return withTransferReferences(items);
}

export type SettledItems = readonly FiledItem[] | 'not_settled' | undefined;

/** Returns the items of a settled run that are in its files. Undefined for an unknown run. */
export async function findFiledItems(
  sql: Statements,
  appId: AppId,
  runId: PayoutRunId,
): Promise<SettledItems> {
  const run = await sql.maybe<{ readonly status: string }>`
    select status from payout_runs where app_id = ${appId} and id = ${runId}`;
  if (run === undefined) return undefined;
  return run.status === 'settled' ? await readFiledItems(sql, appId, runId) : 'not_settled';
}

/** The run, and who states something. */
export interface TransferPlace {
  readonly appId: AppId;
  readonly runId: PayoutRunId;
  readonly accountId: AccountId;
  readonly keyId: KeyId;
}

/** What is to be stated about items, by their ids. */
export type Reports = ReadonlyMap<PayoutRunItemId, ItemReport>;

/**
 * States about items of a settled run what `reportOn` returns for them, where it was not stated before: it sees all items, with what was
 * stated since their files. A large run is stated in parts, before each of which `reportOn` is asked again; a repetition goes on, and then
 * states nothing more. Returns the items as `reportOn` saw them first; undefined for an unknown run. A first refusal of `reportOn` is
 * returned, and nothing is stated.
 */
export async function stateTransfers<R extends string>(
  sql: Sql,
  place: TransferPlace,
  reportOn: (items: readonly FiledItem[]) => Reports | R,
  partSize = PART,
): Promise<SettledItems | R> {
  const statePart = async (tx: Statements): Promise<Part<R>> => {
    await tx`select from payout_runs where app_id = ${place.appId} and id = ${place.runId} for update`;
    const items = await findFiledItems(tx, place.appId, place.runId);
    if (items === undefined || items === 'not_settled') return { answer: items, isLast: true };
    const reports = reportOn(items);
    if (typeof reports === 'string') return { answer: reports, isLast: true };
    const { rows, others, isLast } = firstPart(items, reports, partSize);
    await insertTransfers(tx, place, rows);
    await insertOthers(tx, place, others);
    return { answer: items, isLast };
  };
  // Somebody may state something about one of the payouts at the same time.
  const stateNext = async () =>
    await retryAfterConflict(
      ['payout_transfers_pkey'],
      async () => await sql.forManyRows().transaction(statePart),
    );
  const first = await stateNext();
  for (let { isLast } = first; !isLast;) ({ isLast } = await stateNext());
  return first.answer;
}

/** Statements that one transaction appends: each has a row of the audit. */
const PART = 1_000;

/**
 * Returns the rows of the first items with something to state: about `size`, and all rows of each item. With a part of them, the item
 * would be in another state, of which a report may say nothing more.
 */
function firstPart(items: readonly FiledItem[], reports: Reports, size: number) {
  const rows: ReturnType<typeof rowsOf> = [];
  const others: ReturnType<typeof othersOf> = [];
  for (const item of items) {
    const report = reports.get(item.id);
    const [ofItem, othersOfItem] = [rowsOf(item, report), othersOf(item, report)];
    const isFull = rows.length + ofItem.length > size || others.length + othersOfItem.length > size;
    if (isFull && rows.length + others.length > 0) return { rows, others, isLast: false };
    rows.push(...ofItem);
    others.push(...othersOfItem);
  }
  return { rows, others, isLast: true };
}

interface Part<R> {
  readonly answer: SettledItems | R;
  readonly isLast: boolean;
}

async function insertTransfers(
  tx: Statements,
  { appId, accountId, keyId }: TransferPlace,
  rows: readonly object[],
): Promise<void> {
  await tx`
    insert into payout_transfers (id, app_id, payout_id, position, state, previous_position, previous_state, method, reference,
                                  note, account_id, key_id)
    select x.id, ${appId}::text, x."payoutId", x.position, x.state, nullif(x.position - 1, 0), x."previousState", x.method,
           x.reference, null, ${accountId}::text, ${keyId}::text
      from jsonb_to_recordset(${tx.json(rows)}) x
           (id text, "payoutId" text, position int, state text, "previousState" text, method text, reference text)
     where ${acting(tx)}`;
}

/** Keeps other transfers. In the order of the payouts, which the trigger locks: a resend run locks them, too. */
async function insertOthers(
  tx: Statements,
  { appId, accountId, keyId }: TransferPlace,
  rows: readonly object[],
): Promise<void> {
  if (rows.length === 0) return;
  await tx`
    insert into other_transfers (app_id, payout_id, position, reference, has_arrived, account_id, key_id)
    select ${appId}::text, x."payoutId", x.position, x.reference, x."hasArrived", ${accountId}::text, ${keyId}::text
      from jsonb_to_recordset(${tx.json(rows)}) x ("payoutId" text, position int, reference text, "hasArrived" boolean)
     where ${acting(tx)}
     order by x."payoutId"
    on conflict do nothing`;
}

/** Returns the rows of what is to be stated about an item. */
function rowsOf(item: FiledItem, report: ItemReport | undefined) {
  if (report === undefined) return [];
  const { payoutId, position, method } = item;
  return report.statements.map((state, n, all) => ({
    id: newId('transfer'),
    payoutId,
    position: position + n + 1,
    state,
    previousState: n === 0 ? item.latestState : all[n - 1],
    method: method === 'other' ? null : method,
    reference: report.reference,
  }));
}

/** Returns the rows of the other transfers of an item. */
function othersOf({ payoutId, position }: FiledItem, report: ItemReport | undefined) {
  if (report === undefined) return [];
  return report.others.map((transfer) => ({
    payoutId,
    position: position + report.statements.length,
    ...transfer,
  }));
}
