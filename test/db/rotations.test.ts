import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { randomBytes } from 'node:crypto';
import { createAccount } from '../../src/db/accounts.ts';
import { newId } from '../../src/db/new-id.ts';
import { rotateSdkKey } from '../../src/db/sdk-keys.ts';
import type { AppId } from '../../src/domain/ids.ts';
import { MAX_LIVE_SECRETS, putWebhookSecret } from '../../src/db/webhook-secrets.ts';
import { createTestDatabase } from '../support/database.ts';
import type { TestDatabase } from '../support/database.ts';

let database: TestDatabase;
let appId: AppId;

beforeAll(async () => {
  database = await createTestDatabase({ max: 8 });
});
beforeEach(async () => {
  const { id: accountId } = await createAccount(database.sql, 'Acme');
  appId = newId('app');
  await database.sql`
    insert into apps (id, account_id, name, commission_rate_bps, attribution_window_days, hold_period_days,
                      deferred_window_minutes, link_subdomain)
    values (${appId}, ${accountId}, 'App', 2000, 30, 30, 60, ${appId.slice(-8)})`;
});
afterAll(async () => {
  await database.drop();
});

const AT = Date.UTC(2026, 5, 1);
const place = () => ({ appId, provider: 'revenuecat', at: AT, previousEndsAt: AT + 60_000, keyIds: ['k1'] });
const newSecret = () => ({
  environment: 'production' as const,
  signed: null,
  ciphertext: randomBytes(8),
  encryptionKeyId: 'k1',
});
const stored = async () =>
  await database.sql<{ ciphertext: Uint8Array; liveSlot: number | null; expiresAt: number | null }>`
    select ciphertext, live_slot, expires_at from webhook_secrets where app_id = ${appId} order by created_at`;

describe('a webhook secret', () => {
  test('of many calls at once, each chooses from the secret of the call before it, and the last one is current', async () => {
    const previous: (Buffer | null)[] = [];
    const results = await Promise.all(
      Array.from({ length: 24 }, async () => {
        let seen: Buffer | null = null;
        const { chosen } = await putWebhookSecret(database.sql, place(), (current) => {
          seen = current === null ? null : Buffer.from(current.ciphertext);
          return newSecret();
        });
        previous.push(seen);
        return chosen.ciphertext;
      }),
    );
    const rows = await stored();
    const inOrder = rows.map(({ ciphertext }) => Buffer.from(ciphertext).toString('hex'));
    expect(new Set(inOrder)).toEqual(new Set(results.map((bytes) => bytes.toString('hex'))));
    expect(new Set(previous.map((bytes) => bytes?.toString('hex') ?? null))).toEqual(
      new Set([null, ...inOrder.slice(0, -1)]),
    );
    expect(rows.map(({ expiresAt }) => expiresAt === null)).toEqual([
      ...Array.from({ length: 23 }, () => false),
      true,
    ]);
    expect(rows.filter(({ liveSlot }) => liveSlot !== null)).toHaveLength(MAX_LIVE_SECRETS);
  });

  test('a call that runs again after a lost answer to its commit stores one secret, and returns the stored one', async () => {
    await putWebhookSecret(database.sql, place(), newSecret);
    let choices = 0;
    const repeating = {
      transaction: async <T>(work: Parameters<typeof database.sql.transaction<T>>[0]) => {
        await database.sql.transaction(work);
        // Another call comes between.
        await putWebhookSecret(database.sql, place(), newSecret);
        await putWebhookSecret(database.sql, place(), newSecret);
        await putWebhookSecret(database.sql, place(), newSecret);
        return await database.sql.transaction(work);
      },
    };
    const { chosen, previousExpiresAt } = await putWebhookSecret(repeating, place(), () => {
      choices += 1;
      return newSecret();
    });
    expect({ choices, previousExpiresAt }).toEqual({ choices: 1, previousExpiresAt: AT + 60_000 });
    const rows = await stored();
    expect(rows).toHaveLength(5);
    expect(Buffer.from(rows[1]?.ciphertext ?? [])).toEqual(chosen.ciphertext);
  });

  test('a choice that is refused changes nothing', async () => {
    await putWebhookSecret(database.sql, place(), newSecret);
    const before = await stored();
    const refused = putWebhookSecret(database.sql, place(), () => {
      throw new RangeError('as planned');
    });
    await expect(refused).rejects.toThrow(new RangeError('as planned'));
    expect(await stored()).toEqual(before);
  });
});

describe('an SDK key', () => {
  test('two hundred rotations at once all succeed, each ends the key before it, and the last one is current', async () => {
    const results = await Promise.all(
      Array.from({ length: 200 }, async () => {
        const key = {
          id: newId('key'),
          kind: 'live' as const,
          display: 'shown',
          key: 'never stored',
          sha256: randomBytes(32),
        };
        return await rotateSdkKey(database.sql, appId, key, AT);
      }),
    );
    expect(results.toSorted((a, b) => (a ?? 0) - (b ?? 0))).toEqual([
      null,
      ...Array.from({ length: 199 }, () => AT),
    ]);
    const keys = await database.sql<{ expiresAt: number | null }>`
      select expires_at from sdk_keys where app_id = ${appId} order by created_at`;
    expect(keys.map(({ expiresAt }) => expiresAt)).toEqual([...Array.from({ length: 199 }, () => AT), null]);
  });
});
