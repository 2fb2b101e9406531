import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import pg from 'pg';
import { openPayoutRequest, settlePayoutRequest } from '../../src/db/payout-requests.ts';
import { newId } from '../../src/db/new-id.ts';
import type { AffiliateId, AppId, KeyId } from '../../src/domain/ids.ts';
import { DAY_MS } from '../../src/domain/time.ts';
import { FileAdmission } from '../../src/http/file-admission.ts';
import { createIntake } from '../../src/http/intake.ts';
import { newAffiliate, newApp, startTestApi } from '../support/api.ts';
import type { TestApi } from '../support/api.ts';
import { eventually } from '../support/eventually.ts';
import { insertEarning } from '../support/ledger.ts';
import { signIn } from '../support/sessions.ts';

let api: TestApi;
let holder: pg.Client;

beforeAll(async () => {
  api = await startTestApi();
});
beforeEach(async () => {
  holder = new pg.Client(api.database.url);
  await holder.connect();
});
afterAll(async () => {
  await api.close();
});

/** Sets up an account. Returns the calls of its lists. */
async function newCaller() {
  const app = await newApp(api);
  const affiliateId = await newAffiliate(api, app);
  const session = await signIn(api, app.key);
  const paths = {
    links: `/apps/${app.appId}/links`,
    "a creator's commissions": `/apps/${app.appId}/affiliates/${affiliateId}/creator/commissions`,
    audit: `/accounts/${app.accountId}/audit`,
  };
  return async (name: keyof typeof paths) =>
    await api.call('GET', paths[name], {
      headers: { accept: 'text/csv', ...(name === 'audit' ? session : {}) },
      ...(name === 'audit' ? {} : { key: app.key }),
    });
}

// @promise account-files-limited
test.each([
  ['links', 'links'],
  ["a creator's commissions", 'commissions'],
  ['audit', 'audit_rows'],
] as const)(
  'an account that calls for a list as CSV sixty times at once has two at a time, and takes no place of another account: %s',
  async (name, table) => {
    const [noisy, quiet] = [await newCaller(), await newCaller()];
    await holder.query(`begin; lock table ${table} in access exclusive mode`);
    let refused = 0;
    const flood = Array.from({ length: 60 }, async () => {
      const response = await noisy(name);
      if (response.status === 503) refused += 1;
      return response;
    });
    try {
      await eventually(
        'those beyond the slots of the queue are refused',
        async () => await Promise.resolve(refused >= 42),
        10_000,
      );
      const other = quiet(name);
      await holder.query('rollback');
      expect((await other).status).toBe(200);
    } finally {
      await holder.end();
    }
    const responses = await Promise.all(flood);
    const late = responses.filter(({ status }) => status === 503);
    expect(late.map(({ headers }) => headers.get('retry-after'))).toEqual(late.map(() => '5'));
    expect(
      responses.map(({ status }) => status).filter((status) => status !== 503 && status !== 200),
    ).toEqual([]);
    // The slots are free again.
    expect((await noisy(name)).status).toBe(200);
  },
);

// @promise account-files-limited
test('an account repeats two exports that it has paid at a time, and each is repeated later', async () => {
  const accountFiles = new FileAdmission({ slots: 4, perHolder: 2, waitMs: 100 });
  const narrow = await startTestApi({
    sql: api.sql,
    intake: { ...createIntake(api.sql, { webhooks: 0, openCalls: 0 }), accountFiles },
  });
  const app = await newApp(api);
  const affiliateId = (await newAffiliate(api, app)) as AffiliateId;
  const at = api.clock.now - DAY_MS;
  await insertEarning(api, app, { affiliateId, amountCents: 500, occurredAt: at, dueAt: at, matured: true });
  const { keyId } = await api.sql.one<{ keyId: KeyId }>`
    select id as key_id from account_keys where account_id = ${app.accountId}`;
  const id = newId('payoutRequest');
  await openPayoutRequest(api.sql, {
    id,
    appId: app.appId as AppId,
    affiliateId,
    accountId: app.accountId,
    keyId,
    idempotencyKey: 'march',
    expectedTotalCents: null,
    validForMs: 60_000,
  });
  await settlePayoutRequest(api.sql, id);
  const repeat = async () =>
    await narrow.call('POST', `/apps/${app.appId}/affiliates/${affiliateId}/payouts/export`, {
      key: app.key,
      headers: { 'Idempotency-Key': 'march' },
      body: {},
    });
  const first = await repeat();
  expect([first.status, first.headers.get('x-payout-total-cents')]).toEqual([200, '500']);

  await holder.query('begin; lock table payouts in access exclusive mode');
  let refused = 0;
  const flood = Array.from({ length: 5 }, async () => {
    const answer = await repeat();
    if (answer.status === 503) refused += 1;
    return answer;
  });
  try {
    await eventually('those beyond the slots are refused', async () => await Promise.resolve(refused === 3));
  } finally {
    await holder.query('rollback');
    await holder.end();
  }
  const answers = await Promise.all(flood);
  expect(answers.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([200, 200, 503, 503, 503]);
  expect(answers.filter(({ status }) => status === 200).map(({ text }) => text)).toEqual([
    first.text,
    first.text,
  ]);
  expect((await repeat()).text).toBe(first.text);
  await narrow.close();
});
