import { randomUUID } from 'node:crypto';
import { expect } from '@jest/globals';
import { pino } from 'pino';
import { createEraseActivities } from '../../activities/erase.ts';
import type { EraseActivities } from '../../activities/erase.ts';
import type { Activities } from '../../activities/index.ts';
import { createSecretBox } from '../../src/config/secret-box.ts';
import { eraseUser } from '../../src/db/erasures.ts';
import type { Erasure } from '../../src/db/erasure-state.ts';
import { findRollupDifferences } from '../../src/db/rollups.ts';
import type { Sql } from '../../src/db/sql.ts';
import type { AppId, KeyId } from '../../src/domain/ids.ts';
import { DAY_MS, MINUTE_MS } from '../../src/domain/time.ts';
import { newAffiliate, newApp, newLink, TEST_KEY } from './api.ts';
import type { TestApi, TestApp } from './api.ts';
import { expectConsistentLedger } from './consistent-ledger.ts';
import type { ApiResponse } from './http-client.ts';
import { startProcessingApi } from './processing-api.ts';
import { bodyOf, fakeSecret, PROOFS, revenuecatEvent, revenuecatRefund } from './provider-fixtures.ts';
import type { Payload } from './provider-fixtures.ts';
import { findInTables } from './search-everywhere.ts';

export const REVENUECAT_TOKEN = 'Bearer a-long-token-of-revenuecat';
const stripeSecret = fakeSecret('stripe') ?? '';

type Delivered = ApiResponse<{ eventId?: string; commissionId?: string | null }>;

async function expectNothingLeft(sql: Sql, texts: readonly string[]): Promise<void> {
  expect(await findInTables(sql, texts)).toEqual([]);
  await expectConsistentLedger(sql);
  expect(await findRollupDifferences(sql)).toEqual([]);
}

/** An API that processes webhooks at once, with an app whose users are erased by calling the steps of an erasure. */
export class Erasing {
  readonly api: TestApi;
  readonly processing: Activities;
  readonly secretBox = createSecretBox([TEST_KEY]);
  readonly app: TestApp;
  readonly affiliateId: string;
  readonly slug: string;

  constructor(started: Pick<Erasing, 'api' | 'processing' | 'app' | 'affiliateId' | 'slug'>) {
    this.api = started.api;
    this.processing = started.processing;
    this.app = started.app;
    this.affiliateId = started.affiliateId;
    this.slug = started.slug;
  }

  get sql(): Sql {
    return this.api.sql;
  }

  get appId(): AppId {
    return this.app.appId as AppId;
  }

  get deps() {
    return { sql: this.sql, secretBox: this.secretBox };
  }

  /** Reports a new person's click, install and user id. Returns the texts that identify the person. */
  async newPerson(userId = `user-${randomUUID()}`) {
    const person = { userId, deviceId: `device-${randomUUID()}`, claimToken: randomUUID() };
    const { deviceId, claimToken } = person;
    const at = this.api.clock.now - 10 * DAY_MS;
    const { slug } = this;
    await this.api.call('POST', '/clicks', {
      body: { customerAppId: this.app.appId, slug, claimToken, clickedAt: at },
    });
    const installed = await this.api.call('POST', '/sdk/install', {
      key: this.app.sdkKey,
      body: { deviceId, claimToken, firstOpenAt: at + 1 },
    });
    const identified = await this.identify(deviceId, userId);
    if (installed.status !== 200 || identified.status !== 200)
      throw new Error(`no new person: ${identified.text}`);
    return person;
  }

  async identify(deviceId: string, customerUserId: string) {
    return await this.api.call('POST', '/sdk/identify', {
      key: this.app.sdkKey,
      body: { deviceId, customerUserId, identifiedAt: this.api.clock.now - DAY_MS },
    });
  }

  async revenuecat(payload: Payload): Promise<Delivered> {
    return await this.api.call('POST', `/webhooks/revenuecat/${this.app.appId}`, {
      body: bodyOf(payload),
      headers: { authorization: REVENUECAT_TOKEN },
    });
  }

  async stripe(payload: Payload): Promise<Delivered> {
    const body = bodyOf(payload);
    return await this.api.call('POST', `/webhooks/stripe/${this.app.appId}`, {
      body,
      headers: PROOFS.stripe(body, stripeSecret, this.api.clock.now),
    });
  }

  /** When purchases occurred, epoch ms: after the installs, before refunds. */
  get paidAt(): number {
    return this.api.clock.now - 5 * DAY_MS;
  }

  async purchase(userId: string, transactionId = `tx-${randomUUID()}`, usd = 10): Promise<Delivered> {
    return await this.revenuecat(revenuecatEvent({ userId, usd, transactionId, occurredAt: this.paidAt }));
  }

  async refund(userId: string, transactionId: string, usd = 10): Promise<Delivered> {
    const occurredAt = this.api.clock.now - DAY_MS;
    return await this.revenuecat(revenuecatRefund({ userId, usd, transactionId, occurredAt }));
  }

  request(customerUserId: string): { appId: AppId; customerUserId: string; keyId: KeyId | null } {
    return { appId: this.appId, customerUserId, keyId: null };
  }

  async open(customerUserId: string): Promise<Erasure> {
    return await eraseUser(this.deps, this.request(customerUserId));
  }

  activities(sql = this.sql, settleMs = 0): EraseActivities {
    return createEraseActivities({
      sql,
      secretBox: this.secretBox,
      logger: pino({ level: 'silent' }),
      deleteHistory: async () => 'absent',
      settleMs,
    });
  }

  /** Runs the pages of an erasure until it is complete, and the evaluations that it has marked. */
  async complete({ id }: Pick<Erasure, 'id'>, sql = this.sql): Promise<void> {
    for (let page = 0; page < 100; page += 1) {
      if (!(await this.activities(sql).erasePage(id)).done) continue;
      for (let next: string | null = null; ;) {
        ({ next } = await this.processing.convertPage(next));
        if (next === null) return;
      }
    }
    throw new Error('the erasure did not end');
  }

  /** Runs the first search of an erasure, which then waits. */
  async searchOnce({ id }: Pick<Erasure, 'id'>, sql = this.sql): Promise<void> {
    for (let waitMs = 0; waitMs === 0;) ({ waitMs } = await this.activities(sql, MINUTE_MS).erasePage(id));
  }

  /** Erases a user, completely. */
  async erase(customerUserId: string): Promise<Erasure> {
    const erasure = await this.open(customerUserId);
    await this.complete(erasure);
    return erasure;
  }

  async totalOf(pseudonym: string): Promise<number> {
    const { cents } = await this.sql.one<{ cents: number }>`
      select coalesce(sum(amount_cents), 0)::bigint as cents from commissions where customer_user_id = ${pseudonym}`;
    return cents;
  }

  /** Expects that no table holds one of the texts, and that the books add up. */
  async expectErased(texts: readonly string[]): Promise<void> {
    await expectNothingLeft(this.sql, texts);
  }
}

export async function startErasing(): Promise<Erasing> {
  const { api, activities: processing } = await startProcessingApi();
  api.clock.now = Date.now();
  const app = await newApp(api);
  const affiliateId = await newAffiliate(api, app);
  const { slug } = await newLink(api, app, affiliateId);
  for (const [provider, secret] of [
    ['revenuecat', REVENUECAT_TOKEN],
    ['stripe', stripeSecret],
  ] as const) {
    await api.call('PUT', `/apps/${app.appId}/webhooks/${provider}/secret`, {
      key: app.key,
      body: { secret },
    });
  }
  return new Erasing({ api, processing, app, affiliateId, slug });
}
