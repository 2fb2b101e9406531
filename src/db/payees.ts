import type { SecretBox } from '../config/secret-box.ts';
import type { AccountId, AffiliateId, AppId, KeyId, PayeeId } from '../domain/ids.ts';
import { isSamePayee, textOfRecipient } from '../domain/payee.ts';
import type { Payee, PayeeVersion, Recipient } from '../domain/payee.ts';
import { isAffiliate } from './affiliates.ts';
import { acting } from './audit.ts';
import { pageOf } from './page.ts';
import type { Page, Position } from './page.ts';
import { lockPayoutsOf } from './payout-lock.ts';
import { decryptOrNull, decryptUnlessLost, reencrypt } from './reencryption.ts';
import type { Encrypted } from './reencryption.ts';
import { instant } from './sql.ts';
import type { Sql, Statements } from './sql.ts';

/** Why a version has no recipient to show, though its method has one. */
export type RecipientProblem = 'erased' | 'unreadable';

/** A version of where the money of a creator goes. */
export interface StoredPayee extends PayeeVersion {
  readonly id: PayeeId;
  readonly affiliateId: AffiliateId;
  /** Null for the method `none`, and if there is a problem. */
  readonly recipient: Recipient | null;
  /** Null without a problem. */
  readonly recipientProblem: RecipientProblem | null;
  readonly setAt: number;
  /** Null if the creator has set it. */
  readonly keyId: KeyId | null;
  readonly keyLabel: string | null;
  readonly keyDisplay: string | null;
}

/** An encrypted recipient. Both are null without one. */
export interface SealedRecipient {
  readonly ciphertext: Uint8Array | null;
  readonly encryptionKeyId: string | null;
}

type PayeeRow = Omit<StoredPayee, 'recipient' | 'recipientProblem'> & SealedRecipient;

/** What reading recipients needs. */
export interface PayeeDeps<S = Sql> {
  readonly sql: S;
  readonly secretBox: SecretBox;
}

/** Returns the encryption context of a recipient: its ciphertext says nothing as another version, or of another creator or app. */
function payeeContext(appId: AppId, affiliateId: AffiliateId, version: number): string {
  return `${appId}:payee:${affiliateId}:${version}`;
}

/**
 * Returns the payee of a version, for work whose result stays. Null without a recipient, and if it is lost permanently. Throws
 * `SecretUnreadable` if its key is missing.
 */
export function openRecipient(
  secretBox: SecretBox,
  appId: AppId,
  row: SealedRecipient & Pick<StoredPayee, 'version' | 'method' | 'affiliateId'>,
): Payee | null {
  const { ciphertext, encryptionKeyId, method, affiliateId, version } = row;
  if (ciphertext === null || encryptionKeyId === null) return null;
  const context = payeeContext(appId, affiliateId, version);
  const text = decryptUnlessLost(secretBox, { ciphertext, encryptionKeyId }, context);
  return text === null ? null : { method, recipient: JSON.parse(text) };
}

/** Decrypts the recipient of a row. */
function openPayee(
  secretBox: SecretBox,
  appId: AppId,
  { ciphertext, encryptionKeyId, ...row }: PayeeRow,
): StoredPayee {
  if (ciphertext === null || encryptionKeyId === null) {
    return { ...row, recipient: null, recipientProblem: row.method === 'none' ? null : 'erased' };
  }
  const context = payeeContext(appId, row.affiliateId, row.version);
  const text = decryptOrNull(secretBox, { ciphertext, encryptionKeyId }, context);
  return text === null
    ? { ...row, recipient: null, recipientProblem: 'unreadable' }
    : { ...row, recipient: JSON.parse(text) as Recipient, recipientProblem: null };
}

const columns = (sql: Statements) => sql.fragment`
  p.id, p.affiliate_id, p.version, p.method, p.ciphertext, p.encryption_key_id, p.set_at, p.counts_from,
  k.id as key_id, k.label as key_label, k.display as key_display`;

const withKey = (sql: Statements) => sql.fragment`
  left join lateral (select * from account_keys x where x.id = p.set_by offset 0) k on true`;

/** Returns the latest version of a creator's payee. Null without one. */
export async function findLatestPayee(
  { sql, secretBox }: PayeeDeps<Statements>,
  appId: AppId,
  affiliateId: AffiliateId,
): Promise<StoredPayee | null> {
  const row = await sql.maybe<PayeeRow>`
    select ${columns(sql)}
      from (select * from payees where app_id = ${appId} and affiliate_id = ${affiliateId}
             order by version desc limit 1) p ${withKey(sql)}`;
  return row === undefined ? null : openPayee(secretBox, appId, row);
}

/** Returns the latest version of a creator's payee. Null for a creator who never had one, undefined for an unknown creator. */
export async function findPayee(
  deps: PayeeDeps,
  appId: AppId,
  affiliateId: AffiliateId,
): Promise<StoredPayee | null | undefined> {
  const latest = await findLatestPayee(deps, appId, affiliateId);
  if (latest !== null) return latest;
  return (await isAffiliate(deps.sql, appId, affiliateId)) ? null : undefined;
}

/** Whose payee it is, and who sets it. */
export interface PayeePlace {
  /** The id of a new version. */
  readonly id: PayeeId;
  readonly appId: AppId;
  readonly affiliateId: AffiliateId;
  /** The account and the key that set it. Null: the creator. */
  readonly accountId: AccountId | null;
  readonly keyId: KeyId | null;
}

/** Another version than the expected one is the latest. 0: there is none. */
export interface OtherVersion {
  readonly latestVersion: number;
}

/**
 * Appends a version of a creator's payee, unless the latest one is the same. Returns the latest version, or what it is if the caller
 * expected another one; undefined for an unknown creator. The code of a payee that the creator wants is not valid any more. Waits for a payout
 * that is being settled.
 */
export async function setPayee(
  { sql, secretBox }: PayeeDeps,
  place: PayeePlace,
  payee: Payee,
  expectedVersion: number | null,
): Promise<StoredPayee | OtherVersion | undefined> {
  const { appId, affiliateId } = place;
  return await sql.forManyRows().transaction(async (tx) => {
    const inTransaction = { sql: tx, secretBox };
    await lockPayoutsOf(tx, affiliateId);
    const latest = await findLatestPayee(inTransaction, appId, affiliateId);
    // Also says so to a call that was sent again after its answer was lost.
    if (latest !== null && isStoredAs(latest, payee)) {
      // A version that is appended ends what the creator wants by a trigger.
      await tx`
        update payee_changes set ended_at = now(), ciphertext = null, encryption_key_id = null
         where affiliate_id = ${affiliateId} and ended_at is null`;
      return latest;
    }
    if (latest === null && !(await isAffiliate(tx, appId, affiliateId))) return undefined;
    const latestVersion = latest?.version ?? 0;
    if (expectedVersion !== null && expectedVersion !== latestVersion) return { latestVersion };
    await appendPayee(inTransaction, place, payee, latestVersion + 1);
    return (await findLatestPayee(inTransaction, appId, affiliateId)) ?? undefined;
  });
}

/** Whether a version says the same as a payee. */
export function isStoredAs({ method, recipient, recipientProblem }: StoredPayee, payee: Payee): boolean {
  return recipientProblem === null && isSamePayee({ method, recipient } as Payee, payee);
}

/** Appends a version. The caller holds the lock of the creator's payouts. */
export async function appendPayee(
  { sql: tx, secretBox }: PayeeDeps<Statements>,
  { id, appId, affiliateId, accountId, keyId }: PayeePlace,
  payee: Payee,
  version: number,
): Promise<void> {
  const text = textOfRecipient(payee);
  const sealed = text === null ? null : secretBox.encrypt(text, payeeContext(appId, affiliateId, version));
  // The database says when it was set, and from when it counts.
  await tx`
    insert into payees (id, app_id, affiliate_id, version, method, ciphertext, encryption_key_id, account_id, set_by)
    select ${id}::text, ${appId}::text, ${affiliateId}::text, ${version}::int, ${payee.method}::text,
           ${sealed?.ciphertext ?? null}::bytea, ${sealed?.encryptionKeyId ?? null}::text, ${accountId}::text, ${keyId}::text
     where ${acting(tx)}`;
}

/** Returns a page of the versions of a creator's payee, the latest first. Undefined for an unknown creator. */
export async function listPayees(
  { sql, secretBox }: PayeeDeps,
  appId: AppId,
  affiliateId: AffiliateId,
  after: Position<number> | null,
  limit: number,
): Promise<Page<StoredPayee, number> | undefined> {
  const before = after === null ? sql.fragment`` : sql.fragment`and version < ${after.sortKey}::int`;
  const rows = await sql<PayeeRow & Position<number>>`
    select ${columns(sql)}, p.version as sort_key
      from (select * from payees where app_id = ${appId} and affiliate_id = ${affiliateId} ${before}
             order by version desc limit ${limit + 1}) p ${withKey(sql)}
     order by p.version desc`;
  if (rows.length === 0 && !(await isAffiliate(sql, appId, affiliateId))) return undefined;
  const page = pageOf<number, PayeeRow & Position<number>>(rows, limit);
  return { ...page, rows: page.rows.map((row) => openPayee(secretBox, appId, row)) };
}

/** What a run of payouts reads of the versions of a creator. */
export interface PayeeOfRun extends PayeeVersion {
  readonly affiliateId: AffiliateId;
}

/**
 * Returns the versions of creators' payees that `payeeAt` needs at an instant, by the ids of the creators: of each the latest, and the
 * latest whose wait has ended. One statement, for a page of creators.
 */
export async function findPayeesAt(
  sql: Statements,
  appId: AppId,
  affiliateIds: readonly AffiliateId[],
  at: number,
): Promise<ReadonlyMap<AffiliateId, readonly PayeeOfRun[]>> {
  const rows = await sql<PayeeOfRun>`
    select p.affiliate_id, p.version, p.method, p.counts_from
      from unnest(${[...affiliateIds]}::text[]) i (id)
     cross join lateral (
       (select affiliate_id, version, method, counts_from from payees
         where app_id = ${appId} and affiliate_id = i.id order by version desc limit 1)
       union
       (select affiliate_id, version, method, counts_from from payees
         where app_id = ${appId} and affiliate_id = i.id and counts_from <= ${instant(at)} order by version desc limit 1)) p`;
  const found = new Map<AffiliateId, PayeeOfRun[]>();
  for (const row of rows) found.set(row.affiliateId, [...(found.get(row.affiliateId) ?? []), row]);
  return found;
}

/** Versions that one statement encrypts again. */
const REENCRYPTED = 200;

interface EncryptedVersion extends Encrypted {
  readonly appId: AppId;
  readonly affiliateId: AffiliateId;
  readonly version: number;
}

/** Encrypts recipients with the first key that a former one encrypted (`reencrypt`). */
export async function reencryptPayees(
  { sql, secretBox }: PayeeDeps,
  { limit = REENCRYPTED, signal }: { readonly limit?: number; readonly signal?: AbortSignal } = {},
): Promise<void> {
  await reencrypt<EncryptedVersion>(
    secretBox,
    {
      pageOf: (keyId, after) => encryptedBy(sql, keyId, after, limit),
      contextOf: ({ appId, affiliateId, version }) => payeeContext(appId, affiliateId, version),
      store: async (versions) => {
        const rows = versions.map(
          ({ row: { appId, affiliateId, version, encryptionKeyId: former }, sealed }) => ({
            appId,
            affiliateId,
            version,
            former,
            ciphertext: Buffer.from(sealed.ciphertext).toString('hex'),
            keyId: sealed.encryptionKeyId,
          }),
        );
        await sql`
          update payees p set ciphertext = decode(r.ciphertext, 'hex'), encryption_key_id = r."keyId"
            from jsonb_to_recordset(${sql.json(rows)})
                   r ("appId" text, "affiliateId" text, version int, former text, ciphertext text, "keyId" text)
           where p.app_id = r."appId" and p.affiliate_id = r."affiliateId" and p.version = r.version
             and p.encryption_key_id = r.former`;
      },
    },
    signal,
  );
}

async function encryptedBy(
  sql: Sql,
  keyId: string,
  after: EncryptedVersion | null,
  limit: number,
): Promise<EncryptedVersion[]> {
  // A range, whose order no other index has: the primary key would be read from its start to find a few rows of a former key.
  const { appId = '', affiliateId = '', version = 0 } = after ?? {};
  return await sql<EncryptedVersion>`
    select app_id, affiliate_id, version, ciphertext, encryption_key_id from payees
     where (encryption_key_id, app_id, affiliate_id, version) > (${keyId}, ${appId}, ${affiliateId}, ${version}::int)
       and encryption_key_id <= ${keyId}
     order by encryption_key_id, app_id, affiliate_id, version limit ${limit}`;
}
