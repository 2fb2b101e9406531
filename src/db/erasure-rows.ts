import { createHash } from 'node:crypto';
import { isPlaceholder } from '../domain/user-ids.ts';
import type { SubjectKey } from '../domain/erasure.ts';
import {
  findPseudonyms,
  identifierHasher,
  isPaymentOfOthers,
  isShared,
  MOST_KEYS,
  MOST_PAYMENTS,
  newKeyPseudonym,
} from './erased-identifiers.ts';
import { replaceInRows } from './erasure-replacements.ts';
import { isInvoice } from './invoice-users.ts';
import { instant } from './sql.ts';
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
    select source, user_key from user_links
     where app_id = ${appId} and customer_user_id = any(${users}::text[]) and not ${isInvoice(sql)}
    union
    select source, user_key from subscription_codes where app_id = ${appId} and customer_user_id = any(${users}::text[])
     limit ${MOST_KEYS}`;
  const found = new Map([...linked, ...known].map((key) => [`${key.source} ${key.userKey}`, key]));
  let added: readonly SubjectKey[] = [...found.values()];
  for (let isFirst = true; isFirst || added.length > 0; isFirst = false) {
    added = await sql.forManyRows()<SubjectKey>`
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
  return await sql.forManyRows().one<References>`
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
 * Replaces or removes the user's identifiers in all rows that an index leads to, in one transaction after the identifiers were
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
    ...[...texts].map((key) => ({ kind: 'key', identifier: key, pseudonym: newKeyPseudonym(key) })),
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
  await replaceInRows(sql, { id, appId, user, pseudonym, keys: replaced });
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
 * Replaces the person's names in the plans of reprocess runs, for deliveries of a time range: epoch ms, both ends included; no end if `to` is null.
 * Running it again changes nothing.
 */
export async function eraseReprocessNames(
  { sql, secretBox }: ErasureDeps,
  { id, appId, pseudonym, subject }: Pick<OpenErasure, 'id' | 'appId' | 'pseudonym' | 'subject'>,
  { from, to }: { readonly from: number; readonly to: number | null },
): Promise<void> {
  const { customerUserId: user, keys } = subject;
  const known = await findPseudonyms(sql, secretBox, appId, {
    users: [],
    keys: keys.map(({ userKey }) => userKey),
  });
  const end =
    to === null
      ? sql.fragment`'infinity'::timestamptz`
      : sql.fragment`${instant(to)}::timestamptz + interval '1 millisecond'`;
  const names = [
    ...(user === null ? [] : [{ from: `user ${user}`, to: `user ${pseudonym}` }]),
    ...withReplacements(keys, known.keys).map(({ source, userKey, replacement }) => ({
      from: `key ${source} ${userKey}`,
      to: `key ${source} ${replacement}`,
    })),
  ].map((name) => ({ from: reprocessName(name.from), to: reprocessName(name.to) }));
  await sql.forManyRows()`
    with planned as materialized (
      select c.reprocess_run_id, c.delivery_id
        from reprocess_runs run
       cross join lateral (
         select * from reprocess_changes c
          where c.reprocess_run_id = run.id
            and c.received_at >= ${instant(from)} and c.received_at < ${end}
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
