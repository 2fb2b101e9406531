import { randomBytes, randomUUID } from 'node:crypto';
import { DAY_MS } from '../../src/domain/time.ts';
import { sendRequest } from './http-client.ts';
import type { ApiResponse, RequestOptions } from './http-client.ts';
import { bodyOf, revenuecatEvent, revenuecatRefund, signStripe } from './provider-fixtures.ts';
import { createFounder } from './service.ts';
import type { TestService } from './service.ts';

type Json = Record<string, never>;

/** A founder with an app, an affiliate and a link. Uses a running service over HTTP only. */
export class Founder {
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

  /** Posts a webhook of a provider with the headers that prove it. */
  async webhook<T = WebhookResponse>(
    provider: string,
    body: Buffer | string,
    headers: Record<string, string>,
  ): Promise<ApiResponse<T>> {
    return await this.call<T>('POST', `/webhooks/${provider}/${this.app.id}`, { key: null, body, headers });
  }
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
  return await setUpApp(new Founder(service.url, key, accountId), settings);
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
