import { randomBytes, randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Sql } from '../../src/db/sql.ts';
import { DAY_MS } from '../../src/domain/time.ts';
import { sendRequest } from './http-client.ts';
import type { ApiResponse, RequestOptions } from './http-client.ts';
import { bodyOf, revenuecatEvent, revenuecatRefund, signStripe } from './provider-fixtures.ts';
import { createFounder } from './service.ts';
import type { TestService } from './service.ts';

type Json = Record<string, never>;

/** A webhook whose delivery has no outcome by then is answered as pending, ms. A slow machine may need longer. */
const RESPOND_WITHIN_MS = 2_500;
/** How long the outcome of such a delivery is waited for, ms. */
const LATE_OUTCOME_MS = 15_000;

/**
 * A founder with an app, an affiliate and a link. Uses a running service over HTTP only, except for the outcomes of deliveries
 * that a slow machine has answered as pending: with `sql`, they replace the response.
 */
export class Founder {
  sql: Sql | null = null;
  readonly revenuecatToken = `Bearer rc-${randomBytes(8).toString('hex')}`;
  readonly stripeSecret = `whsec_test_${randomBytes(8).toString('hex')}`;
  url: string;
  readonly key: string;
  readonly accountId: string;
  app = { id: '', sdkKey: '' };
  affiliateId = '';
  slug = '';

  constructor(url: string, key: string, accountId: string) {
    this.url = url;
    this.key = key;
    this.accountId = accountId;
  }

  /** Sends a request with the account key, unless `options.key` is another key or null. */
  async call<T = Json>(method: string, path: string, options: RequestOptions = {}): Promise<ApiResponse<T>> {
    return await sendRequest<T>(this.url, method, path, { key: this.key, ...options });
  }

  /** Sends a request and returns its body. Throws when the status is 300 or higher. */
  async ok<T = Json>(method: string, path: string, body?: unknown, key?: string | null): Promise<T> {
    const response = await this.call<T>(method, path, { body, ...(key === undefined ? {} : { key }) });
    if (response.status >= 300) throw new Error(`${method} ${path}: ${response.status} ${response.text}`);
    return response.body;
  }

  async newAffiliate(name = 'Test creator'): Promise<{ affiliateId: string; slug: string }> {
    const affiliate = await this.ok<{ id: string }>('POST', `/apps/${this.app.id}/affiliates`, { name });
    const slug = `s-${randomBytes(5).toString('hex')}`;
    await this.ok('POST', `/apps/${this.app.id}/links`, {
      affiliateId: affiliate.id,
      slug,
      destinationUrl: 'https://example.com/app',
    });
    return { affiliateId: affiliate.id, slug };
  }

  /** Records a click and an install. Returns the id of the device, which is attributed to the affiliate of the link. */
  async install(slug = this.slug, at = Date.now()): Promise<string> {
    const deviceId = `device-${randomUUID()}`;
    const claimToken = randomUUID();
    await this.ok('POST', '/clicks', { customerAppId: this.app.id, slug, claimToken, clickedAt: at }, null);
    await this.ok('POST', '/sdk/install', { deviceId, claimToken, firstOpenAt: at + 1 }, this.app.sdkKey);
    return deviceId;
  }

  async identify(deviceId: string, customerUserId: string): Promise<void> {
    await this.ok(
      'POST',
      '/sdk/identify',
      { deviceId, customerUserId, identifiedAt: Date.now() },
      this.app.sdkKey,
    );
  }

  /** Creates a user whose purchases earn for the affiliate of the link. Returns the user id. */
  async customer(slug = this.slug, at = Date.now() - 60 * DAY_MS): Promise<string> {
    const userId = `user-${randomUUID()}`;
    await this.identify(await this.install(slug, at), userId);
    return userId;
  }

  async revenuecat<T = WebhookResponse>(body: Buffer | string): Promise<ApiResponse<T>> {
    return await this.webhook<T>('revenuecat', body, { authorization: this.revenuecatToken });
  }

  async stripe<T = WebhookResponse>(
    body: Buffer | string,
    secret = this.stripeSecret,
  ): Promise<ApiResponse<T>> {
    const signature = signStripe(body, secret, Math.floor(Date.now() / 1000));
    return await this.webhook<T>('stripe', body, { 'stripe-signature': signature });
  }

  /** Delivers a RevenueCat purchase of `usd` dollars, by default 40 days ago, so that its commission is due. */
  async purchase(
    userId: string,
    usd: number,
    over: { occurredAt?: number; transactionId?: string; eventId?: string } = {},
  ): Promise<ApiResponse<WebhookResponse>> {
    return await this.revenuecat(
      bodyOf(revenuecatEvent({ userId, usd, occurredAt: Date.now() - 40 * DAY_MS, ...over })),
    );
  }

  async refund(userId: string, usd: number, transactionId: string): Promise<ApiResponse<WebhookResponse>> {
    return await this.revenuecat(
      bodyOf(revenuecatRefund({ userId, usd, transactionId, occurredAt: Date.now() - DAY_MS })),
    );
  }

  async exportCsv(affiliateId = this.affiliateId, options: RequestOptions = {}): Promise<ApiResponse> {
    return await this.call('POST', `/apps/${this.app.id}/affiliates/${affiliateId}/payouts/export`, options);
  }

  /**
   * Posts a webhook of a provider with the headers that prove it. A response that is pending because its time was up is
   * replaced by the one with the outcome, unless the delivery is stuck or has none within `LATE_OUTCOME_MS`. A response that is
   * pending before its time stays.
   */
  async webhook<T = WebhookResponse>(
    provider: string,
    body: Buffer | string,
    headers: Record<string, string>,
  ): Promise<ApiResponse<T>> {
    const sentAt = performance.now();
    const path = `/webhooks/${provider}/${this.app.id}`;
    const response = await this.call<WebhookResponse>('POST', path, { key: null, body, headers });
    const isLate = performance.now() - sentAt >= RESPOND_WITHIN_MS;
    const { pending, ...rest } = response.body ?? {};
    if (pending !== true || !isLate || this.sql === null) return response as ApiResponse<T>;
    const outcome = await lateOutcome(this.sql, rest.eventId ?? '');
    if (outcome === null) return response as ApiResponse<T>;
    const answer = outcome.isDuplicate
      ? { duplicate: true }
      : { ...rest, commissionId: outcome.commissionId };
    return { ...response, text: JSON.stringify(answer), body: answer as T };
  }
}

interface LateOutcome {
  readonly commissionId: string | null;
  readonly isDuplicate: boolean;
}

/** Waits for the outcome of a delivery. Returns null when it is stuck, and when there is none in time. */
async function lateOutcome(sql: Sql, eventId: string): Promise<LateOutcome | null> {
  const giveUpAt = Date.now() + LATE_OUTCOME_MS;
  while (Date.now() < giveUpAt) {
    const row = await sql.maybe<LateOutcome & { readonly isDone: boolean; readonly isStuck: boolean }>`
      select commission_id, processing_status = 'duplicate' as is_duplicate, completed_at is not null as is_done,
             completed_at is null and last_error is not null as is_stuck
        from deliveries where event_id = ${eventId}`;
    if (row === undefined || row.isStuck) return null;
    if (row.isDone) return row;
    await sleep(25);
  }
  return null;
}

export interface WebhookResponse {
  readonly eventId?: string;
  readonly commissionId?: string | null;
  readonly duplicate?: true;
  readonly pending?: true;
}

/** Creates a founder with an app that accepts webhooks of RevenueCat and Stripe, an affiliate and a link. */
export async function setUpFounder(
  service: Pick<TestService, 'sql' | 'url'>,
  settings: object = {},
): Promise<Founder> {
  const { accountId, key } = await createFounder(service);
  const founder = new Founder(service.url, key, accountId);
  founder.sql = service.sql;
  return await setUpApp(founder, settings);
}

/** Creates the app of a founder with its webhooks, an affiliate and a link. */
export async function setUpApp(founder: Founder, settings: object = {}): Promise<Founder> {
  founder.app = await founder.ok('POST', '/apps', { name: 'Test app', ...settings });
  await founder.ok('PUT', `/apps/${founder.app.id}/webhooks/revenuecat/secret`, {
    secret: founder.revenuecatToken,
  });
  await founder.ok('PUT', `/apps/${founder.app.id}/webhooks/stripe/secret`, { secret: founder.stripeSecret });
  Object.assign(founder, await founder.newAffiliate());
  return founder;
}
