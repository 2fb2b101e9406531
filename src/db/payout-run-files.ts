import { createHash } from 'node:crypto';
import { SecretUnreadable } from '../config/secret-box.ts';
import type { SecretBox } from '../config/secret-box.ts';
import { hasRowOf, writePayoutFiles } from '../domain/payout-run-files.ts';
import type { FileRow } from '../domain/payout-run-files.ts';
import type { PayoutFileMethod } from '../domain/payout-run.ts';
import type {
  AccountId,
  AffiliateId,
  AppId,
  KeyId,
  PayoutFileId,
  PayoutRunId,
  PayoutRunItemId,
} from '../domain/ids.ts';
import { acting } from './audit.ts';
import { newId } from './new-id.ts';
import { openRecipient } from './payees.ts';
import type { SealedRecipient } from './payees.ts';
import { itemsOfRun } from './payout-runs.ts';
import { reencrypt } from './reencryption.ts';
import type { Encrypted } from './reencryption.ts';
import type { Sql, Statements } from './sql.ts';

export interface PayoutFileDeps {
  readonly sql: Sql;
  readonly secretBox: SecretBox;
}

/** Returns the encryption context of a file. */
const fileContext = (appId: AppId, fileId: PayoutFileId) => `${appId}:payout-file:${fileId}`;

/**
 * Writes the files of an approved run of which no request is open or to come, unless they are written. A repetition writes nothing.
 * Throws `SecretUnreadable`, and writes nothing, if the key of a recipient is missing.
 */
export async function writeRunFiles({ sql, secretBox }: PayoutFileDeps, runId: PayoutRunId): Promise<void> {
  await sql.forManyRows().transaction(async (tx) => {
    const run = await tx.maybe<{ readonly appId: AppId }>`
      select app_id from payout_runs where id = ${runId} and status = 'approved' for update`;
    if (run === undefined || (await tx.maybe`select from payout_run_files where run_id = ${runId} limit 1`))
      return;
    const rows = await readPaid(tx, secretBox, run.appId, runId);
    for (const { text, ...file } of writePayoutFiles(rows)) {
      const id = newId('payoutFile');
      const { ciphertext, encryptionKeyId } = secretBox.encrypt(text, fileContext(run.appId, id));
      await tx`
        insert into payout_run_files (id, app_id, run_id, method, part, row_count, total_cents, sha256, ciphertext, encryption_key_id)
        values (${id}, ${run.appId}, ${runId}, ${file.method}, ${file.part}, ${file.rowCount}, ${file.totalCents},
                ${createHash('sha256').update(text).digest()}, ${ciphertext}, ${encryptionKeyId})`;
    }
  });
}

/**
 * Returns the items of a run that were paid or are sent again, with their recipients. Whose payee was replaced meanwhile, or whose payouts were
 * blocked, has none, so that a person looks at the row. An erasure of one of them waits, and then finds the files.
 */
async function readPaid(
  tx: Statements,
  secretBox: SecretBox,
  appId: AppId,
  runId: PayoutRunId,
): Promise<FileRow[]> {
  const rows = await tx<Omit<FileRow, 'payee'> & SealedRecipient & { readonly payeeVersion: number | null }>`
    select i.id as item_id, i.affiliate_id, i.affiliate_name, i.expected_cents as amount_cents, i.method, y.version as payee_version,
           y.ciphertext, y.encryption_key_id
      from payout_runs r, lateral (${itemsOfRun(tx)}) i
      left join lateral (
        select * from payees x
         where x.app_id = i.app_id and x.affiliate_id = i.affiliate_id and x.version = i.payee_version
            and not are_payouts_blocked(i.affiliate_id)
            and not exists (select from payees z where z.app_id = x.app_id and z.affiliate_id = x.affiliate_id and z.version > x.version)
         offset 0 for share) y on true
     where r.id = ${runId} and i.is_filed
     order by i.position`;
  return rows.map(({ ciphertext, encryptionKeyId, payeeVersion, ...row }) => ({
    ...row,
    payee:
      payeeVersion === null
        ? null
        : openRecipient(secretBox, appId, { ...row, version: payeeVersion, ciphertext, encryptionKeyId }),
  }));
}

/** A file of a run. */
export interface ListedPayoutFile {
  readonly id: PayoutFileId;
  readonly method: PayoutFileMethod;
  readonly part: number;
  readonly rowCount: number;
  readonly totalCents: number;
  /** Hexadecimal. */
  readonly sha256: string;
  readonly createdAt: number;
  readonly downloadCount: number;
  /** Whether its bytes were removed, because a creator in it was erased. */
  readonly isErased: boolean;
}

/** Returns the files of a run, which has fewer than a page. Undefined for an unknown run. */
export async function listRunFiles(
  sql: Sql,
  appId: AppId,
  runId: PayoutRunId,
): Promise<ListedPayoutFile[] | undefined> {
  const files = await sql<ListedPayoutFile>`
    select f.id, f.method, f.part, f.row_count, f.total_cents, encode(f.sha256, 'hex') as sha256, f.created_at, f.ciphertext is null as is_erased,
           coalesce((select max(position) from payout_file_downloads d where d.file_id = f.id), 0) as download_count
      from payout_run_files f where f.app_id = ${appId} and f.run_id = ${runId} order by f.method, f.part`;
  if (files.length > 0) return files;
  const run = await sql.maybe`select from payout_runs where app_id = ${appId} and id = ${runId}`;
  return run === undefined ? undefined : files;
}

/** A file with its bytes. Null: they were removed. */
export interface DownloadedFile {
  readonly method: PayoutFileMethod;
  readonly part: number;
  readonly bytes: Buffer | null;
  readonly sha256: Buffer;
}

/**
 * Returns the bytes of a file, and notes that they were downloaded. Undefined for an unknown file. Notes nothing, and throws, if they can't
 * be decrypted or do not have their hash.
 */
export async function downloadFile(
  { sql, secretBox }: PayoutFileDeps,
  place: {
    readonly appId: AppId;
    readonly runId: PayoutRunId;
    readonly fileId: PayoutFileId;
    readonly accountId: AccountId;
    readonly keyId: KeyId;
  },
): Promise<DownloadedFile | undefined> {
  const { appId, runId, fileId, accountId, keyId } = place;
  return await sql.transaction(async (tx) => {
    const found = await tx.maybe<Omit<DownloadedFile, 'bytes'> & SealedRecipient>`
      select method, part, sha256, ciphertext, encryption_key_id from payout_run_files
       where app_id = ${appId} and run_id = ${runId} and id = ${fileId} for no key update`;
    if (found === undefined) return undefined;
    const { ciphertext, encryptionKeyId, ...rest } = found;
    const sha256 = Buffer.from(rest.sha256);
    if (ciphertext === null || encryptionKeyId === null) return { ...rest, sha256, bytes: null };
    const text = secretBox.decrypt(Buffer.from(ciphertext), encryptionKeyId, fileContext(appId, fileId));
    const bytes = Buffer.from(text);
    if (!createHash('sha256').update(bytes).digest().equals(sha256)) {
      throw new Error(`the file ${fileId} of a payout run does not have its hash: the row was changed`);
    }
    await tx`
      insert into payout_file_downloads (app_id, file_id, position, account_id, key_id)
      select ${appId}::text, ${fileId}::text, coalesce(max(position), 0) + 1, ${accountId}::text, ${keyId}::text
        from payout_file_downloads where file_id = ${fileId} having ${acting(tx)}`;
    return { ...rest, sha256, bytes };
  });
}

/** A file with a recipient of a creator. */
export interface FileOfCreator {
  readonly id: PayoutFileId;
  readonly runId: PayoutRunId;
  /** Whether it is the only list of whom to pay: nobody has downloaded it, and somebody still can. */
  readonly isNeeded: boolean;
}

/**
 * Returns the files that have a recipient of a creator, of a version that is not erased. A file that can't be decrypted may have one, and
 * counts. Keeps downloads waiting until the end of the transaction.
 */
export async function lockFilesOf(
  { sql: tx, secretBox }: { readonly sql: Statements; readonly secretBox: SecretBox },
  appId: AppId,
  affiliateId: AffiliateId,
): Promise<readonly FileOfCreator[]> {
  const rows = await tx<{
    readonly id: PayoutFileId;
    readonly runId: PayoutRunId;
    readonly method: PayoutFileMethod;
    readonly itemId: PayoutRunItemId;
  }>`
    select f.id, f.run_id, f.method, i.id as item_id
      from payees y
      join payout_run_items i on i.app_id = y.app_id and i.affiliate_id = y.affiliate_id and i.payee_version = y.version
      join payout_run_files f on f.run_id = i.run_id and f.method = i.method
     where y.app_id = ${appId} and y.affiliate_id = ${affiliateId} and y.ciphertext is not null and f.ciphertext is not null
     order by f.id for no key update of f`;
  const files = new Map<PayoutFileId, FileOfCreator>();
  for (const { id, runId, method, itemId } of rows) {
    if (files.has(id)) continue;
    // One at a time, since a file may be large. A download that ended meanwhile is seen.
    const file = await tx.one<Encrypted & { readonly isDownloaded: boolean }>`
      select f.ciphertext, f.encryption_key_id,
             exists (select from payout_file_downloads d where d.file_id = f.id) as is_downloaded
        from payout_run_files f where f.id = ${id}`;
    const { text, isLost } = readFile(secretBox, file, fileContext(appId, id));
    if (text !== null && !hasRowOf(method, text, itemId)) continue;
    files.set(id, { id, runId, isNeeded: !file.isDownloaded && !isLost });
  }
  return [...files.values()];
}

/** Returns the text of a file. Null if it can't be decrypted; `isLost` says whether no process can. */
function readFile(
  secretBox: SecretBox,
  { ciphertext, encryptionKeyId }: Encrypted,
  context: string,
): { readonly text: string | null; readonly isLost: boolean } {
  try {
    return { text: secretBox.decrypt(Buffer.from(ciphertext), encryptionKeyId, context), isLost: false };
  } catch (error) {
    if (error instanceof SecretUnreadable) return { text: null, isLost: error.isLost };
    throw error;
  }
}

/** Files that one statement encrypts again. */
const REENCRYPTED = 20;

/** Encrypts files with the first key that a former one encrypted (`reencrypt`). */
export async function reencryptPayoutFiles(
  { sql, secretBox }: PayoutFileDeps,
  { signal }: { readonly signal?: AbortSignal } = {},
): Promise<void> {
  await reencrypt<Encrypted & { readonly id: PayoutFileId; readonly appId: AppId }>(
    secretBox,
    {
      pageOf: async (keyId, after) =>
        await sql`
        select id, app_id, ciphertext, encryption_key_id from payout_run_files
         where encryption_key_id = ${keyId} and id > ${after?.id ?? ''} order by id limit ${REENCRYPTED}`,
      contextOf: ({ appId, id }) => fileContext(appId, id),
      store: async (files) => {
        for (const { row, sealed } of files) {
          await sql`
            update payout_run_files set ciphertext = ${sealed.ciphertext}, encryption_key_id = ${sealed.encryptionKeyId}
             where id = ${row.id} and encryption_key_id = ${row.encryptionKeyId}`;
        }
      },
    },
    signal,
  );
}
