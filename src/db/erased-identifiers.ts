import { createHmac, randomBytes } from 'node:crypto';
import type { SecretBox } from '../config/secret-box.ts';
import type { NormalizedEvent } from '../domain/events.ts';
import type { AppId } from '../domain/ids.ts';
import type { EventFacts } from './events.ts';
import type { Sql } from './sql.ts';

const KEY_BYTES = 32;
const KEY_CONTEXT = 'erasure-key';
const PSEUDONYM_BYTES = 16;

/** The key of each database that this process works with. It never changes. */
const hashKeys = new WeakMap<Sql, Buffer>();

/** Returns a new random text that replaces an identifier. It cannot be computed from the identifier. */
export function newPseudonym(): string {
  return `erased:${randomBytes(PSEUDONYM_BYTES).toString('base64url')}`;
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
 * would leave a key that the service cannot read. Throws `SecretUnreadable` when SECRETS_KEY lacks the key.
 */
export async function prepareErasureKey(sql: Sql, secretBox: SecretBox): Promise<void> {
  await identifierHasher(sql, secretBox);
  const key = hashKeys.get(sql)?.toString('base64');
  if (key === undefined) return;
  const { ciphertext, encryptionKeyId } = secretBox.encrypt(key, KEY_CONTEXT);
  await sql`
    update erasure_key set ciphertext = ${ciphertext}, encryption_key_id = ${encryptionKeyId}
     where encryption_key_id <> ${encryptionKeyId} and encryption_key_id = any(${[...secretBox.keyIds]}::text[])`;
}

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

/** Returns the stored key. Of several processes that generate one, the first to store it decides. */
async function readKey(sql: Sql, secretBox: SecretBox): Promise<Buffer> {
  let row = await findKey(sql);
  if (row === undefined) {
    const made = secretBox.encrypt(randomBytes(KEY_BYTES).toString('base64'), KEY_CONTEXT);
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
  sql: Sql,
  appId: AppId,
  hashes: readonly Buffer[],
  kinds: readonly IdentifierKind[],
): ReturnType<Sql['fragment']> {
  return sql.fragment`
    exists (select from erased_identifiers x
             where x.app_id = ${appId} and x.kind = any(${[...kinds]}::text[]) and x.hash = any(array(
               select decode(h, 'hex') from unnest(${hashes.map((hash) => hash.toString('hex'))}::text[]) h)))`;
}

/** Identifiers of persons: user ids of the app, and keys of providers. */
export interface Identifiers {
  readonly users: readonly string[];
  readonly keys: readonly string[];
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

/** Returns the identifiers of persons that the facts of an event hold. */
export function identifiersOf(event: NormalizedEvent): Identifiers {
  return {
    users: [
      ...new Set([
        ...event.userIds,
        ...event.userLinks.map(({ customerUserId }) => customerUserId),
        ...(event.transfer === null ? [] : [...event.transfer.from, ...event.transfer.to]),
      ]),
    ],
    keys: [...new Set([...event.userKeys, ...event.userLinks.map(({ key }) => key)])],
  };
}

/**
 * Returns the event with the identifiers of erased persons replaced by their pseudonyms. A key of a provider that such an event
 * states for the first time belongs to the person, too, unless another user owns it: it is marked as erased, and the erasure
 * searches for what was stored under it before.
 */
export async function pseudonymize(
  sql: Sql,
  secretBox: SecretBox,
  { appId, source, event }: Pick<EventFacts, 'appId' | 'source' | 'event'>,
): Promise<NormalizedEvent> {
  const identifiers = identifiersOf(event);
  const known = await findPseudonyms(sql, secretBox, appId, identifiers);
  const [pseudonym] = [...known.users.values(), ...known.keys.values()];
  const isOfOthers = event.userIds.length > 0 && event.userIds.every((userId) => !known.users.has(userId));
  const linkedToOthers = new Set(
    event.userLinks.filter(({ customerUserId }) => !known.users.has(customerUserId)).map(({ key }) => key),
  );
  const unknown = event.userKeys.filter((key) => !known.keys.has(key) && !linkedToOthers.has(key));
  if (pseudonym === undefined || isOfOthers || unknown.length === 0) return withPseudonyms(event, known);
  const keys = await withoutKeysOfOthers(sql, { appId, source, pseudonym }, unknown);
  if (keys.length === 0) return withPseudonyms(event, known);
  await addErasedKeys(sql, secretBox, { appId, source, pseudonym }, keys);
  return withPseudonyms(event, await findPseudonyms(sql, secretBox, appId, identifiers));
}

/**
 * Marks keys of a provider as erased with the person of a pseudonym, and begins the search of that erasure again: rows and bodies
 * that were stored before may have the keys. One statement does both, so that no mark is without its search.
 */
async function addErasedKeys(
  sql: Sql,
  secretBox: SecretBox,
  { appId, source, pseudonym }: { appId: AppId; source: string; pseudonym: string },
  keys: readonly string[],
): Promise<void> {
  const hash = await identifierHasher(sql, secretBox);
  const rows = keys.map((key) => ({
    ...sealSubject(secretBox, appId, key),
    hash: hash(appId, key).toString('hex'),
    pseudonym: newPseudonym(),
  }));
  await sql`
    with rows as materialized (
      select e.erasure_id, decode(r.hash, 'hex') as hash, r.pseudonym, decode(r.ciphertext, 'hex') as ciphertext,
             r."encryptionKeyId" as encryption_key_id
        from (select erasure_id from erased_identifiers where app_id = ${appId} and pseudonym = ${pseudonym}) e,
             jsonb_to_recordset(${sql.json(rows)}) r (hash text, pseudonym text, ciphertext text, "encryptionKeyId" text)
    ), marked as (
      insert into erased_identifiers (app_id, hash, erasure_id, kind, pseudonym)
      select ${appId}, hash, erasure_id, 'key', pseudonym from rows
      on conflict do nothing
      returning erasure_id, hash
    ), added as (
      insert into erasure_subjects (erasure_id, source, hash, ciphertext, encryption_key_id)
      select erasure_id, ${source}, hash, r.ciphertext, r.encryption_key_id from rows r join marked using (erasure_id, hash)
      on conflict do nothing
    )
    update erasures s set ${searchAgain(sql)} where s.id in (select erasure_id from marked)`;
}

/** Assignments that begin the search of an erasure again, from the first delivery. */
export function searchAgain(sql: Sql): ReturnType<Sql['fragment']> {
  return sql.fragment`
    finished_at = null, reopened_at = now(), relayed_at = null, scanned_at = null, scanned_id = null, settles_at = null,
    revision = s.revision + 1`;
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

/** Returns the keys that no other user than the person of a pseudonym owns. */
async function withoutKeysOfOthers(
  sql: Sql,
  { appId, source, pseudonym }: { appId: AppId; source: string; pseudonym: string },
  keys: readonly string[],
): Promise<string[]> {
  const rows = await sql<{ userKey: string }>`
    select l.user_key from user_links l
     where l.app_id = ${appId} and l.source = ${source} and l.user_key = any(${[...keys]}::text[])
       and l.customer_user_id not in (
         select e.pseudonym from erasures e join erased_identifiers x on x.app_id = e.app_id and x.erasure_id = e.id
          where x.app_id = ${appId} and x.pseudonym = ${pseudonym})`;
  const others = new Set(rows.map(({ userKey }) => userKey));
  return keys.filter((key) => !others.has(key));
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
  const refs = [
    event.payment?.ref,
    ...event.paymentAliases.flatMap(({ aliasRef, paymentRef }) => [aliasRef, paymentRef]),
  ].filter((ref) => ref !== undefined);
  const pseudonyms = [...event.userIds, ...event.userLinks.map((link) => link.customerUserId)];
  await sql`
    insert into erased_identifiers (app_id, hash, erasure_id, kind)
    select ${appId}, decode(r.hash, 'hex'), e.erasure_id, 'ref'
      from (select erasure_id from erased_identifiers
             where app_id = ${appId} and pseudonym = any(${[...pseudonyms, ...event.userKeys]}::text[]) limit 1) e,
           unnest(${refs.map((ref) => hash(appId, ref).toString('hex'))}::text[]) r (hash)
    on conflict do nothing`;
}
