import type { AppId, DeliveryId, ErasureId, KeyId } from '../domain/ids.ts';
import {
  identifierHasher,
  newPseudonym,
  openSubject,
  sealSubject,
  searchAgain,
} from './erased-identifiers.ts';
import { acting } from './audit.ts';
import { newId } from './new-id.ts';
import { retryUntilVisible } from './conflict-retries.ts';
import type { Sql } from './sql.ts';
import { eraseRows } from './erasure-rows.ts';
import type { ErasureDeps, Erasure, OpenErasure } from './erasure-state.ts';

/**
 * Requests the erasure of a user, and erases the user's rows. From the first statement on, later facts of the user are stored
 * under the pseudonym. The same request returns the erasure that it made before, and has its search run again: identifiers and
 * bodies may have been stored since. It may be sent again after any failure; the workflow completes what a failure left. A pseudonym, as
 * lists show it, is no user: its erasure is returned as it is.
 */
export async function eraseUser(
  deps: ErasureDeps,
  request: { readonly appId: AppId; readonly customerUserId: string; readonly keyId: KeyId | null },
): Promise<Erasure> {
  const { sql, secretBox } = deps;
  const { appId, customerUserId, keyId } = request;
  const before = await findErasureOfPseudonym(sql, appId, customerUserId);
  if (before !== undefined) return before;
  const userHash = (await identifierHasher(sql, secretBox))(appId, customerUserId);
  const id = newId('erasure');
  const subject = sealSubject(secretBox, appId, customerUserId);
  // An erasure that was complete, or was opened again for a key: the keys of the person are not known any more.
  const restarts = sql.fragment`(s.finished_at is not null or (s.reopened_at is not null and not s.by_hash))`;
  const opened = await retryUntilVisible(
    async () =>
      await sql.maybe<{ id: ErasureId }>`
      with added as (
        insert into erasures (id, app_id, user_hash, pseudonym, key_id)
        select ${id}::text, ${appId}::text, ${userHash}::bytea, ${newPseudonym()}::text, ${keyId}::text where ${acting(sql)}
        on conflict do nothing
        returning id, pseudonym
      ), marked as (
        insert into erased_identifiers (app_id, hash, erasure_id, kind, pseudonym)
        select ${appId}, ${userHash}::bytea, id, 'user', pseudonym from added
        on conflict do nothing
      ), reopened as (
        -- Its row is locked and changed in any case: the step that finishes the erasure comes either before or after this.
        update erasures s set by_hash = s.by_hash or ${restarts}, ${searchAgain(sql, restarts)}
         where s.app_id = ${appId} and s.user_hash = ${userHash}
        returning s.id
      ), searched as (
        insert into erasure_subjects (erasure_id, source, hash, ciphertext, encryption_key_id)
        select o.id, '', ${userHash}, decode(${subject.ciphertext}, 'hex'), ${subject.encryptionKeyId}
          from (select id from added union all select id from reopened) o
        on conflict do nothing
      )
      select id from added union all select id from erasures where app_id = ${appId} and user_hash = ${userHash}`,
  );
  const open = await findOpenErasure(deps, opened.id);
  if (open !== undefined) await eraseRows(deps, open);
  const erasure = await findErasure(sql, opened.id);
  if (erasure === undefined) throw new Error(`the erasure ${opened.id} was not stored`);
  return erasure;
}

/**
 * Returns the erasure that a text is the pseudonym of, also that of one key of a customer. Undefined for any other text. A second pseudonym
 * for the same person would make each event of the person name one that is erased.
 */
async function findErasureOfPseudonym(sql: Sql, appId: AppId, text: string): Promise<Erasure | undefined> {
  const of = await sql.maybe<{ id: ErasureId }>`
    select erasure_id as id from erased_identifiers
     where app_id = ${appId} and pseudonym = split_part(${text}::text, '~', 1) limit 1`;
  return of && (await findErasure(sql, of.id, appId));
}

/** Returns an erasure, of this app if `appId` is given. Undefined for an unknown one. */
export async function findErasure(
  sql: Sql,
  id: ErasureId,
  appId: AppId | null = null,
): Promise<Erasure | undefined> {
  return await sql.maybe<Erasure>`
    select id, app_id, pseudonym, requested_at, reopened_at, finished_at, counts, waiting from erasures
     where id = ${id} and (${appId}::text is null or app_id = ${appId})`;
}

/** Returns an erasure in progress. Undefined when it is finished or unknown. */
export async function findOpenErasure(
  { sql, secretBox }: ErasureDeps,
  id: ErasureId,
): Promise<OpenErasure | undefined> {
  const row = await sql.maybe<
    Omit<OpenErasure, 'subject'> & {
      sealed: readonly { source: string; ciphertext: string; encryptionKeyId: string }[];
    }
  >`
    select e.id, e.app_id, e.pseudonym, e.requested_at, e.reopened_at, e.finished_at, e.counts, e.waiting, encode(e.user_hash, 'hex') as user_hash,
           e.by_hash, e.revision, e.scanned_at, e.scanned_id, e.settles_at,
           ceil(extract(epoch from e.settles_at - clock_timestamp()) * 1000)::float8 as settles_in_ms,
           (select coalesce(jsonb_agg(jsonb_build_object('source', s.source, 'ciphertext', encode(s.ciphertext, 'hex'),
                                                         'encryptionKeyId', s.encryption_key_id)), '[]')
              from erasure_subjects s where s.erasure_id = e.id) as sealed
      from erasures e where e.id = ${id} and e.finished_at is null`;
  if (row === undefined) return undefined;
  const { sealed, ...erasure } = row;
  const opened = sealed.map(({ source, ...subject }) => ({
    source,
    identifier: openSubject(secretBox, row.appId, subject),
  }));
  const subject = {
    customerUserId: opened.find(({ source }) => source === '')?.identifier ?? null,
    keys: opened
      .filter(({ source }) => source !== '')
      .map(({ source, identifier }) => ({ source, userKey: identifier })),
  };
  return { ...erasure, subject };
}

/**
 * Claims erasures in progress: new ones at once, and those that were claimed `olderThanMs` ago again. Starting a workflow that
 * runs does nothing.
 */
export async function claimErasures(
  sql: Sql,
  olderThanMs: number,
  limit: number,
): Promise<Pick<OpenErasure, 'id' | 'appId'>[]> {
  return await sql<Pick<OpenErasure, 'id' | 'appId'>>`
    with page as materialized (
      select id from erasures
       where finished_at is null and (relayed_at is null or relayed_at < now() - ${olderThanMs} * interval '1 millisecond')
       order by coalesce(relayed_at, requested_at)
       limit ${limit}
       for update skip locked
    )
    update erasures e set relayed_at = now() from page where e.id = page.id returning e.id, e.app_id`;
}

/** Begins the second search in `settleMs`, over the deliveries that arrived since the request. */
export async function settleErasure(
  sql: Sql,
  { id, revision }: Pick<OpenErasure, 'id' | 'revision'>,
  settleMs: number,
): Promise<void> {
  await sql`
    update erasures set settles_at = now() + ${settleMs} * interval '1 millisecond', scanned_at = null, scanned_id = null
     where id = ${id} and finished_at is null and revision = ${revision}`;
}

/** Returns the waiting deliveries of an erasure, and whether each has its outcome. */
export async function findWaitingDeliveries(
  sql: Sql,
  id: ErasureId,
): Promise<{ readonly deliveryId: DeliveryId; readonly isDone: boolean }[]> {
  return await sql<{ deliveryId: DeliveryId; isDone: boolean }>`
    select d.id as delivery_id, d.completed_at is not null as is_done
      from erasures s join deliveries d on d.id = any(s.waiting) where s.id = ${id}`;
}

/** Begins the search again if a key was found or the erasure was requested since it began. Returns whether it does. */
export async function repeatSearch(
  sql: Sql,
  { id, revision }: Pick<OpenErasure, 'id' | 'revision'>,
): Promise<boolean> {
  const repeated = await sql`
    update erasures set search_again = false, scanned_at = null, scanned_id = null, settles_at = null, revision = revision + 1
     where id = ${id} and finished_at is null and revision = ${revision} and search_again
    returning id`;
  return repeated.length > 0;
}

/**
 * Completes an erasure: the identifiers that it searched for are removed. Does nothing if the search has begun again or has to.
 * Returns whether it completed it.
 */
export async function finishErasure(
  sql: Sql,
  { id, revision }: Pick<OpenErasure, 'id' | 'revision'>,
): Promise<boolean> {
  const finished = await sql`
    with done as (
      update erasures set finished_at = now(), by_hash = false, waiting = '{}'
       where id = ${id} and finished_at is null and revision = ${revision} and not search_again
      returning id
    ), removed as (
      delete from erasure_subjects s using done where s.erasure_id = done.id
    )
    select id from done`;
  return finished.length > 0;
}
