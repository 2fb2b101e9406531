import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { pino } from 'pino';
import { createSecretBox } from '../../src/config/secret-box.ts';
import { newId } from '../../src/db/new-id.ts';
import { reencryptPayoutFiles } from '../../src/db/payout-run-files.ts';
import { createSecretsCheck } from '../../src/secrets-check.ts';
import { createTestDatabase } from '../support/database.ts';
import type { TestDatabase } from '../support/database.ts';

const [former, current, lost] = [1, 2, 3].map((byte) => Buffer.alloc(32, byte)) as [Buffer, Buffer, Buffer];
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
async function insertFile(key: Buffer, text = 'a,b'): Promise<string> {
  const id = newId('payoutFile');
  const { ciphertext, encryptionKeyId } = createSecretBox([key]).encrypt(text, `${appId}:payout-file:${id}`);
  await database.sql.transaction(async (tx) => {
    await tx`set local session_replication_role = replica`;
    await tx`
      insert into payout_run_files (id, app_id, run_id, method, part, row_count, total_cents, sha256, ciphertext, encryption_key_id)
      values (${id}, ${appId}, ${newId('payoutRun')}, 'other', 1, 1, 500, sha256(${text}::bytea), ${ciphertext}, ${encryptionKeyId})`;
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
