import { expect, test } from '@jest/globals';
import { runAdmin } from '../../src/cli/admin.ts';
import { createSecretBox } from '../../src/config/secret-box.ts';
import { identifierHasher, prepareErasureKey } from '../../src/db/erased-identifiers.ts';
import { eraseUser } from '../../src/db/erasures.ts';
import { countSecretsByKey } from '../../src/db/webhook-secrets.ts';
import type { AppId } from '../../src/domain/ids.ts';
import { newApp, startTestApi } from '../support/api.ts';
import { createTestDatabase } from '../support/database.ts';

const appId = 'app_00000000000000000000000001' as AppId;
const former = Buffer.alloc(32, 1);
const current = Buffer.alloc(32, 2);
// @promise erasure-key-changes
test('a service that starts with another first key encrypts the erasure key with it, and the former key can be removed', async () => {
  const database = await createTestDatabase();
  const hashOf = async (...keys: Buffer[]) =>
    (await identifierHasher(database.sql.share(1), createSecretBox(keys)))(appId, 'somebody').toString('hex');
  await prepareErasureKey(database.sql, createSecretBox([former]));
  const before = await hashOf(former);
  // A command encrypts nothing again: the service may not have its first key.
  expect(await hashOf(current, former)).toBe(before);
  expect(await hashOf(former)).toBe(before);
  const [formerId, currentId] = [former, current].map((key) => createSecretBox([key]).keyIds[0]);
  expect(await countSecretsByKey(database.sql)).toEqual([
    {
      encryptionKeyId: formerId,
      secrets: 0,
      erasures: 1,
      payees: false,
      payoutFiles: false,
      openRuns: false,
    },
  ]);
  await prepareErasureKey(database.sql.share(1), createSecretBox([current, former]));
  expect(await hashOf(current)).toBe(before);
  expect(await countSecretsByKey(database.sql)).toEqual([
    {
      encryptionKeyId: currentId,
      secrets: 0,
      erasures: 1,
      payees: false,
      payoutFiles: false,
      openRuns: false,
    },
  ]);
  await database.drop();
});

// @promise lost-key-ends
test('where nobody was erased, a service whose operator accepts that the erasure key is lost makes a new one, and else keeps it', async () => {
  const api = await startTestApi();
  const { sql } = api;
  const [lost, kept] = [createSecretBox([former]), createSecretBox([current])];
  const accepting = createSecretBox([current], { acceptsLostKeys: true });
  const prepare = async (box: typeof lost) => await prepareErasureKey(sql.share(1), box);
  const keyId = async () =>
    (await sql.one<{ id: string }>`select encryption_key_id as id from erasure_key`).id;
  await prepare(lost);
  await expect(prepare(kept)).rejects.toThrow('SECRETS_KEY lacks the key');
  expect(await keyId()).toBe(lost.keyIds[0]);
  await prepare(accepting);
  expect(await keyId()).toBe(kept.keyIds[0]);
  // One that can be read stays.
  const hash = (await identifierHasher(sql.share(1), kept))(appId, 'somebody');
  await prepare(accepting);
  expect((await identifierHasher(sql.share(1), kept))(appId, 'somebody')).toEqual(hash);

  const { appId: erasing } = await newApp(api);
  const request = { appId: erasing as AppId, customerUserId: 'somebody', keyId: null };
  await eraseUser({ sql: sql.share(1), secretBox: kept }, request);
  await expect(prepare(createSecretBox([former], { acceptsLostKeys: true }))).rejects.toThrow(
    'SECRETS_KEY lacks the key',
  );
  expect(await keyId()).toBe(kept.keyIds[0]);
  await api.close();
});

// @promise erasure-key-of-service
test('the command line erases nobody before a service has stored its key', async () => {
  const api = await startTestApi();
  const app = await newApp(api);
  const { url } = api.database;
  let err = '';
  const status = await runAdmin(['erase-user', '--app', app.appId, '--user', 'somebody'], {
    openDatabase: async () => ({ url, ownerUrl: url, close: async () => {} }),
    secretsKeys: { read: async () => [current], require: async () => {} },
    findService: async () => null,
    stdout: () => {},
    stderr: (text) => void (err += text),
  });
  const keys = await api.sql`select from erasure_key`;
  await api.close();
  expect([status, err, keys]).toEqual([1, expect.stringContaining('start it once'), []]);
});
