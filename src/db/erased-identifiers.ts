import { createHmac, randomBytes } from 'node:crypto';
import type { SecretBox } from '../config/secret-box.ts';
import type { NormalizedEvent } from '../domain/events.ts';
import { identifiersOf, referencesOf, tiedKeys } from '../domain/erasure.ts';
import { CUSTOMER_KEY } from '../domain/payment-snapshot.ts';
import { isPlaceholder } from '../domain/user-ids.ts';
import type { Identifiers, SubjectKey } from '../domain/erasure.ts';
import type { AppId } from '../domain/ids.ts';
import type { EventFacts } from './event-details.ts';
import { isLostKey } from './reencryption.ts';
import type { Fragment, Sql, Statements } from './sql.ts';

const KEY_BYTES = 32;
const KEY_CONTEXT = 'erasure-key';
const PSEUDONYM_BYTES = 16;

/** The key of each database that this process works with. It never changes. */
const hashKeys = new WeakMap<Sql, Buffer>();

const randomText = () => randomBytes(PSEUDONYM_BYTES).toString('base64url');

/** Returns a new random text that replaces a user id. It cannot be computed from the id. */
export const newPseudonym = (): string => `erased:${randomText()}`;

const CUSTOMER = new RegExp(CUSTOMER_KEY);

/**
 * Returns a new random text that replaces a key. It says whether the key is of a customer, who may be a company: its payments go on to
 * belong to the users of their subscriptions.
 */
export function newKeyPseudonym(userKey: string): string {
  return CUSTOMER.test(userKey) ? `erased:customer:${randomText()}` : newPseudonym();
}

/**
 * Returns a function that hashes identifiers of an app with the key of this installation, which is stored encrypted: who has
 * the database alone cannot test guesses. Throws `SecretUnreadable` when SECRETS_KEY lacks the key.
 */
export async function identifierHasher(
  sql: Sql,
  secretBox: SecretBox,
): Promise<(appId: AppId, identifier: string) => Buffer> {
  const key = hashKeys.get(sql) ?? (await readKey(sql, secretBox));
  hashKeys.set(sql, key);
  return (appId, identifier) => createHmac('sha256', key).update(`${appId}\n${identifier}`).digest();
}

/**
 * Creates the key of this installation unless it is stored, and encrypts it again when another key of SECRETS_KEY has become
 * the first, so that the former one can be removed. Only a starting service does that: a command with another SECRETS_KEY
 * would leave a key that the service cannot read. Where the operator accepts that its key is lost and nobody was ever erased, a new one
 * replaces it: nothing was hashed with it. Throws `SecretUnreadable` when SECRETS_KEY lacks the key.
 */
export async function prepareErasureKey(sql: Sql, secretBox: SecretBox): Promise<void> {
  if (secretBox.acceptsLostKeys) await replaceUnusedKey(sql, secretBox);
  await identifierHasher(sql, secretBox);
  const key = hashKeys.get(sql)?.toString('base64');
  if (key === undefined) return;
  const { ciphertext, encryptionKeyId } = secretBox.encrypt(key, KEY_CONTEXT);
  await sql`
    update erasure_key set ciphertext = ${ciphertext}, encryption_key_id = ${encryptionKeyId}
     where encryption_key_id <> ${encryptionKeyId} and encryption_key_id = any(${[...secretBox.keyIds]}::text[])`;
}

/** Replaces a key that is lost, if no person was ever erased. */
async function replaceUnusedKey(sql: Sql, secretBox: SecretBox): Promise<void> {
  const { ciphertext, encryptionKeyId } = sealNewKey(secretBox);
  await sql`
    update erasure_key set ciphertext = ${ciphertext}, encryption_key_id = ${encryptionKeyId}
     where ${isLostKey(sql, secretBox, sql.fragment`encryption_key_id`)} and not exists (select from erasures)`;
}

const sealNewKey = (secretBox: SecretBox) =>
  secretBox.encrypt(randomBytes(KEY_BYTES).toString('base64'), KEY_CONTEXT);

interface StoredKey {
  readonly ciphertext: Uint8Array;
  readonly encryptionKeyId: string;
}

async function findKey(sql: Sql): Promise<StoredKey | undefined> {
  return await sql.maybe<StoredKey>`select ciphertext, encryption_key_id from erasure_key`;
}

/** Whether a service has stored the key of this installation. Nobody is erased before. */
export async function hasErasureKey(sql: Sql): Promise<boolean> {
  return (await findKey(sql)) !== undefined;
}

/** Whether a person of an app was erased. */
export async function hasErasedIdentifiers(sql: Sql, appId: AppId): Promise<boolean> {
  const { hasAny } = await sql.one<{ hasAny: boolean }>`
    select exists (select from erased_identifiers where app_id = ${appId}) as has_any`;
  return hasAny;
}

/** Returns the stored key. Of several processes that generate one, the first to store it decides. */
async function readKey(sql: Sql, secretBox: SecretBox): Promise<Buffer> {
  let row = await findKey(sql);
  if (row === undefined) {
    const made = sealNewKey(secretBox);
    await sql`
      insert into erasure_key (ciphertext, encryption_key_id) values (${made.ciphertext}, ${made.encryptionKeyId})
      on conflict do nothing`;
    row = await findKey(sql);
  }
  if (row === undefined) throw new Error('the erasure key was not stored');
  return Buffer.from(
    secretBox.decrypt(Buffer.from(row.ciphertext), row.encryptionKeyId, KEY_CONTEXT),
    'base64',
  );
}

/** What an erased identifier is. A reference of a payment is kept, so it has no pseudonym. */
type IdentifierKind = 'user' | 'key' | 'ref';
/** Every kind: what a body names may be any of them. */
export const ANY_KIND: readonly IdentifierKind[] = ['user', 'key', 'ref'];

/**
 * A condition of SQL: whether one of the hashes is of an erased identifier of the app, of one of `kinds`. A user id that was
 * not erased may have the text of an erased key.
 */
export function isErased(
  sql: Statements,
  appId: AppId,
  hashes: readonly Buffer[],
  kinds: readonly IdentifierKind[],
): Fragment {
  return sql.fragment`
    exists (select from erased_identifiers x
             where x.app_id = ${appId} and x.kind = any(${[...kinds]}::text[]) and x.hash = any(array(
               select decode(h, 'hex') from unnest(${hashes.map((hash) => hash.toString('hex'))}::text[]) h)))`;
}

/** The pseudonyms of erased identifiers. */
export interface Pseudonyms {
  readonly users: ReadonlyMap<string, string>;
  readonly keys: ReadonlyMap<string, string>;
}

/** Returns the pseudonyms of the erased ones among identifiers of an app. */
export async function findPseudonyms(
  sql: Sql,
  secretBox: SecretBox,
  appId: AppId,
  { users, keys }: Identifiers,
): Promise<Pseudonyms> {
  if (users.length + keys.length === 0) return { users: new Map(), keys: new Map() };
  const hash = await identifierHasher(sql, secretBox);
  const byHash = new Map(
    [...users, ...keys].map((identifier) => [hash(appId, identifier).toString('hex'), identifier]),
  );
  const rows = await sql<{ hash: string; kind: string; pseudonym: string }>`
    select encode(hash, 'hex') as hash, kind, pseudonym from erased_identifiers
     where app_id = ${appId} and pseudonym is not null
       and hash = any(array(select decode(h, 'hex') from unnest(${[...byHash.keys()]}::text[]) h))`;
  const ofKind = (kind: IdentifierKind) =>
    new Map(
      rows.filter((row) => row.kind === kind).map((row) => [byHash.get(row.hash) ?? '', row.pseudonym]),
    );
  return { users: ofKind('user'), keys: ofKind('key') };
}

/**
 * Returns the event with the identifiers of erased persons replaced by their pseudonyms. A key of a provider that such an event
 * states for the first time belongs to the person, too, unless it is shared: it is marked as erased, and the erasure searches
 * for what was stored under it before.
 */
export async function pseudonymize(
  sql: Sql,
  secretBox: SecretBox,
  { appId, source, event }: Pick<EventFacts, 'appId' | 'source' | 'event'>,
): Promise<NormalizedEvent> {
  const identifiers = identifiersOf(event);
  const known = await findPseudonyms(sql, secretBox, appId, identifiers);
  const [pseudonym] = [
    ...[...known.users].filter(([userId]) => !isPlaceholder(userId)).map(([, itsPseudonym]) => itsPseudonym),
    ...known.keys.values(),
  ];
  const unknown = tiedKeys(
    event,
    (userId) => known.users.has(userId),
    (key) => known.keys.has(key),
  ).filter((key) => !known.keys.has(key));
  if (pseudonym === undefined || unknown.length === 0) return withPseudonyms(event, known);
  const ofPerson = sql.fragment`
    select erasure_id from erased_identifiers where app_id = ${appId} and pseudonym = ${pseudonym}`;
  const keys = unknown.map((userKey) => ({ source, userKey }));
  await addErasedKeys(sql, secretBox, appId, ofPerson, keys);
  return withPseudonyms(event, await findPseudonyms(sql, secretBox, appId, identifiers));
}

/**
 * The most keys that an erasure follows. An id with more subscriptions and customers is not one person's, and each key that is
 * found begins the search again.
 */
export const MOST_KEYS = 1_000;
/** A key of more payments is not one person's, unless it is linked to the person. */
export const MOST_PAYMENTS = 10_000;

/** A condition of SQL: whether a user is neither one of `users` nor erased. */
function isOther(sql: Sql, appId: AppId, users: readonly string[], user: Fragment): Fragment {
  return sql.fragment`(${user} <> all(${[...users]}::text[]) and not is_pseudonym(${appId}, ${user}))`;
}

/**
 * A condition of SQL: whether a payment names a user who is neither one of `users` nor erased, or a key leads to such a user.
 * "offset 0" keeps the look-up of each payment: a hash would be made of the rows of all payments.
 */
export function isPaymentOfOthers(
  sql: Sql,
  appId: AppId,
  users: readonly string[],
  paymentId: Fragment,
): Fragment {
  return sql.fragment`
    (exists (select from (select customer_user_id from payment_users where payment_id = ${paymentId} offset 0) payer
              where ${isOther(sql, appId, users, sql.fragment`payer.customer_user_id`)})
     or exists (select from (select * from payment_user_keys where payment_id = ${paymentId} offset 0) pk
                 cross join lateral (
                   select ul.customer_user_id from user_links ul
                    where ul.app_id = pk.app_id and ul.environment = pk.environment and ul.source = pk.source
                      and ul.user_key = pk.user_key offset 0) owner
                 where ${isOther(sql, appId, users, sql.fragment`owner.customer_user_id`)}))`;
}

/**
 * A condition of SQL: whether the key `k (source, user_key)` is shared. It is linked to a user who is neither one of `users` nor
 * erased, one of its payments belongs to such a user, or it has more payments than a person.
 */
export function isShared(sql: Sql, appId: AppId, users: readonly string[]): Fragment {
  const payments = sql.fragment`
    select payment_id from payment_user_keys kp
     where kp.app_id = ${appId} and kp.user_key = k.user_key and kp.source = k.source`;
  return sql.fragment`
    (exists (select from (select customer_user_id from user_links
                           where app_id = ${appId} and environment = any('{production,sandbox}'::text[]) and source = k.source
                             and user_key = k.user_key offset 0) owner
              where ${isOther(sql, appId, users, sql.fragment`owner.customer_user_id`)})
     or exists (select from (${payments} limit ${MOST_PAYMENTS}) own
                 where ${isPaymentOfOthers(sql, appId, users, sql.fragment`own.payment_id`)})
     or exists (${payments} offset ${MOST_PAYMENTS}))`;
}

/**
 * Marks keys of providers as erased with a person, unless they are shared or too many, and has the search of that erasure run
 * again: rows and bodies that were stored before may have the keys. One statement does all, so that no mark is without its
 * search. `erasures` selects the id of the erasure.
 */
export async function addErasedKeys(
  sql: Sql,
  secretBox: SecretBox,
  appId: AppId,
  erasures: Fragment,
  keys: readonly SubjectKey[],
): Promise<void> {
  if (keys.length === 0) return;
  const hash = await identifierHasher(sql, secretBox);
  const rows = keys.map(({ source, userKey }) => ({
    ...sealSubject(secretBox, appId, userKey),
    source,
    userKey,
    hash: hash(appId, userKey).toString('hex'),
    pseudonym: newKeyPseudonym(userKey),
  }));
  await sql`
    with k as materialized (
      select e.id as erasure_id, r.source, r."userKey" as user_key, decode(r.hash, 'hex') as hash, r.pseudonym,
             decode(r.ciphertext, 'hex') as ciphertext, r."encryptionKeyId" as encryption_key_id
        from (select id from erasures where id in (${erasures}) and followed_keys < ${MOST_KEYS}) e,
             jsonb_to_recordset(${sql.json(rows)})
               r (source text, "userKey" text, hash text, pseudonym text, ciphertext text, "encryptionKeyId" text)
    ), marked as (
      insert into erased_identifiers (app_id, hash, erasure_id, kind, pseudonym)
      select ${appId}, k.hash, k.erasure_id, 'key', k.pseudonym from k where not ${isShared(sql, appId, [])}
      on conflict do nothing
      returning erasure_id, hash
    ), added as (
      insert into erasure_subjects (erasure_id, source, hash, ciphertext, encryption_key_id)
      select erasure_id, k.source, hash, k.ciphertext, k.encryption_key_id from k join marked using (erasure_id, hash)
      on conflict do nothing
    )
    update erasures s
       set ${searchAgain(sql, sql.fragment`s.finished_at is not null`)},
           followed_keys = s.followed_keys + (select count(*)::int from marked m where m.erasure_id = s.id)
     where s.id in (select erasure_id from marked)`;
}

/**
 * Assignments that have the search of the erasure `s` run again: now, from the first delivery, if `restarts`, otherwise after the
 * search in progress. `restarts` is a condition on the row alone: another statement may have changed it meanwhile.
 */
export function searchAgain(sql: Sql, restarts: Fragment): Fragment {
  return sql.fragment`
    finished_at = null,
    reopened_at = case when ${restarts} then now() else s.reopened_at end,
    relayed_at = case when ${restarts} then null else s.relayed_at end,
    scanned_at = case when ${restarts} then null else s.scanned_at end,
    scanned_id = case when ${restarts} then null else s.scanned_id end,
    settles_at = case when ${restarts} then null else s.settles_at end,
    revision = s.revision + case when ${restarts} then 1 else 0 end,
    search_again = not ${restarts}`;
}

const subjectContext = (appId: AppId) => `erasure:${appId}`;

/** Encrypts an identifier that an erasure searches for. The ciphertext is in hexadecimal. */
export function sealSubject(
  secretBox: SecretBox,
  appId: AppId,
  identifier: string,
): { readonly ciphertext: string; readonly encryptionKeyId: string } {
  const { ciphertext, encryptionKeyId } = secretBox.encrypt(identifier, subjectContext(appId));
  return { ciphertext: ciphertext.toString('hex'), encryptionKeyId };
}

/** Decrypts what `sealSubject` encrypted. */
export function openSubject(
  secretBox: SecretBox,
  appId: AppId,
  { ciphertext, encryptionKeyId }: { readonly ciphertext: string; readonly encryptionKeyId: string },
): string {
  return secretBox.decrypt(Buffer.from(ciphertext, 'hex'), encryptionKeyId, subjectContext(appId));
}

/** Returns the event with these identifiers replaced by their pseudonyms. */
function withPseudonyms(event: NormalizedEvent, { users, keys }: Pseudonyms): NormalizedEvent {
  const userOf = (userId: string) => users.get(userId) ?? userId;
  const keyOf = (key: string) => keys.get(key) ?? key;
  const all = (userIds: readonly string[]) => [...new Set(userIds.map(userOf))];
  return {
    ...event,
    userIds: all(event.userIds),
    userKeys: [...new Set(event.userKeys.map(keyOf))],
    anonymousUserIds: [...new Set(event.anonymousUserIds.map(keyOf))],
    subscriptionCodes: event.subscriptionCodes.map((code) => ({ ...code, userKey: keyOf(code.userKey) })),
    userLinks: event.userLinks.map(({ key, customerUserId }) => ({
      key: keyOf(key),
      customerUserId: userOf(customerUserId),
    })),
    transfer: event.transfer === null ? null : { from: all(event.transfer.from), to: all(event.transfer.to) },
  };
}

/**
 * Marks the reference of a pseudonymized event's payment as that of an erased person, so that the bodies of its refunds are not
 * stored in clear.
 */
export async function addErasedReferences(
  sql: Sql,
  secretBox: SecretBox,
  { appId, event }: { readonly appId: AppId; readonly event: NormalizedEvent },
): Promise<void> {
  const hash = await identifierHasher(sql, secretBox);
  const refs = referencesOf(event);
  const { users, keys } = identifiersOf(event);
  // A user who has a key of an erased person is not erased.
  const pseudonyms = users.length > 0 ? users : keys;
  await sql`
    insert into erased_identifiers (app_id, hash, erasure_id, kind)
    select ${appId}, decode(r.hash, 'hex'), e.erasure_id, 'ref'
      from (select erasure_id from erased_identifiers
             where app_id = ${appId} and pseudonym = any(${[...pseudonyms]}::text[]) limit 1) e,
           unnest(${refs.map((ref) => hash(appId, ref).toString('hex'))}::text[]) r (hash)
    on conflict do nothing`;
}
