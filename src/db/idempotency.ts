import type { AccountId } from '../domain/ids.ts';
import { retryUntilVisible } from './repeat-after-race.ts';
import { instant } from './sql.ts';
import type { Sql } from './sql.ts';

/** For how long an answer is kept. */
const KEPT_HOURS = 24;

/** How long a call may take before another one with its key may take it over, ms. Longer than any statement may run. */
const CLAIM_MS = 60_000;

/** Something encrypted, and with which key. */
export interface Sealed {
  readonly ciphertext: Buffer;
  readonly encryptionKeyId: string;
}

export interface IdempotentRequest {
  readonly accountId: AccountId;
  readonly idempotencyKey: string;
  readonly requestSha256: Buffer;
}

export interface Claim {
  /** Names this try; a repeat of the statement after a broken connection finds its own claim. */
  readonly claimId: string;
  /** Epoch ms, used when no earlier try is there. */
  readonly requestedAt: number;
  /** Used when no earlier try is there. */
  readonly seed: Sealed;
}

export type ClaimedKey =
  /** To be run now. Time and seed are those of the first try. */
  | { readonly state: 'claimed'; readonly requestedAt: number; readonly seed: Sealed }
  | { readonly state: 'answered'; readonly answer: Sealed }
  | { readonly state: 'in_use' }
  | { readonly state: 'reused' };

interface KeyRow {
  readonly mine: boolean;
  readonly isSame: boolean;
  readonly requestedAt: number;
  readonly seed: Buffer;
  readonly seedKeyId: string;
  readonly answer: Buffer | null;
  readonly answerKeyId: string | null;
}

/**
 * Takes an idempotency key for a call, or tells what has become of an earlier call with it. A key that is older than a
 * day counts as new. A claim that was never finished is taken over once its time is up. Exports keep their keys for
 * ever in `payout_requests`, so a key of theirs is reused by anything else.
 */
export async function claimIdempotencyKey(
  sql: Sql,
  request: IdempotentRequest,
  claim: Claim,
): Promise<ClaimedKey> {
  const { accountId, idempotencyKey, requestSha256 } = request;
  const row = await retryUntilVisible(async () => {
    const found = await sql.maybe<KeyRow | { readonly mine: null }>`
      with of_export as (
        select 1 from payout_requests where account_id = ${accountId} and idempotency_key = ${idempotencyKey}
      ), claimed as (
        insert into idempotency_keys as k (account_id, idempotency_key, request_sha256, requested_at, seed, seed_key_id,
                                           claim_id, claimed_until, expires_at)
        select ${accountId}::text, ${idempotencyKey}::text, ${requestSha256}::bytea,
               ${instant(claim.requestedAt)}::timestamptz, ${claim.seed.ciphertext}::bytea,
               ${claim.seed.encryptionKeyId}::text, ${claim.claimId}::uuid,
               now() + ${CLAIM_MS} * interval '1 millisecond', now() + ${KEPT_HOURS} * interval '1 hour'
         where not exists (select from of_export)
        on conflict (account_id, idempotency_key) do update set
          request_sha256 = excluded.request_sha256,
          requested_at = case when k.expires_at <= now() then excluded.requested_at else k.requested_at end,
          seed = case when k.expires_at <= now() then excluded.seed else k.seed end,
          seed_key_id = case when k.expires_at <= now() then excluded.seed_key_id else k.seed_key_id end,
          answer = null, answer_key_id = null,
          claim_id = excluded.claim_id, claimed_until = excluded.claimed_until,
          expires_at = case when k.expires_at <= now() then excluded.expires_at else k.expires_at end
         where k.expires_at <= now()
            or (k.answer is null and k.request_sha256 = excluded.request_sha256
                and (k.claimed_until <= now() or k.claim_id = excluded.claim_id))
        returning *
      )
      select claim_id = ${claim.claimId}::uuid as mine, request_sha256 = ${requestSha256}::bytea as is_same,
             requested_at, seed, seed_key_id, answer, answer_key_id
        from claimed
      union all
      select false, request_sha256 = ${requestSha256}::bytea, requested_at, seed, seed_key_id, answer, answer_key_id
        from idempotency_keys
       where account_id = ${accountId} and idempotency_key = ${idempotencyKey} and expires_at > now()
         and not exists (select from claimed)
         and not exists (select from of_export)
      union all
      select null, false, null, null, null, null, null from of_export`;
    return found;
  });
  if (row.mine === null || !row.isSame) return { state: 'reused' };
  if (row.mine) {
    const seed = { ciphertext: row.seed, encryptionKeyId: row.seedKeyId };
    return { state: 'claimed', requestedAt: row.requestedAt, seed };
  }
  if (row.answer === null || row.answerKeyId === null) return { state: 'in_use' };
  return { state: 'answered', answer: { ciphertext: row.answer, encryptionKeyId: row.answerKeyId } };
}

/** Keeps what a call came to. Of two tries that ran at once the first answer stays; they say the same. */
export async function keepAnswer(sql: Sql, request: IdempotentRequest, answer: Sealed): Promise<void> {
  await sql`
    update idempotency_keys set answer = ${answer.ciphertext}, answer_key_id = ${answer.encryptionKeyId}
     where account_id = ${request.accountId} and idempotency_key = ${request.idempotencyKey}
       and request_sha256 = ${request.requestSha256} and answer is null`;
}

/** Lets the next call with the key run at once, with the same seed: this one failed, and nobody knows how far it got. */
export async function releaseClaim(sql: Sql, request: IdempotentRequest, claimId: string): Promise<void> {
  await sql`
    update idempotency_keys set claimed_until = now()
     where account_id = ${request.accountId} and idempotency_key = ${request.idempotencyKey}
       and claim_id = ${claimId}::uuid and answer is null`;
}

/** Removes keys whose day is over, at most `limit`. Answers how many. */
export async function deleteExpiredIdempotencyKeys(sql: Sql, limit: number): Promise<number> {
  const { deleted } = await sql.one<{ deleted: number }>`
    with gone as (
      delete from idempotency_keys where (account_id, idempotency_key) in (
        select account_id, idempotency_key from idempotency_keys where expires_at <= now()
         order by expires_at limit ${limit} for update skip locked)
      returning 1
    )
    select count(*)::int as deleted from gone`;
  return deleted;
}
