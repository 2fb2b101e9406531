import { createHash } from 'node:crypto';
import type { AppId, PayoutId } from '../domain/ids.ts';
import { recordsOf } from './payout-csv.ts';
import type { Sql } from './sql.ts';

/** A payout in the hash chain of its app. Hashes are hexadecimal. */
export interface ChainLink {
  readonly position: number;
  readonly payoutId: PayoutId;
  readonly totalCents: number;
  readonly csvSha256: string;
  /** Null for the first payout of an app. */
  readonly previousHash: string | null;
  readonly hash: string;
}

/** Returns the hash of a payout in the chain of its app, hexadecimal, as Postgres computes it in `payout_chain_hash`. */
export function chainHashOf(appId: AppId, link: Omit<ChainLink, 'hash'>): string {
  const { previousHash, position, payoutId, totalCents, csvSha256 } = link;
  const text = [previousHash ?? '', appId, position, payoutId, totalCents, csvSha256, ''].join('\n');
  return createHash('sha256').update(text).digest('hex');
}

/** Returns whether `link` has the right hash and follows `previous`; null if it must be the first. */
export function continuesChain(appId: AppId, previous: ChainLink | null, link: ChainLink): boolean {
  return (
    link.position === (previous?.position ?? 0) + 1 &&
    link.previousHash === (previous?.hash ?? null) &&
    link.hash === chainHashOf(appId, link)
  );
}

/** Links that one statement reads. */
const PAGE = 1_000;

/** Yields the payouts of an app in the order of its hash chain, as they are stored. */
export async function* listChain(sql: Sql, appId: AppId): AsyncGenerator<ChainLink> {
  let after = 0;
  for (;;) {
    const page = await sql<ChainLink>`
      select position, payout_id, total_cents, encode(csv_sha256, 'hex') as csv_sha256,
             encode(previous_hash, 'hex') as previous_hash, encode(hash, 'hex') as hash
        from payout_chain where app_id = ${appId} and position > ${after}
       order by position limit ${PAGE}`;
    yield* page;
    if (page.length < PAGE) return;
    after = page.at(-1)?.position ?? after;
  }
}

/** What the hash chain of an app says about a CSV. */
export type PayoutProof =
  | {
      readonly kind: 'proved';
      readonly appId: AppId;
      readonly link: ChainLink;
      /** The number of payouts in the chain, and the hash of the last one. */
      readonly payouts: number;
      readonly lastHash: string;
    }
  /** The CSV names no payout of this service. */
  | { readonly kind: 'unknown_payout' }
  /** The kept hash is of no payout at this place or later, so it says nothing about the payout. */
  | { readonly kind: 'not_covered'; readonly payoutId: PayoutId; readonly position: number }
  /** The CSV of the payout has another SHA-256. */
  | { readonly kind: 'other_csv'; readonly payoutId: PayoutId; readonly paidSha256: string | null }
  /** A row was changed, removed or inserted: the payout at this place does not follow the one before. */
  | { readonly kind: 'broken_chain'; readonly appId: AppId; readonly position: number };

/**
 * Returns whether a CSV is the one of the payout that it names, and whether the hash chain of the app is intact.
 * `keptHash` must be the hash of that payout or of a later one, because anything can be appended after a hash.
 */
export async function provePayout(
  sql: Sql,
  csv: Buffer,
  keptHash: string | null = null,
): Promise<PayoutProof> {
  const sha256 = createHash('sha256').update(csv).digest('hex');
  const first = recordsOf(csv.toString('utf8')).next();
  const named = first.done === true ? '' : (first.value['payout_id'] ?? '');
  const payout = await sql.maybe<{ id: PayoutId; appId: AppId; csvSha256: string | null }>`
    select id, app_id, encode(csv_sha256, 'hex') as csv_sha256 from payouts where id = ${named}`;
  if (payout === undefined) return { kind: 'unknown_payout' };
  const { id: payoutId, appId, csvSha256 } = payout;
  if (csvSha256 !== sha256) return { kind: 'other_csv', payoutId, paidSha256: csvSha256 };
  let previous: ChainLink | null = null;
  let own: ChainLink | null = null;
  let isCovered = keptHash === null;
  for await (const link of listChain(sql, appId)) {
    if (!continuesChain(appId, previous, link))
      return { kind: 'broken_chain', appId, position: link.position };
    if (link.payoutId === payoutId) own = link;
    if (own !== null && link.hash === keptHash) isCovered = true;
    previous = link;
  }
  if (own?.csvSha256 !== sha256 || previous === null) {
    return { kind: 'broken_chain', appId, position: own?.position ?? (previous?.position ?? 0) + 1 };
  }
  if (!isCovered) return { kind: 'not_covered', payoutId, position: own.position };
  return { kind: 'proved', appId, link: own, payouts: previous.position, lastHash: previous.hash };
}
