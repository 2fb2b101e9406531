import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { createAccountKey } from '../../src/db/account-keys.ts';
import { DAY_MS } from '../../src/domain/time.ts';
import { newAffiliate, newApp, startTestApi } from '../support/api.ts';
import type { TestApi, TestApp } from '../support/api.ts';

let api: TestApi;
let app: TestApp;
let creator: string;

beforeAll(async () => {
  api = await startTestApi();
});
afterAll(async () => {
  await api.close();
});
beforeEach(async () => {
  app = await newApp(api);
  creator = await newAffiliate(api, app, { name: 'Ada' });
});

interface Body {
  readonly id: string;
  readonly code?: string;
  readonly version: number;
  readonly setAt: number;
  readonly countsFrom: number;
  readonly errors?: readonly { readonly path: string; readonly message: string }[];
}

const pathOf = (affiliateId = creator) => `/apps/${app.appId}/affiliates/${affiliateId}/payee`;
const get = async (tail = '', key = app.key) => await api.call<Body>('GET', `${pathOf()}${tail}`, { key });
const put = async (body: object, key = app.key) => await api.call<Body>('PUT', pathOf(), { key, body });

const PAYPAL = { method: 'paypal', recipient: { email: 'ada.lovelace@example.com' } };
const WISE = {
  method: 'wise',
  recipient: { email: 'ada@example.org', name: 'Ada Lovelace', receiverType: 'PERSON' },
};
const OTHER = { method: 'other', recipient: { name: 'Ada Lovelace', reference: 'IBAN DE00 1234' } };
const NONE = { method: 'none' };

describe('the payee of a creator', () => {
  // @promise put-payee, get-payee
  test('is set as a version that counts after three days, and is shown whole to who may pay', async () => {
    const first = await put(PAYPAL);
    expect(first).toMatchObject({
      status: 200,
      body: { affiliateId: creator, version: 1, ...PAYPAL, maskedRecipient: 'a•••@example.com' },
    });
    expect(first.body.countsFrom - first.body.setAt).toBe(3 * DAY_MS);
    expect(Math.abs(first.body.setAt - Date.now())).toBeLessThan(60_000);
    for (const [index, payee] of [WISE, OTHER].entries()) {
      expect((await put(payee)).body).toMatchObject({ version: index + 2, ...payee });
      expect((await get()).body).toMatchObject({ version: index + 2, ...payee });
    }
    expect((await put(NONE)).body).toMatchObject({ version: 4, method: 'none', maskedRecipient: null });
    expect((await get()).body).not.toHaveProperty('recipient');
  });
});
