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

/**
 * A condition of SQL: whether one of the hashes is of an erased identifier of the app. References of payments are kept and have no
 * pseudonym: they count only for a body that may name a person.
 */
export function isErased(
  sql: Sql,
  appId: AppId,
  hashes: readonly Buffer[],
  { withReferences = false }: { readonly withReferences?: boolean } = {},
): ReturnType<Sql['fragment']> {
  return sql.fragment`
    exists (select from erased_identifiers x
             where x.app_id = ${appId} and (${withReferences} or x.pseudonym is not null) and x.hash = any(array(
               select decode(h, 'hex') from unnest(${hashes.map((hash) => hash.toString('hex'))}::text[]) h)))`;
}

/** Returns the pseudonyms of the erased ones among identifiers of an app. */
export async function findPseudonyms(
  sql: Sql,
  secretBox: SecretBox,
  appId: AppId,
  identifiers: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  if (identifiers.length === 0) return new Map();
  const hash = await identifierHasher(sql, secretBox);
  const byHash = new Map(
    identifiers.map((identifier) => [hash(appId, identifier).toString('hex'), identifier]),
  );
  const rows = await sql<{ hash: string; pseudonym: string }>`
    select encode(hash, 'hex') as hash, pseudonym from erased_identifiers
     where app_id = ${appId} and pseudonym is not null
       and hash = any(array(select decode(h, 'hex') from unnest(${[...byHash.keys()]}::text[]) h))`;
  return new Map(rows.map((row) => [byHash.get(row.hash) ?? '', row.pseudonym]));
}

/** Returns the identifiers of persons that the facts of an event hold. */
export function identifiersOf(event: NormalizedEvent): string[] {
  return [
    ...new Set([
      ...event.userIds,
      ...event.userKeys,
      ...event.userLinks.flatMap(({ key, customerUserId }) => [key, customerUserId]),
      ...(event.transfer === null ? [] : [...event.transfer.from, ...event.transfer.to]),
    ]),
  ];
}

/**
 * Returns the event with the identifiers of erased persons replaced by their pseudonyms. A key of a provider that such an event
 * states for the first time belongs to the person, too, and is marked as erased, unless another user owns it.
 */
export async function pseudonymize(
  sql: Sql,
  secretBox: SecretBox,
  { appId, source, event }: Pick<EventFacts, 'appId' | 'source' | 'event'>,
): Promise<NormalizedEvent> {
  const identifiers = identifiersOf(event);
  const known = await findPseudonyms(sql, secretBox, appId, identifiers);
  const [pseudonym] = known.values();
  const isOfOthers = event.userIds.length > 0 && event.userIds.every((userId) => !known.has(userId));
  const linkedToOthers = new Set(
    event.userLinks.filter(({ customerUserId }) => !known.has(customerUserId)).map(({ key }) => key),
  );
  const unknown = event.userKeys.filter((key) => !known.has(key) && !linkedToOthers.has(key));
  if (pseudonym === undefined || isOfOthers || unknown.length === 0) return withPseudonyms(event, known);
  const keys = await withoutKeysOfOthers(sql, { appId, source, pseudonym }, unknown);
  if (keys.length === 0) return withPseudonyms(event, known);
  const hash = await identifierHasher(sql, secretBox);
  const marks = keys.map((key) => ({ hash: hash(appId, key).toString('hex'), pseudonym: newPseudonym() }));
  await sql`
    insert into erased_identifiers (app_id, hash, erasure_id, kind, pseudonym)
    select ${appId}, decode(m.hash, 'hex'), e.erasure_id, 'key', m.pseudonym
      from (select erasure_id from erased_identifiers where app_id = ${appId} and pseudonym = ${pseudonym}) e,
           jsonb_to_recordset(${sql.json(marks)}) m (hash text, pseudonym text)
    on conflict do nothing`;
  return withPseudonyms(event, await findPseudonyms(sql, secretBox, appId, identifiers));
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
function withPseudonyms(event: NormalizedEvent, pseudonyms: ReadonlyMap<string, string>): NormalizedEvent {
  const replaced = (identifier: string) => pseudonyms.get(identifier) ?? identifier;
  const all = (identifiers: readonly string[]) => [...new Set(identifiers.map(replaced))];
  return {
    ...event,
    userIds: all(event.userIds),
    userKeys: all(event.userKeys),
    userLinks: event.userLinks.map(({ key, customerUserId }) => ({
      key: replaced(key),
      customerUserId: replaced(customerUserId),
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
