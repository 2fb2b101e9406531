import { createHash } from 'node:crypto';
import type { SecretBox } from '../config/secret-box.ts';
import type { ErasureSubject } from '../domain/erasure.ts';
import type { AppId, DeliveryId, ErasureId, KeyId } from '../domain/ids.ts';
import { findPseudonyms, identifierHasher, newPseudonym } from './erased-identifiers.ts';
import { newId } from './new-id.ts';
import { retryUntilVisible } from './retries.ts';
import { instant, LONG_STATEMENT_MS } from './sql.ts';
import type { Sql } from './sql.ts';

/** What every function of this file needs. */
export interface ErasureDeps {
  readonly sql: Sql;
  readonly secretBox: SecretBox;
}

/** What an erasure did, by kind of row. */
export const ERASED_KINDS = [
  'bindings',
  'commissions',
  'events',
  'payments',
  'transfers',
  'providerKeys',
  'devices',
  'clicks',
  'identities',
  'testReports',
  'reprocessNames',
  'bodies',
  'histories',
] as const;
export type ErasedKind = (typeof ERASED_KINDS)[number];

export interface Erasure {
  readonly id: ErasureId;
  readonly appId: AppId;
  readonly pseudonym: string;
  readonly requestedAt: number;
  readonly finishedAt: number | null;
  readonly counts: Readonly<Partial<Record<ErasedKind, number>>>;
  /** Deliveries that name the person and have no outcome yet. */
  readonly waiting: readonly DeliveryId[];
}

interface ErasureRow extends Erasure {
  readonly subject: Uint8Array | null;
  readonly subjectKeyId: string | null;
  readonly scannedAt: number | null;
  readonly scannedId: DeliveryId | null;
  readonly settlesAt: number | null;
}

/** An erasure in progress, with the identifiers that it searches for. */
export interface OpenErasure extends Omit<ErasureRow, 'subject' | 'subjectKeyId'> {
  readonly subject: ErasureSubject;
}

const context = (id: ErasureId) => `erasure:${id}`;

const columns = (sql: Sql) => sql.fragment`
  id, app_id, pseudonym, requested_at, finished_at, counts, waiting, subject, subject_key_id, scanned_at, scanned_id, settles_at`;

/**
 * Requests the erasure of a user, and erases the user's rows. From the first statement on, later facts of the user are stored
 * under the pseudonym. The same request returns the erasure that it made before. It may be sent again after any failure; the
 * workflow completes what a failure left.
 */
export async function eraseUser(
  deps: ErasureDeps,
  request: { readonly appId: AppId; readonly customerUserId: string; readonly keyId: KeyId | null },
): Promise<Erasure> {
  const { sql, secretBox } = deps;
  const { appId, customerUserId, keyId } = request;
  const userHash = (await identifierHasher(sql, secretBox))(appId, customerUserId);
  const id = newId('erasure');
  const subject = sealSubject(secretBox, id, { customerUserId, userKeys: [] });
  const opened = await retryUntilVisible(
    async () =>
      await sql.maybe<{ id: ErasureId }>`
      with added as (
        insert into erasures (id, app_id, user_hash, pseudonym, key_id, subject, subject_key_id)
        values (${id}, ${appId}, ${userHash}, ${newPseudonym()}, ${keyId}, ${subject.ciphertext}, ${subject.encryptionKeyId})
        on conflict do nothing
        returning id, pseudonym
      ), marked as (
        insert into erased_identifiers (app_id, hash, erasure_id, kind, pseudonym)
        select ${appId}, ${userHash}::bytea, id, 'user', pseudonym from added
        on conflict (app_id, hash) do update
          set erasure_id = excluded.erasure_id, kind = excluded.kind, pseudonym = excluded.pseudonym
      )
      select id from added union all select id from erasures where app_id = ${appId} and user_hash = ${userHash}`,
  );
  const open = await findOpenErasure(deps, opened.id);
  if (open !== undefined) await eraseRows(deps, open);
  const erasure = await findErasure(sql, opened.id);
  if (erasure === undefined) throw new Error(`the erasure ${opened.id} was not stored`);
  return erasure;
}

function sealSubject(secretBox: SecretBox, id: ErasureId, subject: ErasureSubject) {
  return secretBox.encrypt(JSON.stringify(subject), context(id));
}

/** Returns an erasure, of this app if `appId` is given. Undefined for an unknown one. */
export async function findErasure(
  sql: Sql,
  id: ErasureId,
  appId: AppId | null = null,
): Promise<Erasure | undefined> {
  return await sql.maybe<Erasure>`
    select id, app_id, pseudonym, requested_at, finished_at, counts, waiting from erasures
     where id = ${id} and (${appId}::text is null or app_id = ${appId})`;
}

/** Returns an erasure in progress. Undefined when it is finished or unknown. */
export async function findOpenErasure(
  { sql, secretBox }: ErasureDeps,
  id: ErasureId,
): Promise<OpenErasure | undefined> {
  const row = await sql.maybe<ErasureRow>`select ${columns(sql)} from erasures where id = ${id}`;
  if (row === undefined || row.subject === null || row.subjectKeyId === null) return undefined;
  const subject = secretBox.decrypt(Buffer.from(row.subject), row.subjectKeyId, context(id));
  return { ...row, subject: JSON.parse(subject) as ErasureSubject };
}

/**
 * Claims erasures in progress: new ones at once, and those that were claimed `olderThanMs` ago again. Starting a workflow that
 * runs does nothing.
 */
export async function claimErasures(sql: Sql, olderThanMs: number, limit: number): Promise<ErasureId[]> {
  const rows = await sql<{ id: ErasureId }>`
    with page as materialized (
      select id from erasures
       where finished_at is null and (relayed_at is null or relayed_at < now() - ${olderThanMs} * interval '1 millisecond')
       order by coalesce(relayed_at, requested_at)
       limit ${limit}
       for update skip locked
    )
    update erasures e set relayed_at = now() from page where e.id = page.id returning e.id`;
  return rows.map((row) => row.id);
}

interface FoundKey {
  readonly source: string;
  readonly userKey: string;
}

/**
 * Returns the person's keys at providers and the references of the person's payments. A key that another user owns is not the
 * person's.
 */
async function findIdentifiers(
  sql: Sql,
  appId: AppId,
  users: readonly string[],
): Promise<{ readonly keys: readonly FoundKey[]; readonly refs: readonly string[] }> {
  return await sql.within(LONG_STATEMENT_MS).one`
    with own_links as materialized (
      select distinct source, user_key from user_links where app_id = ${appId} and customer_user_id = any(${[...users]}::text[])
    ), own_payments as materialized (
      select payment_id from payment_users where app_id = ${appId} and customer_user_id = any(${[...users]}::text[])
      union
      select k.payment_id from own_links l
        join payment_user_keys k on k.app_id = ${appId} and k.user_key = l.user_key and k.source = l.source
    ), keys as (
      select source, user_key from own_links
      union
      select k.source, k.user_key from own_payments o join payment_user_keys k on k.payment_id = o.payment_id
       where not exists (select from user_links l
                          where l.app_id = ${appId} and l.source = k.source and l.user_key = k.user_key
                            and l.customer_user_id <> all(${[...users]}::text[]))
    )
    select coalesce((select jsonb_agg(jsonb_build_object('source', source, 'userKey', user_key)) from keys), '[]') as keys,
           array(select distinct n.ref from own_payments o
                   join payments p on p.id = o.payment_id
                  cross join lateral same_payment_refs(p.app_id, p.environment, p.store, array[p.ref]) n) as refs`;
}

/** The text that a reprocess run stores for a name (activities/reprocess-delivery.ts). */
const reprocessName = (name: string) => createHash('sha256').update(name).digest('base64url');

/**
 * Replaces or removes the user's identifiers in all rows that an index leads to, by one statement after the identifiers were
 * marked as erased. The rows that no index leads to follow with the search of deliveries. Running it again changes only what
 * has been added since.
 */
export async function eraseRows(deps: ErasureDeps, erasure: OpenErasure): Promise<void> {
  const { sql, secretBox } = deps;
  const { id, appId, pseudonym, subject } = erasure;
  const { customerUserId: user } = subject;
  const { keys, refs } = await findIdentifiers(sql, appId, [user, pseudonym]);
  const hash = await identifierHasher(sql, secretBox);
  const raw = keys.filter(({ userKey }) => !userKey.startsWith('erased:'));
  const userKeys = [...new Set([...subject.userKeys, ...raw.map(({ userKey }) => userKey)])];
  const marks = [
    ...raw.map(({ userKey }) => ({ kind: 'key', identifier: userKey, pseudonym: newPseudonym() })),
    ...refs.map((ref) => ({ kind: 'ref', identifier: ref, pseudonym: null })),
  ].map(({ identifier, ...mark }) => ({ ...mark, hash: hash(appId, identifier).toString('hex') }));
  const sealed = sealSubject(secretBox, id, { customerUserId: user, userKeys });
  await sql`
    with kept as (
      update erasures set subject = ${sealed.ciphertext}, subject_key_id = ${sealed.encryptionKeyId}
       where id = ${id} and finished_at is null
    )
    insert into erased_identifiers (app_id, hash, erasure_id, kind, pseudonym)
    select ${appId}, decode(m.hash, 'hex'), ${id}, m.kind, m.pseudonym
      from jsonb_to_recordset(${sql.json(marks)}) m (kind text, hash text, pseudonym text)
    on conflict (app_id, hash) do nothing`;
  const known = await findPseudonyms(sql, secretBox, appId, userKeys);
  const replaced = raw.flatMap(({ source, userKey }) => {
    const replacement = known.get(userKey);
    return replacement === undefined ? [] : [{ source, userKey, replacement }];
  });
  const names = [
    { from: `user ${user}`, to: `user ${pseudonym}` },
    ...replaced.map(({ source, userKey, replacement }) => ({
      from: `key ${source} ${userKey}`,
      to: `key ${source} ${replacement}`,
    })),
  ].map(({ from, to }) => ({ from: reprocessName(from), to: reprocessName(to) }));
  await retryAfterDeadlock(async () => {
    await replaceInRows(sql, { id, appId, user, pseudonym, keys: replaced, names });
  });
}

/** Runs a statement again when it and another one have waited for each other. */
async function retryAfterDeadlock(statement: () => Promise<void>): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      await statement();
      return;
    } catch (error) {
      if (attempt === 5 || (error as { code?: unknown }).code !== '40P01') throw error;
    }
  }
}

interface Replacements {
  readonly id: ErasureId;
  readonly appId: AppId;
  readonly user: string;
  readonly pseudonym: string;
  readonly keys: readonly (FoundKey & { readonly replacement: string })[];
  readonly names: readonly { readonly from: string; readonly to: string }[];
}

/**
 * The statement of `eraseRows`. Its parts:
 *
 * - `held` locks the person's payments in the order of evaluations and raises their versions: an evaluation that has read the
 *   user id appends nothing and reads again. Those without a binding are marked for another evaluation: one that was recorded
 *   under the user id while the binding received the pseudonym did not find it;
 * - `devices` are those that reported no other user. A device that others use keeps its id;
 * - rows that another row with the pseudonym makes superfluous are deleted, all others get the pseudonym.
 */
async function replaceInRows(
  sql: Sql,
  { id, appId, user, pseudonym, keys, names }: Replacements,
): Promise<void> {
  await sql.within(LONG_STATEMENT_MS)`
    with k as materialized (
      select source, "userKey" as user_key, replacement
        from jsonb_to_recordset(${sql.json(keys)}) k (source text, "userKey" text, replacement text)
    ), held as materialized (
      select p.id, p.event_id from payments p
       where p.id = any(array(
         select payment_id from payment_users where app_id = ${appId} and customer_user_id = any(${[user, pseudonym]}::text[])
         union
         select x.payment_id from k join payment_user_keys x on x.app_id = ${appId} and x.user_key = k.user_key and x.source = k.source))
       order by p.id for update
    ), raised as (
      update payments p
         set version = p.version + 1,
             recheck_since = case when p.environment = 'production' and p.binding_id is null then now() else p.recheck_since end
        from held where p.id = held.id
    ), devices as materialized (
      select d.device_id, 'erased:' || replace(gen_random_uuid()::text, '-', '') as replacement
        from (select device_id from identities where app_id = ${appId} and customer_user_id = ${user}
              union select device_id from test_identities where app_id = ${appId} and customer_user_id = ${user}) d
       where not exists (select from identities i
                          where i.app_id = ${appId} and i.device_id = d.device_id and i.customer_user_id <> ${user})
         and not exists (select from test_identities i
                          where i.app_id = ${appId} and i.device_id = d.device_id and i.customer_user_id <> ${user})
    ), installs as (
      update attributions t set device_id = d.replacement from devices d
       where t.app_id = ${appId} and t.device_id = d.device_id
      returning t.click_id
    ), touches as (
      update losing_touches l set device_id = d.replacement from devices d
       where l.app_id = ${appId} and l.device_id = d.device_id
      returning l.click_id
    ), test_installs as (
      delete from test_attributions t using devices d
       where t.app_id = ${appId} and t.device_id = d.device_id
      returning t.click_id
    ), own_clicks as materialized (
      select click_id from installs union select click_id from touches union select click_id from test_installs
    ), cleared as (
      -- The hash of the address for deferred matches is deleted by the trigger on claimed_by_device.
      update clicks c
         set ip_hash = null, user_agent = null, claim_token = gen_random_uuid(),
             claimed_by_device = coalesce((select d.replacement from devices d where d.device_id = c.claimed_by_device),
                                          c.claimed_by_device)
       where c.id = any(array(select click_id from own_clicks where click_id is not null))
      returning 1
    ), bound as (
      update bindings b
         set customer_user_id = case when exists (select from bindings x where x.app_id = ${appId} and x.customer_user_id = ${pseudonym})
                                     then ${pseudonym} || '~' || replace(gen_random_uuid()::text, '-', '') else ${pseudonym} end
       where b.app_id = ${appId} and b.customer_user_id = ${user}
      returning 1
    ), seen as (
      delete from identities where app_id = ${appId} and customer_user_id = ${user} returning 1
    ), seen_in_test as (
      delete from test_identities where app_id = ${appId} and customer_user_id = ${user} returning 1
    ), payers as (
      update payment_users u set customer_user_id = ${pseudonym}
       where u.app_id = ${appId} and u.customer_user_id = ${user}
         and not exists (select from payment_users x
                          where x.app_id = ${appId} and x.customer_user_id = ${pseudonym} and x.payment_id = u.payment_id)
      returning 1
    ), superfluous_payers as (
      delete from payment_users u
       where u.app_id = ${appId} and u.customer_user_id = ${user}
         and exists (select from payment_users x
                      where x.app_id = ${appId} and x.customer_user_id = ${pseudonym} and x.payment_id = u.payment_id)
      returning 1
    ), payment_keys as (
      update payment_user_keys u set user_key = k.replacement from k
       where u.app_id = ${appId} and u.user_key = k.user_key and u.source = k.source
         and not exists (select from payment_user_keys x
                          where x.app_id = ${appId} and x.user_key = k.replacement and x.payment_id = u.payment_id and x.source = k.source)
      returning 1
    ), superfluous_payment_keys as (
      delete from payment_user_keys u using k
       where u.app_id = ${appId} and u.user_key = k.user_key and u.source = k.source
         and exists (select from payment_user_keys x
                      where x.app_id = ${appId} and x.user_key = k.replacement and x.payment_id = u.payment_id and x.source = k.source)
      returning 1
    ), links as (
      update user_links l
         set user_key = coalesce((select k.replacement from k where k.user_key = l.user_key and k.source = l.source), l.user_key),
             customer_user_id = case l.customer_user_id when ${user} then ${pseudonym} else l.customer_user_id end
       where l.app_id = ${appId} and l.customer_user_id = any(${[user, pseudonym]}::text[])
         and (l.customer_user_id = ${user} or exists (select from k where k.user_key = l.user_key and k.source = l.source))
         and not exists (select from k join user_links x on x.app_id = ${appId} and x.environment = l.environment
                                                        and x.source = l.source and x.user_key = k.replacement
                          where k.user_key = l.user_key and k.source = l.source)
      returning 1
    ), superfluous_links as (
      delete from user_links l using k, user_links x
       where l.app_id = ${appId} and l.customer_user_id = any(${[user, pseudonym]}::text[])
         and k.user_key = l.user_key and k.source = l.source
         and x.app_id = ${appId} and x.environment = l.environment and x.source = l.source and x.user_key = k.replacement
      returning 1
    ), transfers as (
      update user_transfers t set customer_user_id = ${pseudonym}
       where t.app_id = ${appId} and t.customer_user_id = ${user}
         and not exists (select from user_transfers x where x.app_id = ${appId} and x.customer_user_id = ${pseudonym}
                                                        and x.role = t.role and x.event_id = t.event_id)
      returning t.event_id
    ), superfluous_transfers as (
      delete from user_transfers t
       where t.app_id = ${appId} and t.customer_user_id = ${user}
         and exists (select from user_transfers x where x.app_id = ${appId} and x.customer_user_id = ${pseudonym}
                                                    and x.role = t.role and x.event_id = t.event_id)
      returning 1
    ), earned as (
      update commissions c set customer_user_id = ${pseudonym}
       where c.payment_id = any(array(select held.id from held)) and c.customer_user_id = ${user}
      returning 1
    ), reported as (
      update events e set customer_user_id = ${pseudonym}
       where e.id = any(array(select held.event_id::text from held union select transfers.event_id from transfers))
         and e.customer_user_id = ${user}
      returning 1
    ), names as (
      update reprocess_names n set name = r."to"
        from reprocess_runs run, jsonb_to_recordset(${sql.json(names)}) r ("from" text, "to" text)
       where run.app_id = ${appId} and n.reprocess_run_id = run.id and n.name = r."from"
      returning 1
    )
    update erasures s set counts = ${addedCounts(sql, [
      ['bindings', sql.fragment`bound`],
      ['commissions', sql.fragment`earned`],
      ['events', sql.fragment`reported`],
      ['payments', sql.fragment`(select from payers union all select from superfluous_payers) x`],
      ['transfers', sql.fragment`(select from transfers union all select from superfluous_transfers) x`],
      [
        'providerKeys',
        sql.fragment`(select from payment_keys union all select from superfluous_payment_keys
                      union all select from links union all select from superfluous_links) x`,
      ],
      ['devices', sql.fragment`(select from installs union all select from touches) x`],
      ['clicks', sql.fragment`cleared`],
      ['identities', sql.fragment`seen`],
      ['testReports', sql.fragment`(select from seen_in_test union all select from test_installs) x`],
      ['reprocessNames', sql.fragment`names`],
    ])}
     where s.id = ${id}`;
}

/** Returns the counts of the erasure `s` with the numbers of rows of `added`. */
function addedCounts(
  sql: Sql,
  added: readonly (readonly [ErasedKind, ReturnType<Sql['fragment']>])[],
): ReturnType<Sql['fragment']> {
  const numbers = added.reduce(
    (before, [kind, rows]) =>
      sql.fragment`${before} || jsonb_build_object(${kind}::text, coalesce((s.counts->>${kind}::text)::bigint, 0) + (select count(*) from ${rows}))`,
    sql.fragment`s.counts`,
  );
  return sql.fragment`(${numbers})`;
}

/** A delivery that may name the person. */
export interface SearchedDelivery {
  readonly deliveryId: DeliveryId;
  /** In base64. Null when it need not be read, was removed, or is encrypted. */
  readonly body: string | null;
  /** Whether the event of the delivery belongs to the person, or only its body may name the person. */
  readonly isCertain: boolean;
  readonly isDone: boolean;
}

export interface SearchedPage {
  readonly deliveries: readonly SearchedDelivery[];
  /** The last delivery of the page. Null at the end. */
  readonly lastAt: number | null;
  readonly lastId: DeliveryId | null;
}

/**
 * Returns the deliveries of the next page that may name the person: those with an event or a payment of the person, and those
 * whose body contains one of `parts`. A page is in the order of receipt.
 */
export async function searchDeliveries(
  { sql }: ErasureDeps,
  { id, appId, pseudonym, subject, requestedAt, scannedAt, scannedId, settlesAt }: OpenErasure,
  {
    parts,
    limit,
    overlapMs,
  }: { readonly parts: readonly string[]; readonly limit: number; readonly overlapMs: number },
): Promise<SearchedPage> {
  const users = [subject.customerUserId, pseudonym];
  const { refs } = await findIdentifiers(sql, appId, users);
  const from = scannedAt ?? (settlesAt === null ? 0 : requestedAt - overlapMs);
  return await sql.within(LONG_STATEMENT_MS).one<SearchedPage>`
    with page as materialized (
      select d.id, d.received_at, d.completed_at is not null as is_done
        from deliveries d
       where d.app_id = ${appId} and d.signature_valid
         and (d.received_at, d.id::text) > (
               coalesce((select s.scanned_at from erasures s where s.id = ${id}), ${instant(from)}::timestamptz), ${scannedId ?? ''}::text)
       order by d.received_at, d.id limit ${limit}
    ), found as (
      select p.id, p.is_done, case when b.encryption_key_id is null then b.body end as body,
             coalesce(e.customer_user_id = any(${users}::text[]) or e.payment_ref = any(${[...refs]}::text[]), false) as is_certain
        from page p
        left join lateral (select * from events x where x.delivery_id = p.id offset 0) e on true
        left join lateral (select * from delivery_bodies x where x.delivery_id = p.id offset 0) b on true
    )
    select coalesce((
             select jsonb_agg(jsonb_build_object('deliveryId', id, 'isDone', is_done, 'isCertain', is_certain,
                                                 'body', case when not is_certain then encode(body, 'base64') end))
               from found
              where is_certain
                 or exists (select from unnest(${[...parts]}::text[]) n where position(convert_to(n, 'UTF8') in body) > 0)), '[]') as deliveries,
           (select epoch_ms(received_at) from page order by received_at desc, id desc limit 1) as last_at,
           (select id from page order by received_at desc, id desc limit 1) as last_id`;
}

/**
 * Removes the bodies of the person's deliveries that have an outcome, replaces the user id in their events, notes those that
 * have none, and moves the search on, by one statement.
 */
export async function eraseDeliveries(
  { sql }: ErasureDeps,
  { id, subject, pseudonym }: OpenErasure,
  {
    done,
    waiting,
    histories,
    position,
  }: {
    readonly done: readonly DeliveryId[];
    readonly waiting: readonly DeliveryId[];
    readonly histories: number;
    /** The last delivery of the page. Null to leave the position as it is. */
    readonly position: { readonly at: number; readonly id: DeliveryId } | null;
  },
): Promise<void> {
  await sql.within(LONG_STATEMENT_MS)`
    with removed as (
      delete from delivery_bodies where delivery_id = any(${[...done]}::text[]) returning 1
    ), reported as (
      update events set customer_user_id = ${pseudonym}
       where delivery_id = any(${[...done, ...waiting]}::text[]) and customer_user_id = ${subject.customerUserId}
      returning 1
    )
    update erasures s
       set counts = ${addedCounts(sql, [
         ['bodies', sql.fragment`removed`],
         ['events', sql.fragment`reported`],
         ['histories', sql.fragment`generate_series(1, ${histories}::int)`],
       ])},
           waiting = array(select w from unnest(s.waiting || ${[...waiting]}::text[]) w
                            where w <> all(${[...done]}::text[]) group by w order by w),
           scanned_at = ${position === null ? sql.fragment`scanned_at` : sql.fragment`coalesce((select d.received_at from deliveries d where d.id = ${position.id}), ${instant(position.at)}::timestamptz)`},
           scanned_id = ${position === null ? sql.fragment`scanned_id` : sql.fragment`${position.id}`}
     where s.id = ${id}`;
}

/** Begins the second search at `settlesAt`, over the deliveries that arrived since the request. */
export async function settleErasure(sql: Sql, id: ErasureId, settlesAt: number): Promise<void> {
  await sql`
    update erasures set settles_at = ${instant(settlesAt)}, scanned_at = null, scanned_id = null
     where id = ${id} and finished_at is null`;
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

/** Completes an erasure: the identifiers are removed from its row. */
export async function finishErasure(sql: Sql, id: ErasureId): Promise<void> {
  await sql`
    update erasures set subject = null, subject_key_id = null, finished_at = now(), waiting = '{}'
     where id = ${id} and finished_at is null`;
}
