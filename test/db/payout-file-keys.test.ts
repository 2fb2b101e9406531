import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { pino } from 'pino';
import { createSecretBox, SecretUnreadable } from '../../src/config/secret-box.ts';
import type { SecretBox } from '../../src/config/secret-box.ts';
import { newId } from '../../src/db/new-id.ts';
import { downloadFile, lockFilesOf, reencryptPayoutFiles } from '../../src/db/payout-run-files.ts';
import { countSecretsByKey } from '../../src/db/webhook-secrets.ts';
import type { PayoutFileId } from '../../src/domain/ids.ts';
import { createSecretsCheck } from '../../src/secrets-check.ts';
import { createTestDatabase } from '../support/database.ts';
import type { TestDatabase } from '../support/database.ts';

const [former, current, lost, old] = [1, 2, 3, 4].map((byte) => Buffer.alloc(32, byte)) as [
  Buffer,
  Buffer,
  Buffer,
  Buffer,
];
const idOf = (key: Buffer) => createSecretBox([key]).keyIds[0] ?? '';
const appId = newId('app');

let database: TestDatabase;

beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(async () => {
  await database.drop();
});

/** Inserts a file that a key has encrypted, and returns its id. */
async function insertFile(
  key: Buffer,
  { text = 'a,b', runId = newId('payoutRun'), part = 1 } = {},
): Promise<PayoutFileId> {
  const id = newId('payoutFile');
  const { ciphertext, encryptionKeyId } = createSecretBox([key]).encrypt(text, `${appId}:payout-file:${id}`);
  await database.sql.transaction(async (tx) => {
    await tx`set local session_replication_role = replica`;
    await tx`
      insert into payout_run_files (id, app_id, run_id, method, part, row_count, total_cents, sha256, ciphertext, encryption_key_id)
      values (${id}, ${appId}, ${runId}, 'other', ${part}, 1, 500, sha256(${text}::bytea), ${ciphertext}, ${encryptionKeyId})`;
  });
  return id;
}

const keyOf = async (id: string) =>
  (
    await database.sql.one<{ key: string }>`
      select encryption_key_id as key from payout_run_files where id = ${id}`
  ).key;

// @promise payees-key-changes
test('files of payout runs are encrypted with the first key, also beside one that cannot be decrypted', async () => {
  const readable = await Promise.all(Array.from({ length: 30 }, async () => await insertFile(former)));
  const changed = await insertFile(former);
  await database.sql.transaction(async (tx) => {
    await tx`set local session_replication_role = replica`;
    // Before all others in the order of the index.
    await tx`update payout_run_files set id = 'pfl_00000000000000000000000000' where id = ${changed}`;
  });
  await reencryptPayoutFiles({ sql: database.sql, secretBox: createSecretBox([current, former]) });
  for (const id of readable) expect(await keyOf(id)).toBe(idOf(current));
  expect(await keyOf('pfl_00000000000000000000000000')).toBe(idOf(former));
});

// @promise payees-key-changes
test('a process that lacks a key of files of payout runs says so', async () => {
  await insertFile(lost);
  const check = createSecretsCheck({
    sql: database.sql,
    secretBox: createSecretBox([current, former]),
    logger: pino({ level: 'silent' }),
  });
  expect(await check()).toBe(`SECRETS_KEY lacks the key ${idOf(lost)} of files of payout runs: restore it`);
});

// @promise erase-payout-files
test('a file of a payout run that cannot be decrypted counts as one with a recipient of each of its creators, and is needed while its key may come back', async () => {
  const [affiliateId, runId, itemId] = [newId('affiliate'), newId('payoutRun'), newId('payoutRunItem')];
  const row = `${itemId},${affiliateId},Ada,Ada,Account 1,5.00,USD\r\n`;
  const own = await insertFile(current, { text: row, runId, part: 1 });
  const downloaded = await insertFile(current, { text: row, runId, part: 2 });
  const otherRow = row.replace(itemId, newId('payoutRunItem'));
  const ofOthers = await insertFile(current, { text: otherRow, runId, part: 3 });
  const unreadable = await insertFile(lost, { text: row, runId, part: 4 });
  await database.sql.transaction(async (tx) => {
    await tx`set local session_replication_role = replica`;
    await tx`
      insert into payees (id, app_id, affiliate_id, version, method, ciphertext, encryption_key_id, set_at, counts_from)
      values (${newId('payee')}, ${appId}, ${affiliateId}, 1, 'other', 'x', ${idOf(current)}, now(), now() + interval '3 days')`;
    await tx`
      insert into payout_run_items (id, app_id, run_id, affiliate_id, affiliate_name, position, expected_cents, method, payee_version)
      values (${itemId}, ${appId}, ${runId}, ${affiliateId}, 'Ada', 1, 500, 'other', 1)`;
    await tx`
      insert into payout_file_downloads (app_id, file_id, position, account_id, key_id)
      values (${appId}, ${downloaded}, 1, ${newId('account')}, 'key_00000000000000000000000001')`;
  });
  const found = async (secretBox: SecretBox) => {
    const files = await database.sql.transaction(
      async (tx) => await lockFilesOf({ sql: tx, secretBox }, appId, affiliateId),
    );
    return new Map(files.map(({ id, isNeeded }) => [id, isNeeded]));
  };
  const needed = new Map([
    [own, true],
    [downloaded, false],
  ]);
  expect(await found(createSecretBox([current, lost]))).toEqual(new Map([...needed, [unreadable, true]]));
  expect(await found(createSecretBox([current]))).toEqual(new Map([...needed, [unreadable, true]]));
  const accepting = createSecretBox([current], { acceptsLostKeys: true });
  expect(await found(accepting)).toEqual(new Map([...needed, [unreadable, false]]));
  expect((await found(accepting)).has(ofOthers)).toBe(false);
  expect(await found(createSecretBox([lost]))).toEqual(
    new Map([...needed, [ofOthers, true], [unreadable, true]]),
  );
});

// @promise download-payout-run-file
test('a download that fails because its key is missing is not noted', async () => {
  const runId = newId('payoutRun');
  const fileId = await insertFile(lost, { runId });
  const place = { appId, runId, fileId, accountId: newId('account'), keyId: newId('key') };
  const secretBox = createSecretBox([current]);
  await expect(downloadFile({ sql: database.sql, secretBox }, place)).rejects.toThrow(SecretUnreadable);
  const noted = await database.sql`select from payout_file_downloads where file_id = ${fileId}`;
  expect(noted).toEqual([]);
});

// @promise missing-key-waits
test('a process that lacks the key of a payee whom an open payout run pays says so, also if the creator has a later payee', async () => {
  const affiliateId = newId('affiliate');
  const runId = newId('payoutRun');
  const secretBox = createSecretBox([current, former]);
  const needed = async () =>
    (await countSecretsByKey(database.sql)).find(({ openRuns }) => openRuns)?.encryptionKeyId;
  await database.sql.transaction(async (tx) => {
    await tx`set local session_replication_role = replica`;
    await tx`delete from payout_run_files`;
    for (const [n, key] of [old, current].entries()) {
      await tx`
        insert into payees (id, app_id, affiliate_id, version, method, ciphertext, encryption_key_id, set_at, counts_from)
        values (${newId('payee')}, ${appId}, ${affiliateId}, ${n + 1}, 'paypal', 'x', ${idOf(key)}, now(), now() + interval '3 days')`;
    }
    await tx`
      insert into payout_runs (id, app_id, account_id, key_id, as_of, minimum_cents, includes_without_payee, item_count, total_cents,
                               status, expires_at, approved_at, approved_by)
      values (${runId}, ${appId}, ${newId('account')}, 'key_00000000000000000000000001', now(), 0, true, 1, 500,
              'approved', now() + interval '1 day', now(), 'key_00000000000000000000000001')`;
    await tx`
      insert into payout_run_items (id, app_id, run_id, affiliate_id, affiliate_name, position, expected_cents, method, payee_version)
      values (${newId('payoutRunItem')}, ${appId}, ${runId}, ${affiliateId}, 'Ada', 1, 500, 'paypal', 1)`;
  });
  const check = createSecretsCheck({ sql: database.sql, secretBox, logger: pino({ level: 'silent' }) });
  expect(await check()).toBe(`SECRETS_KEY lacks the key ${idOf(old)} of open payout runs: restore it`);
  expect(await needed()).toBe(idOf(old));
  await database.sql.transaction(async (tx) => {
    await tx`set local session_replication_role = replica`;
    await tx`update payout_runs set status = 'settled', ended_at = now(), paid_count = 1, paid_cents = 500 where id = ${runId}`;
  });
  expect(await needed()).toBeUndefined();
});
