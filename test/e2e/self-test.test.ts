import { createHash, randomUUID } from 'node:crypto';
import { createServer, request as startRequest } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { runAdmin } from '../../src/cli/admin.ts';
import { noSecretsKeys } from '../support/no-secrets-keys.ts';
import { createSecretBox } from '../../src/config/secret-box.ts';
import { recordEventFacts } from '../../src/db/events.ts';
import { newId } from '../../src/db/new-id.ts';
import { announceSelfTest } from '../../src/db/self-tests.ts';
import type { AppId, DeliveryId, EventId } from '../../src/domain/ids.ts';
import { DAY_MS, HOUR_MS } from '../../src/domain/time.ts';
import { PROVIDER_NAMES, providers } from '../../src/providers/index.ts';
import type { ProviderName } from '../../src/providers/index.ts';
import { runSelfTest } from '../../src/self-test/run-self-test.ts';
import { PROVIDER_STEPS } from '../../src/self-test/steps.ts';
import { Founder } from '../support/founder.ts';
import {
  bodyOf,
  fakeSecret,
  paddleTransaction,
  PAYLOADS,
  PROOFS,
  revenuecatEvent,
  stripeInvoicePaid,
} from '../support/provider-fixtures.ts';
import type { Payload } from '../support/provider-fixtures.ts';
import { createFounder, startTestService, TEST_SECRETS_KEY } from '../support/service.ts';
import type { TestService } from '../support/service.ts';
import { sideBySide } from '../support/side-by-side.ts';

interface Step {
  readonly step: string;
  readonly level: string;
  readonly ok: boolean;
  readonly detail: string;
  readonly fix: string | null;
}
interface Report {
  readonly ok: boolean;
  readonly checkedAt: number;
  readonly providers: readonly {
    readonly provider: ProviderName;
    readonly configured: boolean;
    readonly ok: boolean;
    readonly steps: readonly Step[];
  }[];
  readonly app: readonly Step[];
}

type ServiceAddress = Pick<TestService, 'sql' | 'ownUrl'>;

let service: TestService;

beforeAll(async () => {
  service = await startTestService();
});
afterAll(async () => {
  await service.close();
});

/** Sets a provider's secret for production, as a founder would. Returns the secret, given or generated. */
async function setSecret(founder: Founder, name: ProviderName, secret = fakeSecret(name)): Promise<string> {
  const path = `/apps/${founder.app.id}/webhooks/${name}/secret`;
  const given = { environment: 'production', ...(secret === null ? {} : { secret }) };
  const put = await founder.ok<{ secret?: string }>('PUT', path, given);
  return put.secret ?? secret ?? '';
}

/** Creates a founder with an app whose webhooks of these providers are set up. Requests bypass the public address. */
async function founderOf(
  names: readonly ProviderName[],
  at: ServiceAddress = service,
): Promise<{ founder: Founder; secrets: Map<ProviderName, string> }> {
  const { accountId, key } = await createFounder(at);
  const founder = new Founder(at.ownUrl ?? '', key, accountId);
  founder.sql = at.sql;
  founder.app = await founder.ok('POST', '/apps', { name: 'Test app', commissionRateBps: 2_500 });
  Object.assign(founder, await founder.newAffiliate());
  const secrets = new Map<ProviderName, string>();
  for (const name of names) secrets.set(name, await setSecret(founder, name));
  return { founder, secrets };
}

const selfTestOnce = (founder: Founder) => founder.ok<Report>('POST', `/apps/${founder.app.id}/self-test`);

/** A self-test waits for the outcome of a delivery for this long, ms. On a machine that stalls it fails, and is run again. */
const OUTCOME_WITHIN_MS = 2_500;
const ATTEMPTS = 3;

/** Runs `work` again, for `ATTEMPTS` times in all, while its result is not ok because it took long. */
async function unlessStalled<T>(work: () => Promise<T>, isOk: (result: T) => boolean): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    const begin = performance.now();
    const result = await work();
    const isSlow = performance.now() - begin >= OUTCOME_WITHIN_MS;
    if (isOk(result) || !isSlow || attempt === ATTEMPTS) return result;
  }
}

const selfTest = async (founder: Founder) =>
  await unlessStalled(
    async () => await selfTestOnce(founder),
    ({ ok }) => ok,
  );

function stepsOf(report: Report, name: ProviderName): Readonly<Record<string, Step>> {
  const steps = report.providers.find(({ provider }) => provider === name)?.steps ?? [];
  return Object.fromEntries(steps.map((step) => [step.step, step]));
}

const failedOf = (report: Report, name: ProviderName) =>
  Object.values(stepsOf(report, name)).flatMap(({ step, ok, level }) =>
    ok || level === 'advice' ? [] : step,
  );

const appStep = (report: Report, name: string) => report.app.find(({ step }) => step === name);

/** The steps of an app whose purchases have no codes. */
const ALL_STEPS_EXCEPT_TIME = PROVIDER_STEPS.filter(
  (step) => step !== 'in_time' && step !== 'code_read',
).toSorted();

/** Returns a production purchase of 10.00 USD in the provider's format. */
function saleOf(name: ProviderName, userId: string, occurredAt: number): Payload {
  return PAYLOADS[name].purchase({ userId, occurredAt, cents: 1_000, ref: randomUUID() }, false);
}

describe('a correctly configured app', () => {
  // @promise post-self-test
  test('a correctly configured app passes every step of every provider, with advice for a new app', async () => {
    const { founder } = await founderOf(PROVIDER_NAMES);
    const report = await selfTest(founder);
    for (const name of PROVIDER_NAMES) {
      expect(Object.keys(stepsOf(report, name)).toSorted()).toEqual(ALL_STEPS_EXCEPT_TIME);
      const wrong = Object.values(stepsOf(report, name)).filter(({ ok }) => !ok);
      expect(wrong).toEqual([expect.objectContaining({ step: 'real_deliveries', level: 'advice' })]);
      // Only webhooks of Paddle do not state their environment.
      const { detail } = stepsOf(report, name)['secret'] ?? {};
      expect(detail?.includes('environment')).toBe(name === 'paddle');
    }
    expect(appStep(report, 'exchange_rates')?.detail).toContain('no recent sale');
    expect(report.ok).toBe(true);
    expect(report.app.filter(({ ok }) => !ok).map(({ step, level }) => `${step}: ${level}`)).toEqual([
      'public_url: advice',
      'clicks: advice',
      'installs: advice',
      'identified: advice',
      'user_ids: advice',
    ]);
  });

  test('the self-test gives no more advice once users arrive and the provider has delivered', async () => {
    const { founder, secrets } = await founderOf(['revenuecat']);
    const userId = await founder.customer(founder.slug, Date.now() - DAY_MS);
    const sale = bodyOf(saleOf('revenuecat', userId, Date.now()));
    await founder.webhook('revenuecat', sale, { authorization: secrets.get('revenuecat') ?? '' });
    const report = await selfTest(founder);
    const open = [...report.app, ...Object.values(stepsOf(report, 'revenuecat'))].filter(({ ok }) => !ok);
    expect(open.map(({ step }) => step)).toEqual(['public_url']);
    expect(appStep(report, 'clicks')).toMatchObject({ detail: '1 click in the last 30 days.' });
  });

  // @promise setup-is-kept
  test('the set-up keeps what is done, whatever arrives afterwards, until a self-test finds something to fix', async () => {
    const { founder, secrets } = await founderOf(['revenuecat']);
    const setup = async () =>
      await founder.ok<{ providers: { lastAcceptedAt: number | null; lastDelivery: object | null }[] }>(
        'GET',
        `/apps/${founder.app.id}/setup`,
      );
    expect(await setup()).toMatchObject({ selfTestPassedAt: null, hasUser: false });
    const { checkedAt } = await selfTest(founder);
    expect(await setup()).toMatchObject({ selfTestPassedAt: checkedAt, hasUser: false });
    const userId = await founder.customer(founder.slug, Date.now() - DAY_MS);
    const sale = bodyOf(saleOf('revenuecat', userId, Date.now()));
    await founder.webhook('revenuecat', sale, { authorization: secrets.get('revenuecat') ?? '' });
    // Anybody can send this.
    await fetch(`${service.ownUrl ?? ''}/webhooks/revenuecat/${founder.app.id}`, {
      method: 'POST',
      body: '{}',
    });
    const state = await setup();
    expect(state).toMatchObject({ selfTestPassedAt: checkedAt, hasUser: true });
    expect(state.providers.filter(({ lastDelivery }) => lastDelivery !== null)).toEqual([
      expect.objectContaining({
        provider: 'revenuecat',
        lastAcceptedAt: expect.any(Number),
        lastDelivery: expect.objectContaining({ signatureValid: false }),
      }),
    ]);
    await setSecret(founder, 'revenuecat');
    expect(await setup()).toMatchObject({ selfTestPassedAt: null, hasUser: true });
    await selfTest(founder);
    expect(await setup()).toMatchObject({ selfTestPassedAt: expect.any(Number) });
    await service.sql`update webhook_secrets set expires_at = created_at, live_slot = null where app_id = ${founder.app.id}`;
    expect(await selfTestOnce(founder)).toMatchObject({ ok: false });
    expect(await setup()).toMatchObject({ selfTestPassedAt: null, hasUser: true });
  });

  test('the self-test tells whether codes of purchases arrive, and whose they are', async () => {
    const { founder, secrets } = await founderOf(['revenuecat']);
    const codes = async () => appStep(await selfTest(founder), 'purchase_codes');
    expect(await codes()).toBeUndefined();
    const settings = { purchaseCodes: 'when_unattributed' };
    await founder.ok('PATCH', `/apps/${founder.app.id}/settings`, settings);
    expect(await codes()).toMatchObject({
      ok: false,
      level: 'advice',
      detail: expect.stringContaining('yet'),
    });
    const extra = { environment: 'SANDBOX', offer_code: 'SPRING20' };
    const sale = bodyOf(revenuecatEvent({ userId: 'a-user', usd: 10, extra }));
    await founder.webhook('revenuecat', sale, { authorization: secrets.get('revenuecat') ?? '' });
    expect(await codes()).toMatchObject({
      ok: false,
      level: 'advice',
      detail: expect.stringContaining('SPRING20 (app_store). It belongs to no creator'),
    });
    const path = `/apps/${founder.app.id}/affiliates/${founder.affiliateId}/codes`;
    await founder.call('POST', path, { body: { namespace: 'app_store', value: 'Spring20' } });
    expect(await codes()).toMatchObject({ ok: true, detail: expect.stringContaining('SPRING20') });
  });

  // @promise self-test-code
  test('the test purchase of each provider has the latest code of a creator, which is read as that of the creator and binds nobody', async () => {
    const { founder } = await founderOf(PROVIDER_NAMES);
    const appId = founder.app.id;
    const register = async (body: object, affiliateId = founder.affiliateId) =>
      await founder.ok<{ id: string }>('POST', `/apps/${appId}/affiliates/${affiliateId}/codes`, body);
    await register({ namespace: 'play_store', value: 'Spring 20' });
    await register({ namespace: 'attribute', value: 'ADA' });
    await register({ namespace: 'stripe', value: 'SPRING20', externalId: 'promo_1' });
    expect(stepsOf(await selfTest(founder), 'stripe')).not.toHaveProperty('code_read');
    await founder.ok('PATCH', `/apps/${appId}/settings`, { purchaseCodes: 'when_unattributed' });
    const report = await selfTest(founder);
    const details = PROVIDER_NAMES.map((name) => [name, stepsOf(report, name)['code_read']?.detail ?? null]);
    const read = (code: string) =>
      `Its code ${code} was read as that of Test creator. In a sandbox it binds nobody.`;
    expect(Object.fromEntries(details)).toEqual({
      revenuecat: read('ADA (attribute)'),
      adapty: read('Spring 20 (play_store)'),
      superwall: read('Spring 20 (play_store)'),
      stripe: read('SPRING20 (stripe, promo_1)'),
      paddle: null,
    });
    expect(report.ok).toBe(true);
    // The codes of the self-test have not arrived: no purchase came with them.
    expect(appStep(report, 'purchase_codes')).toMatchObject({
      ok: false,
      level: 'advice',
      detail:
        'No code arrived yet. No purchase has come with a code of these namespaces yet: play_store, stripe, attribute.',
      fix: expect.stringContaining('tributary_code'),
    });
    const left = await service.sql.one`
      select (select count(*)::int from commissions where app_id = ${appId}) as commissions,
             (select count(*)::int from bindings where app_id = ${appId}) as bindings,
             (select count(*)::int from payments where app_id = ${appId} and environment <> 'sandbox') as payments`;
    expect(left).toEqual({ commissions: 0, bindings: 0, payments: 0 });
  });

  // @promise self-test-code
  test('the self-test advises on the code of a creator who is paused; those of a removed one have ended', async () => {
    const { founder } = await founderOf(['paddle']);
    const path = `/apps/${founder.app.id}/affiliates/${founder.affiliateId}`;
    await founder.ok('PATCH', `/apps/${founder.app.id}/settings`, { purchaseCodes: 'when_unattributed' });
    await founder.ok('POST', `${path}/codes`, {
      namespace: 'paddle',
      value: 'SPRING20',
      externalId: 'dsc_1',
    });
    await founder.ok('PATCH', path, { status: 'paused' });
    const report = await selfTest(founder);
    expect(stepsOf(report, 'paddle')['code_read']).toMatchObject({
      ok: false,
      level: 'advice',
      detail: expect.stringContaining('who is paused'),
    });
    expect(report.ok).toBe(true);
    await founder.ok('PATCH', path, { status: 'removed' });
    expect(stepsOf(await selfTest(founder), 'paddle')).not.toHaveProperty('code_read');
  });

  // @promise self-test-limits
  test('two simultaneous self-tests do not affect each other, and one account cannot start many', async () => {
    const { founder } = await founderOf(PROVIDER_NAMES);
    const path = `/apps/${founder.app.id}/self-test`;
    const responses = await unlessStalled(
      async () => await Promise.all(Array.from({ length: 8 }, () => founder.call<Report>('POST', path))),
      (all) => all.every(({ status, body }) => status !== 200 || body.ok),
    );
    const done = responses.filter(({ status }) => status === 200);
    expect(done.length).toBeGreaterThanOrEqual(2);
    expect(done.map(({ body }) => body.ok)).not.toContain(false);
    expect(responses.filter(({ status }) => status === 503).length).toBe(8 - done.length);
    expect(done.length).toBeLessThan(8);
    expect(await selfTest(founder)).toMatchObject({ ok: true });
  });
});

describe('no money', () => {
  // @promise self-test-no-money
  test.each(PROVIDER_NAMES)(
    '%s: a delivery announced as a self-test earns nothing, even a production sale to an attributed user',
    async (name) => {
      const { founder, secrets } = await founderOf([name]);
      const secret = secrets.get(name) ?? '';
      const userId = await founder.customer();
      const sell = async (isAnnounced: boolean) => {
        const body = bodyOf(saleOf(name, userId, Date.now() - DAY_MS));
        const bodySha256 = createHash('sha256').update(body).digest();
        const appId = founder.app.id as AppId;
        if (isAnnounced) await announceSelfTest(service.sql, { appId, provider: name, bodySha256 });
        return (await founder.webhook(name, body, PROOFS[name](body, secret))).body;
      };
      const tested = await sell(true);
      expect(tested.commissionId).toBeNull();
      const earned = await sell(false);
      expect(earned.commissionId).toMatch(/^com_/);
      const stored = await service.sql`
        select e.environment, e.kind, d.is_self_test as tested, p.environment as paid, p.base_cents as base
          from events e join deliveries d on d.id = e.delivery_id join payments p on p.event_id = e.id
         where e.app_id = ${founder.app.id} order by e.id`;
      expect(stored).toEqual([
        { environment: 'sandbox', kind: 'test', tested: true, paid: 'sandbox', base: null },
        { environment: 'production', kind: 'purchase', tested: false, paid: 'production', base: 1_000 },
      ]);
    },
  );

  test('an announcement applies to its app and provider only, and cannot be removed', async () => {
    const { founder, secrets } = await founderOf(['revenuecat']);
    const other = await founderOf(['revenuecat']);
    const userId = await founder.customer();
    const body = bodyOf(saleOf('revenuecat', userId, Date.now() - DAY_MS));
    const bodySha256 = createHash('sha256').update(body).digest();
    for (const [appId, provider] of [
      [other.founder.app.id, 'revenuecat'],
      [founder.app.id, 'adapty'],
    ] as const) {
      await announceSelfTest(service.sql, { appId: appId as AppId, provider, bodySha256 });
    }
    const authorization = secrets.get('revenuecat') ?? '';
    const sold = await founder.webhook('revenuecat', body, { authorization });
    expect(sold.body.commissionId).toMatch(/^com_/);
    await expect(
      service.sql`delete from self_test_requests where app_id = ${founder.app.id}`,
    ).rejects.toThrow(/cannot be changed or deleted/);
  });

  // @promise self-test-no-money
  test('a self-test creates no commission and no revenue, and changes no overview', async () => {
    const { founder } = await founderOf(PROVIDER_NAMES);
    await founder.customer();
    const before = await founder.ok('GET', `/apps/${founder.app.id}/overview`);
    expect(await selfTest(founder)).toMatchObject({ ok: true });
    expect(await founder.ok('GET', `/apps/${founder.app.id}/overview`)).toEqual(before);
    const left = await service.sql.one`
      select (select count(*)::int from commissions where app_id = ${founder.app.id}) as commissions,
             (select count(*)::int from revenue_entries where app_id = ${founder.app.id}) as revenue,
             (select count(*)::int from payments where app_id = ${founder.app.id} and environment <> 'sandbox') as payments,
             (select count(*)::int from events where app_id = ${founder.app.id} and likely_cause is not null) as unattributed`;
    expect(left).toEqual({ commissions: 0, revenue: 0, payments: 0, unattributed: 0 });
    expect(await founder.ok('GET', `/apps/${founder.app.id}/diagnostics/ledger`)).toMatchObject({ ok: true });
  });

  // @promise self-test-no-money
  test('the database refuses a production event for a self-test, and a production payment for a sandbox event', async () => {
    const { founder } = await founderOf(['paddle']);
    await selfTest(founder);
    const appId = founder.app.id as AppId;
    const own = await service.sql.one<{ id: DeliveryId; eventId: EventId; secretId: string }>`
      select d.id, d.event_id, d.secret_id from deliveries d join events e on e.delivery_id = d.id
       where d.app_id = ${appId}`;
    await expect(
      service.sql`update events set environment = 'production' where id = ${own.eventId}`,
    ).rejects.toThrow(/is of a self-test/);
    await expect(
      service.sql`update deliveries set is_self_test = false where id = ${own.id}`,
    ).rejects.toThrow(/decided when it arrived/);
    await expect(
      service.sql`update payments set environment = 'production' where event_id = ${own.eventId}`,
    ).rejects.toThrow(/is of production, but its event is not/);

    const body = bodyOf(paddleTransaction({ userId: 'user-1' }));
    const bodySha256 = createHash('sha256').update(body).digest();
    await announceSelfTest(service.sql, { appId, provider: 'paddle', bodySha256 });
    const parsed = providers.paddle.parse(body);
    const [deliveryId, eventId] = [newId('delivery'), newId('event')];
    await service.sql`
      insert into deliveries (id, app_id, provider, received_at, signature_valid, processing_status, secret_id, body_sha256,
                              event_id, completed_at)
      values (${deliveryId}, ${appId}, 'paddle', now(), true, 'processed', ${own.secretId}, ${bodySha256}, ${eventId}, now())`;
    if (parsed.outcome !== 'event') throw new Error('the body has an event');
    const facts = {
      deliveryId,
      eventId,
      appId,
      source: 'paddle',
      receivedAt: Date.now(),
      event: parsed.event,
    };
    await expect(recordEventFacts(service.sql, { ...facts, environment: 'production' })).rejects.toThrow(
      /is of a self-test/,
    );
    expect(await recordEventFacts(service.sql, { ...facts, environment: 'sandbox' })).toMatchObject({
      isDuplicate: false,
    });
  });
});

describe('the results for founders', () => {
  // @promise self-test-marked
  test('a self-test is marked in the deliveries, and is not a last delivery, a user or an unattributed event', async () => {
    const { founder, secrets } = await founderOf(['revenuecat']);
    const at = (path: string) => founder.ok<Record<string, never>>('GET', `/apps/${founder.app.id}/${path}`);
    expect(await selfTest(founder)).toMatchObject({ ok: true });
    const { items } = (await at('diagnostics/webhooks')) as unknown as {
      items: { selfTest: boolean; processingStatus: string; sourceEventId: string; eventId: string }[];
    };
    expect(items.map(({ selfTest: own, processingStatus }) => [own, processingStatus])).toEqual([
      [true, 'duplicate'],
      [true, 'processed'],
    ]);
    expect(items[1]?.sourceEventId).toMatch(/^tributary_self_test_/);
    expect(await at(`events/${items[1]?.eventId ?? ''}/explanation`)).toMatchObject({ source: 'revenuecat' });
    expect((await at('webhooks'))['items']).toContainEqual(
      expect.objectContaining({ provider: 'revenuecat', configured: true, lastDelivery: null }),
    );
    expect(await at('diagnostics/identity')).toMatchObject({ verdict: 'no_data', billingOnlySamples: [] });
    expect(await at('diagnostics/unattributed')).toMatchObject({ items: [] });

    const body = bodyOf(revenuecatEvent({ userId: 'real', environment: 'SANDBOX' }));
    await founder.webhook('revenuecat', body, { authorization: secrets.get('revenuecat') ?? '' });
    await founder.webhook('revenuecat', body, { authorization: 'of another sender' });
    await selfTest(founder);
    const listed = (await at('diagnostics/webhooks')) as unknown as { items: { selfTest: boolean }[] };
    expect(listed.items.filter(({ selfTest: own }) => !own)).toEqual([
      expect.objectContaining({ processingStatus: 'rejected' }),
      expect.objectContaining({ processingStatus: 'processed' }),
    ]);
    expect((await at('webhooks'))['items']).toContainEqual(
      expect.objectContaining({
        lastDelivery: expect.objectContaining({ processingStatus: 'rejected' }),
      }),
    );
    expect(stepsOf(await selfTest(founder), 'revenuecat')['real_deliveries']).toMatchObject({
      ok: false,
      level: 'advice',
      detail: expect.stringContaining('does not match, 1 in that hour'),
      fix: expect.stringContaining(`PUT /apps/${founder.app.id}/webhooks/revenuecat/secret`),
    });
  });

  test('a correct signature with an old time makes the self-test report the clock, not the secret', async () => {
    const { founder, secrets } = await founderOf(['stripe']);
    const body = Buffer.from('{}');
    const old = PROOFS.stripe(body, secrets.get('stripe') ?? '', Date.now() - HOUR_MS);
    expect((await founder.webhook('stripe', body, old)).status).toBe(401);
    expect(stepsOf(await selfTest(founder), 'stripe')['real_deliveries']).toMatchObject({
      ok: false,
      fix: expect.stringContaining("synchronize the server's clock"),
    });
  });

  test('the self-test fails without any provider, and an unused provider is not a failure', async () => {
    const { founder } = await founderOf([]);
    const report = await selfTest(founder);
    expect(report.ok).toBe(false);
    expect(appStep(report, 'providers')).toMatchObject({
      ok: false,
      level: 'error',
      fix: expect.stringContaining(`PUT /apps/${founder.app.id}/webhooks/`),
    });
    for (const { provider, configured, ok, steps } of report.providers) {
      expect({ configured, ok }).toEqual({ configured: false, ok: true });
      expect(steps).toEqual([expect.objectContaining({ step: 'secret', ok: false, level: 'advice' })]);
      expect(steps[0]?.fix).toContain(`PUT /apps/${founder.app.id}/webhooks/${provider}/secret`);
    }
    await setSecret(founder, 'stripe');
    expect(await selfTest(founder)).toMatchObject({ ok: true });
  });
});

describe('a secret', () => {
  // Inserted directly, since the API refuses such a secret.
  // @promise self-test-wrong-secret
  test.each([
    ['stripe', 'sk_test_an_api_key'],
    ['paddle', 'pdl_live_apikey_01'],
    ['superwall', '%%%'],
  ] as const)(
    'a secret of %s that cannot be a webhook secret is reported, and nothing is sent',
    async (name, secret) => {
      const { founder } = await founderOf([]);
      const sealed = createSecretBox([TEST_SECRETS_KEY]).encrypt(secret, `${founder.app.id}:${name}`);
      await service.sql`
      insert into webhook_secrets (id, app_id, provider, environment, ciphertext, encryption_key_id, live_slot)
      values (${newId('secret')}, ${founder.app.id}, ${name}, 'production', ${sealed.ciphertext}, ${sealed.encryptionKeyId}, 1)`;
      const report = await selfTest(founder);
      expect(report.ok).toBe(false);
      expect(Object.keys(stepsOf(report, name))).toEqual(['secret', 'real_deliveries']);
      expect(stepsOf(report, name)['secret']?.fix).toContain('not an API key');
    },
  );

  // @promise self-test-wrong-secret
  test('a secret that cannot be decrypted is reported, and nothing is sent', async () => {
    const { founder } = await founderOf([]);
    await service.sql`
      insert into webhook_secrets (id, app_id, provider, environment, ciphertext, encryption_key_id, live_slot)
      values (${newId('secret')}, ${founder.app.id}, 'stripe', 'production', ''::bytea, 'lost', 1)`;
    const report = await selfTest(founder);
    expect(failedOf(report, 'stripe')).toEqual(['secret']);
    expect(stepsOf(report, 'stripe')['secret']).toMatchObject({
      detail: expect.stringContaining('lacks the key lost'),
      fix: expect.stringContaining('SECRETS_KEY'),
    });
    const { sent } = await service.sql.one<{ sent: number }>`
      select count(*)::int as sent from self_test_requests where app_id = ${founder.app.id}`;
    expect(sent).toBe(0);
  });
});

type Handler = (incoming: IncomingMessage, body: Buffer, response: ServerResponse) => void;

describe('a proxy in front of the service', () => {
  let front: TestService;
  let behind = '';
  let handler: Handler;
  const seen: { headers: IncomingMessage['headers']; body: string }[] = [];
  const server = createServer((incoming, response) => {
    const parts: Buffer[] = [];
    incoming.on('data', (part: Buffer) => parts.push(part));
    incoming.on('end', () => {
      const body = Buffer.concat(parts);
      seen.push({ headers: incoming.headers, body: body.toString() });
      handler(incoming, body, response);
    });
  });

  /** Forwards a request with the given changes. */
  const forward =
    (change: {
      readonly body?: (body: Buffer) => Buffer;
      readonly without?: string;
      readonly status?: (status: number) => number;
    }): Handler =>
    (incoming, body, response) => {
      const sent = change.body?.(body) ?? body;
      const headers = { ...incoming.headers, 'content-length': String(sent.length) };
      if (change.without !== undefined) delete (headers as Record<string, unknown>)[change.without];
      const outgoing = startRequest(
        behind + (incoming.url ?? ''),
        { method: incoming.method, headers },
        (received) => {
          const status = received.statusCode ?? 502;
          response.writeHead(change.status?.(status) ?? status, {
            'content-type': received.headers['content-type'] ?? 'text/plain',
          });
          received.pipe(response);
        },
      );
      outgoing.end(sent);
    };

  beforeAll(async () => {
    await new Promise<void>((resolve) => {
      server.listen(0, '127.0.0.1', resolve);
    });
    const publicUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    front = await startTestService({ settings: { publicUrl } });
    behind = front.ownUrl ?? '';
  });
  afterEach(() => {
    seen.length = 0;
  });
  afterAll(async () => {
    await front.close();
    server.closeAllConnections();
    await new Promise((resolve) => {
      server.close(resolve);
    });
  });

  const names = ['revenuecat', 'stripe', 'paddle'] as const;
  const rest = ALL_STEPS_EXCEPT_TIME.filter((step) => step !== 'public_address');

  test('a proxy that changes nothing passes, and every request goes through it', async () => {
    const { founder } = await founderOf(names, front);
    handler = forward({});
    expect(await selfTest(founder)).toMatchObject({ ok: true });
    expect(seen).toHaveLength(4 * names.length);
  });

  // @promise self-test-proxy
  test.each<[string, Handler, RegExp, RegExp]>([
    [
      'a proxy that changes the body',
      forward({ body: (body) => Buffer.from(`${body.toString()}\n`) }),
      /Something changes the body/,
      /byte for byte/,
    ],
    [
      'a proxy that replaces refusals',
      forward({ status: (status) => (status === 401 ? 403 : status) }),
      /something replaces the service's response with a 403/,
      /pass responses through unchanged/,
    ],
    [
      'a redirect',
      (_, __, response) =>
        response.writeHead(301, { location: 'https://www.example.com/elsewhere?x=1' }).end(),
      /redirects \(301 to https:\/\/www\.example\.com\)/,
      /PUBLIC_URL/,
    ],
    [
      'a page of another server',
      (_, __, response) => response.writeHead(200).end('<html>hello</html>'),
      /Something other than this service responds .* with status 200/,
      /PUBLIC_URL/,
    ],
    [
      'a connection that is closed',
      (incoming) => incoming.socket.destroy(),
      /cannot be reached from the service itself/,
      /PUBLIC_URL/,
    ],
  ])(
    '%s is reported, the other steps run past it, and no secret is sent there',
    async (_, how, detail, fix) => {
      const { founder, secrets } = await founderOf(names, front);
      handler = how;
      const report = await selfTest(founder);
      expect(report.ok).toBe(false);
      for (const name of names) {
        expect(failedOf(report, name)).toEqual(['public_address']);
        const { public_address: address, ...others } = stepsOf(report, name);
        expect(address?.detail).toMatch(detail);
        expect(address?.fix).toMatch(fix);
        expect(Object.keys(others).toSorted()).toEqual(rest);
      }
      expect(seen.length).toBeGreaterThan(0);
      const everything = JSON.stringify(seen);
      expect(everything).not.toContain(secrets.get('revenuecat'));
      expect(everything).not.toMatch(/stripe-signature|paddle-signature|authorization/);
    },
  );

  // @promise self-test-proxy
  test.each([
    ['revenuecat', 'authorization'],
    ['stripe', 'stripe-signature'],
  ] as const)(
    'a proxy that removes the proof of %s is reported with the name of the header',
    async (name, header) => {
      const { founder } = await founderOf([name], front);
      handler = forward({ without: header });
      const report = await selfTest(founder);
      expect(failedOf(report, name)).toEqual(['accepted']);
      expect(stepsOf(report, name)['accepted']).toMatchObject({
        detail: expect.stringContaining(
          'its proof was refused (401). Sent directly to the service, it is accepted',
        ),
        fix: expect.stringContaining(header),
      });
    },
  );

  // @promise self-test-limits
  test('an address that never responds is waited for only once, and the self-test ends within its limit', async () => {
    const { founder } = await founderOf(names, front);
    handler = () => {};
    const startedAt = performance.now();
    const report = await selfTestOnce(founder);
    expect(performance.now() - startedAt).toBeLessThan(15_000);
    expect(names.map((name) => failedOf(report, name))).toEqual(names.map(() => ['public_address']));
    expect(seen).toHaveLength(1);
    server.closeAllConnections();
  });

  test('the providers that were not checked in time are reported', async () => {
    const { founder } = await founderOf(names, front);
    handler = forward({});
    const report = await runSelfTest(
      {
        sql: front.sql,
        secretBox: createSecretBox([TEST_SECRETS_KEY]),
        now: Date.now,
        publicUrl: front.url,
        ownUrl: front.ownUrl,
        timeLimitMs: 0,
      },
      founder.app.id as AppId,
    );
    expect(report.ok).toBe(false);
    expect(names.map((name) => failedOf(report as Report, name))).toEqual(names.map(() => ['in_time']));
  });
});

describe('a provider that has not delivered', () => {
  // Without time nothing is sent, so no request leaves for the address.
  const reportAt = async (publicUrl: string) => {
    const { founder } = await founderOf(['stripe']);
    const { sql, ownUrl } = service;
    const secretBox = createSecretBox([TEST_SECRETS_KEY]);
    const deps = { sql, secretBox, now: Date.now, publicUrl, ownUrl, timeLimitMs: 0 };
    const report = await runSelfTest(deps, founder.app.id as AppId);
    return stepsOf(report, 'stripe')['real_deliveries'];
  };

  test('a test event of the provider is advised at an address of the internet', async () => {
    expect(await reportAt('https://api.example.com')).toMatchObject({
      detail: 'Stripe has not delivered anything yet.',
      fix: expect.stringMatching(/^Send a test event from Stripe/),
    });
  });

  test.each(['http://127.0.0.1:3000', 'http://localhost:3000', 'http://192.168.1.5', 'http://[::1]:3000'])(
    'at %s, which no provider reaches, the advice is the command of the set-up and a public address',
    async (publicUrl) => {
      expect(await reportAt(publicUrl)).toMatchObject({
        ok: false,
        level: 'advice',
        detail: `Stripe has not delivered anything, and cannot reach ${publicUrl}.`,
        fix: expect.stringMatching(/the command in the last step of Set-up .* PUBLIC_URL=https:/),
      });
    },
  );
});

describe('a service that cannot process deliveries', () => {
  interface Idle {
    readonly name: string;
    readonly options: Parameters<typeof startTestService>[0];
    /** What the operator has to check. */
    readonly where: RegExp;
  }
  const rows: readonly Idle[] = [
    { name: 'no worker', options: { settings: { role: 'api' } }, where: /that a worker runs/ },
    {
      name: 'no Temporal server',
      options: { temporalAddress: '127.0.0.1:1' },
      where: /GET \/readyz reports as not available/,
    },
  ];
  const reportOf = sideBySide(rows, async ({ options }) => {
    const idle = await startTestService(options);
    try {
      const { founder } = await founderOf(['stripe'], idle);
      return await selfTestOnce(founder);
    } finally {
      await idle.close();
    }
  });

  // @promise self-test-pending
  test.each(rows)(
    '$name: the response is pending, and the fix names what the operator has to check',
    async (row) => {
      const report = await reportOf(row);
      expect(report.ok).toBe(false);
      expect(failedOf(report, 'stripe')).toEqual(['processed']);
      const { processed, read } = stepsOf(report, 'stripe');
      expect(processed?.detail).toContain('got a pending response, but it is not processed');
      expect(processed?.fix).toMatch(row.where);
      expect(read).toBeUndefined();
    },
  );
});

describe('the app as a whole', () => {
  test('users that never match and currencies without a rate are reported', async () => {
    const { founder, secrets } = await founderOf(['revenuecat']);
    await founder.customer();
    const authorization = secrets.get('revenuecat') ?? '';
    const inKroner = revenuecatEvent({
      userId: 'an-unknown-user',
      occurredAt: Date.now(),
      usd: 1,
      currency: 'SEK',
      localPrice: 10,
    });
    await founder.webhook('revenuecat', bodyOf(inKroner), { authorization });
    const named = await selfTest(founder);
    expect(appStep(named, 'user_ids')).toMatchObject({ ok: false, level: 'advice' });
    expect(appStep(named, 'exchange_rates')).toMatchObject({ ok: true });

    await setSecret(founder, 'stripe', 'whsec_plainly_fake');
    const yen = bodyOf(stripeInvoicePaid({ userId: 'an-unknown-user', amount: 500, currency: 'jpy' }));
    await founder.webhook('stripe', yen, PROOFS.stripe(yen, 'whsec_plainly_fake'));
    expect(appStep(await selfTest(founder), 'exchange_rates')).toMatchObject({
      ok: false,
      level: 'advice',
      detail: expect.stringContaining('JPY'),
      fix: expect.stringContaining('RATES_URL'),
    });
    const rateOf = (day: number) => service.sql`
      insert into exchange_rates (currency, day, units, worth_usd, source)
      values ('JPY', ${new Date(day).toISOString().slice(0, 10)}::date, 1, 0.0067, 'operator')`;
    await rateOf(Date.now() - 9 * DAY_MS);
    expect(appStep(await selfTest(founder), 'exchange_rates')).toMatchObject({ ok: false });
    await rateOf(Date.now() - 2 * DAY_MS);
    expect(appStep(await selfTest(founder), 'exchange_rates')).toMatchObject({ ok: true });
  });
});

describe('the command line', () => {
  const admin = async (
    args: readonly string[],
    over: { ownUrl?: string; publicUrl?: string } | null = {},
  ) => {
    let [out, err] = ['', ''];
    const { url, ownUrl } = service;
    const status = await runAdmin(['self-test', ...args], {
      openDatabase: async () => ({
        url: service.database.url,
        ownerUrl: service.database.url,
        close: async () => {},
      }),
      secretsKeys: noSecretsKeys,
      findService: async () =>
        over === null
          ? null
          : { publicUrl: url, ownUrl: ownUrl ?? '', secretsKeys: [TEST_SECRETS_KEY], ...over },
      stdout: (text) => void (out += text),
      stderr: (text) => void (err += text),
    });
    return { status, out, err };
  };

  // @promise self-test-command
  test('the command prints a table of steps or JSON, and its progress to standard error', async () => {
    const passing = async (...args: string[]) => {
      const { founder } = await founderOf(['stripe', 'paddle']);
      return await unlessStalled(
        async () => await admin(['--app', founder.app.id, ...args]),
        ({ status }) => status === 0,
      );
    };
    const [table, json] = await Promise.all([passing(), passing('--json')]);
    expect(table).toMatchObject({
      status: 0,
      err: expect.stringContaining('stripe accepted: ok\n'),
    });
    expect(table.out).toMatch(/│ paddle\s+│ no_money\s+│ ok\s+│/);
    expect(json.status).toBe(0);
    const { ok, providers: reports } = JSON.parse(json.out) as Report;
    expect({ ok, configured: reports.filter(({ configured }) => configured).length }).toEqual({
      ok: true,
      configured: 2,
    });
  });

  // @promise self-test-command
  test('the command exits with status 1 and prints the fix when a step fails', async () => {
    const { founder } = await founderOf([]);
    const { status, out } = await admin(['--app', founder.app.id]);
    expect(status).toBe(1);
    expect(out).toMatch(/│ app\s+│ providers\s+│ FIX\s+│ No billing provider is configured/);
  });

  test('the command reaches a service on another machine at its public address', async () => {
    const { founder } = await founderOf(['stripe']);
    expect(await admin(['--app', founder.app.id], { ownUrl: 'http://127.0.0.1:1' })).toMatchObject({
      status: 0,
    });
  });

  test.each([
    ['there is no service', null, /^The service is not running\. Start it with npm start/],
    [
      'no service responds',
      { ownUrl: 'http://127.0.0.1:1', publicUrl: 'http://127.0.0.1:1' },
      /^The service does not respond at http:\/\/127\.0\.0\.1:1\. Start it/,
    ],
  ])(
    'the command reports in one sentence that the service does not run when %s',
    async (_, over, sentence) => {
      const { founder } = await founderOf(['stripe']);
      const { status, out, err } = await admin(['--app', founder.app.id], over);
      expect({ status, out }).toEqual({ status: 1, out: '' });
      expect(err).toMatch(sentence);
      expect(err.trimEnd().split('\n')).toHaveLength(1);
    },
  );

  test('the command reports an app that does not exist', async () => {
    expect(await admin(['--app', newId('app')])).toMatchObject({
      status: 1,
      err: expect.stringMatching(/^There is no app /),
    });
  });
});
