import { createHash } from 'node:crypto';
import { isPlaceholder } from '../domain/user-ids.ts';
import type { SubjectKey } from '../domain/erasure.ts';
import type { AppId, ErasureId } from '../domain/ids.ts';
import {
  findPseudonyms,
  identifierHasher,
  isPaymentOfOthers,
  isShared,
  MOST_KEYS,
  MOST_PAYMENTS,
  newPseudonym,
} from './erased-identifiers.ts';
import { instant, LONG_STATEMENT_MS } from './sql.ts';
import type { Sql } from './sql.ts';
import { addSubjectKeys, usersOf, addedCounts } from './erasure-state.ts';
import type { ErasureDeps, OpenErasure } from './erasure-state.ts';

type Person = Pick<OpenErasure, 'appId' | 'pseudonym' | 'subject'>;

/** Returns keys with their pseudonyms, which stand for them in rows. */
async function withPseudonyms(
  { sql, secretBox }: ErasureDeps,
  { appId, subject: { keys } }: Pick<Person, 'appId' | 'subject'>,
): Promise<SubjectKey[]> {
  const known = await findPseudonyms(sql, secretBox, appId, {
    users: [],
    keys: keys.map(({ userKey }) => userKey),
  });
  const replaced = withReplacements(keys, known.keys);
  return [...keys, ...replaced.map(({ source, replacement }) => ({ source, userKey: replacement }))];
}

/**
 * Returns the person's keys at providers, `known` ones included: those that are linked to the person, those of the person's
 * payments, and those of payments that have one of these keys, to the end. Shared keys are left out: those that lead to another
 * user who is not erased, and those with more payments than a person. A placeholder has no keys.
 */
async function findKeys(sql: Sql, person: Person, known: readonly SubjectKey[]): Promise<SubjectKey[]> {
  const { appId, pseudonym, subject } = person;
  const { customerUserId: user } = subject;
  if (user !== null && isPlaceholder(user)) return [];
  const users = usersOf(user, pseudonym);
  const linked = await sql<SubjectKey>`
    select distinct source, user_key from user_links where app_id = ${appId} and customer_user_id = any(${users}::text[])
     limit ${MOST_KEYS}`;
  const found = new Map([...linked, ...known].map((key) => [`${key.source} ${key.userKey}`, key]));
  let added: readonly SubjectKey[] = [...found.values()];
  for (let isFirst = true; isFirst || added.length > 0; isFirst = false) {
    added = await sql.within(LONG_STATEMENT_MS)<SubjectKey>`
      with found as materialized (
        select source, "userKey" as user_key from jsonb_to_recordset(${sql.json([...found.values()])}) f (source text, "userKey" text)
      ), payments_of_keys as materialized (
        select distinct x.payment_id
          from jsonb_to_recordset(${sql.json(added)}) f (source text, "userKey" text)
         cross join lateral (
           select payment_id from payment_user_keys y
            where y.app_id = ${appId} and y.user_key = f."userKey" and y.source = f.source limit ${MOST_PAYMENTS}) x
        union
        select payment_id from payment_users
         where ${isFirst}::boolean and app_id = ${appId} and customer_user_id = any(${users}::text[])
      ), k as materialized (
        -- "offset 0" keeps the look-up by payment: a join may read the keys of all payments.
        select y.source, y.user_key from payments_of_keys o
         cross join lateral (select * from payment_user_keys x where x.payment_id = o.payment_id offset 0) y
        union
        select source, user_key from payment_user_keys
         where ${isFirst}::boolean and app_id = ${appId} and user_key = ${user}
      )
      select k.source, k.user_key from k
       where not exists (select from found f where f.source = k.source and f.user_key = k.user_key)
         and not ${isShared(sql, appId, users)}
       limit ${Math.max(0, MOST_KEYS - found.size)}`;
    for (const key of added) found.set(`${key.source} ${key.userKey}`, key);
  }
  return [...found.values()];
}

interface References {
  /** The references of the person's payments. */
  readonly refs: readonly string[];
  /** Whether the user id is also a key that another user has. */
  readonly isKeyOfOthers: boolean;
}

/** Returns the references of the payments that name the person or have one of `keys`, and name no other user who is not erased. */
async function findReferences(
  sql: Sql,
  { appId, pseudonym, subject }: Person,
  keys: readonly SubjectKey[],
): Promise<References> {
  const user = subject.customerUserId;
  const users = usersOf(user, pseudonym);
  return await sql.within(LONG_STATEMENT_MS).one<References>`
    with named as materialized (
      select payment_id from payment_users where app_id = ${appId} and customer_user_id = any(${users}::text[])
      union
      select o.payment_id
        from jsonb_to_recordset(${sql.json(keys)}) f (source text, "userKey" text)
       cross join lateral (
         select payment_id from payment_user_keys x
          where x.app_id = ${appId} and x.user_key = f."userKey" and x.source = f.source offset 0) o
    ), own_payments as materialized (
      select payment_id from named n where not ${isPaymentOfOthers(sql, appId, users, sql.fragment`n.payment_id`)}
    ), k as materialized (
      select source, user_key from payment_user_keys where app_id = ${appId} and user_key = ${user}
      union
      select source, user_key from user_links
       where app_id = ${appId} and user_key = ${user}
    )
    select array(select distinct n.ref from own_payments o
                   join payments p on p.id = o.payment_id
                  cross join lateral same_payment_refs(p.app_id, p.environment, p.store, array[p.ref]) n) as refs,
           exists (select from k where ${isShared(sql, appId, users)}) as is_key_of_others`;
}

/**
 * Replaces or removes the user's identifiers in all rows that an index leads to, by one statement after the identifiers were
 * marked as erased. The rows that no index leads to follow with the search of deliveries. Running it again changes only what
 * has been added since.
 */
export async function eraseRows(deps: ErasureDeps, erasure: OpenErasure): Promise<SearchedIdentifiers> {
  const { sql, secretBox } = deps;
  const { id, appId, pseudonym, subject } = erasure;
  const { customerUserId: user } = subject;
  const inRows = await findKeys(sql, erasure, await withPseudonyms(deps, erasure));
  const { refs, isKeyOfOthers } = await findReferences(sql, erasure, inRows);
  const hash = await identifierHasher(sql, secretBox);
  const keys = inRows.filter(({ userKey }) => !userKey.startsWith('erased:'));
  // A later fact may have the text of the user id as a key.
  const isKey = user !== null && !isKeyOfOthers && !isPlaceholder(user);
  const texts = new Set([...keys.map(({ userKey }) => userKey), ...(isKey ? [user] : [])]);
  const marks = [
    ...[...texts].map((userKey) => ({ kind: 'key', identifier: userKey, pseudonym: newPseudonym() })),
    ...refs.map((ref) => ({ kind: 'ref', identifier: ref, pseudonym: null })),
  ].map(({ identifier, ...mark }) => ({ ...mark, hash: hash(appId, identifier).toString('hex') }));
  await addSubjectKeys(deps, erasure, keys);
  await sql`
    insert into erased_identifiers (app_id, hash, erasure_id, kind, pseudonym)
    select ${appId}, decode(m.hash, 'hex'), ${id}, m.kind, m.pseudonym
      from jsonb_to_recordset(${sql.json(marks)}) m (kind text, hash text, pseudonym text)
    on conflict do nothing`;
  const known = await findPseudonyms(sql, secretBox, appId, { users: [], keys: [...texts] });
  const replaced = withReplacements(keys, known.keys);
  await retryAfterDeadlock(async () => {
    await replaceInRows(sql, { id, appId, user, pseudonym, keys: replaced });
  });
  return { keys, refs };
}

/** What the search of an erasure looks for beside the user id. */
export interface SearchedIdentifiers {
  readonly keys: readonly SubjectKey[];
  /** The references of the person's payments. */
  readonly refs: readonly string[];
}

/** Returns what `eraseRows` returned when the search began. */
export async function findSearched(deps: ErasureDeps, erasure: OpenErasure): Promise<SearchedIdentifiers> {
  const { keys } = erasure.subject;
  const { refs } = await findReferences(deps.sql, erasure, await withPseudonyms(deps, erasure));
  return { keys, refs };
}

/** Returns the keys that have a pseudonym, with it. */
function withReplacements(
  keys: readonly SubjectKey[],
  pseudonyms: ReadonlyMap<string, string>,
): (SubjectKey & { readonly replacement: string })[] {
  return keys.flatMap(({ source, userKey }) => {
    const replacement = pseudonyms.get(userKey);
    return replacement === undefined ? [] : [{ source, userKey, replacement }];
  });
}

/** The text that a reprocess run stores for a name (activities/reprocess-delivery.ts). */
const reprocessName = (name: string) => createHash('sha256').update(name).digest('base64url');

/**
 * Replaces the person's names in the plans of reprocess runs, for deliveries of a time range: epoch ms, both ends included.
 * Running it again changes nothing.
 */
export async function eraseReprocessNames(
  { sql, secretBox }: ErasureDeps,
  { id, appId, pseudonym, subject }: Pick<OpenErasure, 'id' | 'appId' | 'pseudonym' | 'subject'>,
  { from, to }: { readonly from: number; readonly to: number },
): Promise<void> {
  const { customerUserId: user, keys } = subject;
  const known = await findPseudonyms(sql, secretBox, appId, {
    users: [],
    keys: keys.map(({ userKey }) => userKey),
  });
  const names = [
    ...(user === null ? [] : [{ from: `user ${user}`, to: `user ${pseudonym}` }]),
    ...withReplacements(keys, known.keys).map(({ source, userKey, replacement }) => ({
      from: `key ${source} ${userKey}`,
      to: `key ${source} ${replacement}`,
    })),
  ].map((name) => ({ from: reprocessName(name.from), to: reprocessName(name.to) }));
  await sql.within(LONG_STATEMENT_MS)`
    with planned as materialized (
      select c.reprocess_run_id, c.delivery_id
        from reprocess_runs run
       cross join lateral (
         select * from reprocess_changes c
          where c.reprocess_run_id = run.id
            and c.received_at >= ${instant(from)} and c.received_at < ${instant(to)}::timestamptz + interval '1 millisecond'
         offset 0) c
       where run.app_id = ${appId}
    ), names as (
      update reprocess_names n set name = r."to"
        from planned p, jsonb_to_recordset(${sql.json(names)}) r ("from" text, "to" text)
       where n.reprocess_run_id = p.reprocess_run_id and n.delivery_id = p.delivery_id and n.name = r."from"
      returning 1
    )
    update erasures s set counts = ${addedCounts(sql, [['reprocessNames', sql.fragment`names`]])}
     where s.id = ${id} and exists (select from names)`;
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
  /** Null to replace keys only. */
  readonly user: string | null;
  readonly pseudonym: string;
  readonly keys: readonly (SubjectKey & { readonly replacement: string })[];
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
async function replaceInRows(sql: Sql, { id, appId, user, pseudonym, keys }: Replacements): Promise<void> {
  const users = usersOf(user, pseudonym);
  await sql.within(LONG_STATEMENT_MS)`
    with k as materialized (
      select source, "userKey" as user_key, replacement
        from jsonb_to_recordset(${sql.json(keys)}) k (source text, "userKey" text, replacement text)
    ), held as materialized (
      select p.id, p.event_id from payments p
       where p.id = any(array(
         select payment_id from payment_users where app_id = ${appId} and customer_user_id = any(${users}::text[])
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
    ), own_links as materialized (
      select environment, source, user_key from user_links where app_id = ${appId} and customer_user_id = ${user}
      union
      -- A key of the person may be linked to another erased user.
      select x.environment, x.source, x.user_key
        from k cross join lateral (
          select * from user_links y
           where y.app_id = ${appId} and y.environment = any('{production,sandbox}'::text[]) and y.source = k.source
             and y.user_key = k.user_key offset 0) x
    ), links as (
      update user_links l
         set user_key = coalesce((select k.replacement from k where k.user_key = l.user_key and k.source = l.source), l.user_key),
             customer_user_id = case l.customer_user_id when ${user} then ${pseudonym} else l.customer_user_id end
        from own_links o
       where l.app_id = ${appId} and l.environment = o.environment and l.source = o.source and l.user_key = o.user_key
         and not exists (select from k join user_links x on x.app_id = ${appId} and x.environment = l.environment
                                                        and x.source = l.source and x.user_key = k.replacement
                          where k.user_key = l.user_key and k.source = l.source)
      returning 1
    ), superfluous_links as (
      delete from user_links l using own_links o, k, user_links x
       where l.app_id = ${appId} and l.environment = o.environment and l.source = o.source and l.user_key = o.user_key
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
    ])}
     where s.id = ${id}`;
}
