import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { runAdmin } from '../../src/cli/admin.ts';
import { noSecretsKeys } from '../support/no-secrets-keys.ts';
import type { LikelyCause } from '../../src/domain/likely-causes.ts';
import { CAUSE_EXPLANATIONS, LIKELY_CAUSES } from '../../src/domain/likely-causes.ts';
import { DAY_MS } from '../../src/domain/time.ts';
import { eventually } from '../support/eventually.ts';
import { setUpFounder } from '../support/founder.ts';
import type { Founder, WebhookResponse } from '../support/founder.ts';
import { runOn } from '../support/postgres-admin.ts';
import { earnByPolicy } from '../support/policies.ts';
import { bodyOf, revenuecatEvent, stripeInvoicePaid } from '../support/provider-fixtures.ts';
import { startTestService } from '../support/service.ts';
import type { TestService } from '../support/service.ts';

let service: TestService;

beforeAll(async () => {
  service = await startTestService({ settings: { relay: { overdueMs: 300, pauseMs: 200 } } });
});
afterAll(async () => {
  await service.close();
});

interface Step {
  readonly step: string;
  readonly decision: string;
  readonly explanation: string;
  readonly facts: Record<string, unknown>;
}

/** The fix that the explanation of the cause states. */
type Repair =
  /** The event earns after this fix. */
  | { readonly thisOneEarns: () => Promise<unknown> }
  /** The event never earns, and the payment that this function makes earns. */
  | { readonly nextOneEarns: () => Promise<WebhookResponse> };

interface Produced {
  readonly eventId: string | undefined;
  readonly repair: Repair;
}

interface Scenario {
  /** Creates one payment with the cause, over HTTP only, in an app without other events. */
  readonly produce: (founder: Founder) => Promise<Produced>;
  /** What the explanation of the cause has to say. */
  readonly advice: RegExp;
  /** Parts of the last two steps of the explanation of the event. */
  readonly attribute: { readonly decision?: string; readonly explanation?: RegExp; readonly facts?: object };
  readonly writeCommission?: { readonly facts: object };
}

const YESTERDAY = () => Date.now() - DAY_MS;
const newUser = () => `user-${randomUUID()}`;

async function pay(founder: Founder, userId: string, occurredAt = YESTERDAY()): Promise<WebhookResponse> {
  return (await founder.purchase(userId, 10, { occurredAt })).body;
}

const patchAffiliate = (founder: Founder, body: object) =>
  founder.ok('PATCH', `/apps/${founder.app.id}/affiliates/${founder.affiliateId}`, body);

/** Creates a payment of an affiliate that is not active. */
function inactive(status: 'paused' | 'removed'): Scenario['produce'] {
  return async (founder) => {
    const user = await founder.customer();
    await patchAffiliate(founder, { status });
    const { eventId } = await pay(founder, user);
    const nextOneEarns = async () => {
      await patchAffiliate(founder, { status: 'active' });
      return await pay(founder, user);
    };
    return { eventId, repair: { nextOneEarns } };
  };
}

/** Imports the rate of the euro on a day by `tributary rates import`. */
async function importEuro(day: string): Promise<void> {
  const folder = await mkdtemp(path.join(tmpdir(), 'tributary-causes-'));
  const file = path.join(folder, 'rates.csv');
  await writeFile(file, `date,currency,usd_rate\n${day},EUR,1.1`);
  const status = await runAdmin(['rates', 'import', file], {
    openDatabase: async () => ({
      url: service.database.url,
      ownerUrl: service.database.url,
      close: async () => {},
    }),
    secretsKeys: noSecretsKeys,
    findService: async () => null,
    stdout: () => {},
    stderr: () => {},
  });
  await rm(folder, { recursive: true });
  expect(status).toBe(0);
}

const fixCommissions = () => runOn(service.database.url, 'drop function if exists test_breaks() cascade');
afterEach(fixCommissions);

const CREATOR = /The device came through Test creator/;

/** Each cause has a scenario. */
const SCENARIOS: Readonly<Record<LikelyCause, Scenario>> = {
  missing_user_id: {
    produce: async (founder) => {
      const user = await founder.customer();
      const invoice = (userId: string | null) =>
        founder.stripe(bodyOf(stripeInvoicePaid({ userId, amount: 1_000, occurredAt: YESTERDAY() })));
      const { body } = await invoice(null);
      return { eventId: body.eventId, repair: { nextOneEarns: async () => (await invoice(user)).body } };
    },
    advice: /contains no user id\. Set the app's own user id at the billing provider.*setupHint/,
    attribute: { facts: { users: [] } },
  },
  anonymous_user_id: {
    produce: async (founder) => {
      const user = await founder.customer();
      const { eventId } = await pay(founder, '$RCAnonymousID:0123456789abcdef0123456789abcdef');
      return { eventId, repair: { nextOneEarns: () => pay(founder, user) } };
    },
    advice: /Log the user in to the SDK with the app's own user id.*setupHint/,
    attribute: { facts: { users: [] } },
  },
  user_never_identified: {
    produce: async (founder) => {
      const user = newUser();
      const device = await founder.install(founder.slug, YESTERDAY() - DAY_MS);
      const { eventId } = await pay(founder, user);
      return { eventId, repair: { thisOneEarns: () => founder.identify(device, user) } };
    },
    advice: /Call identify\(userId\) with exactly the string .* evaluated again/,
    attribute: { facts: { users: [{ identified: false, similarUserIds: [], attribution: null }] } },
  },
  user_id_mismatch: {
    produce: async (founder) => {
      const device = await founder.install(founder.slug, YESTERDAY() - DAY_MS);
      await founder.identify(device, 'Hazel@Example.com');
      const { eventId } = await pay(founder, 'auth0|hazel@example.com');
      const thisOneEarns = () => founder.identify(device, 'auth0|hazel@example.com');
      return { eventId, repair: { thisOneEarns } };
    },
    advice:
      /different spelling \(case, spaces or a prefix\)\. Pass the same string to identify\(userId\) and to the billing provider/,
    attribute: {
      facts: {
        users: [{ customerUserId: 'auth0|hazel@example.com', similarUserIds: ['Hazel@Example.com'] }],
      },
    },
  },
  test_key_only: {
    produce: async (founder) => {
      const user = newUser();
      const { sdkKey: testKey } = await founder.ok<{ sdkKey: string }>(
        'POST',
        `/apps/${founder.app.id}/sdk-key/rotate`,
        { kind: 'test' },
      );
      const install = {
        deviceId: `device-${randomUUID()}`,
        affiliateCode: founder.slug,
        codeEnteredAt: YESTERDAY() - DAY_MS,
        firstOpenAt: YESTERDAY() - DAY_MS,
      };
      const identify = { deviceId: install.deviceId, customerUserId: user, identifiedAt: YESTERDAY() };
      const report = async (key: string) => {
        await founder.ok('POST', '/sdk/install', install, key);
        await founder.ok('POST', '/sdk/identify', identify, key);
      };
      await report(testKey);
      const { eventId } = await pay(founder, user);
      return { eventId, repair: { thisOneEarns: () => report(founder.app.sdkKey) } };
    },
    advice: /test SDK key.*never earns.*live key.*evaluated again/,
    attribute: {
      facts: {
        users: [{ identified: false, attribution: null, testAttribution: { affiliateName: 'Test creator' } }],
      },
    },
  },
  user_not_attributed: {
    produce: async (founder) => {
      const [user, deviceId] = [newUser(), `device-${randomUUID()}`];
      const { sdkKey } = founder.app;
      const identify = { deviceId, customerUserId: user, identifiedAt: Date.now() };
      await founder.call('POST', '/sdk/identify', { body: identify, key: sdkKey });
      const { eventId } = await pay(founder, user);
      const at = YESTERDAY() - DAY_MS;
      const install = { deviceId, affiliateCode: founder.slug, codeEnteredAt: at, firstOpenAt: at };
      return { eventId, repair: { thisOneEarns: () => founder.ok('POST', '/sdk/install', install, sdkKey) } };
    },
    advice: /came through no creator\. No action is needed, unless .*install.* claim token or a code/,
    attribute: { facts: { users: [{ identified: true, attribution: null }] } },
  },
  outside_attribution_window: {
    produce: async (founder) => {
      const [user, next] = [newUser(), newUser()];
      const clickedAt = Date.now() - 60 * DAY_MS;
      const devices = [
        await founder.install(founder.slug, clickedAt),
        await founder.install(founder.slug, clickedAt),
      ] as const;
      const occurredAt = Date.now() - 31 * DAY_MS;
      const { eventId } = await pay(founder, user, occurredAt);
      await founder.identify(devices[0], user);
      const nextOneEarns = async () => {
        await founder.identify(devices[1], next);
        return await pay(founder, next, occurredAt);
      };
      return { eventId, repair: { nextOneEarns } };
    },
    advice:
      /older than the creator's click or than .*\. Call identify\(userId\) before the purchase, or raise the attribution window in the app's settings/,
    attribute: {
      facts: {
        paidAt: expect.any(Number),
        attributionWindowDays: 30,
        users: [{ attribution: { boundAt: expect.any(Number), touchedAt: expect.any(Number) } }],
      },
    },
  },
  affiliate_paused: {
    produce: inactive('paused'),
    advice: /creator was paused .*\. Set the creator's status to active: later payments then earn/,
    attribute: { decision: 'attributed', explanation: CREATOR },
  },
  affiliate_removed: {
    produce: inactive('removed'),
    advice: /creator was removed .*\. Set the creator's status to active: later payments then earn/,
    attribute: { decision: 'attributed', explanation: CREATOR },
  },
  rate_zero: {
    produce: async (founder) => {
      const user = await founder.customer();
      await patchAffiliate(founder, { defaultCommissionRateBps: 0 });
      const { eventId } = await pay(founder, user);
      const nextOneEarns = async () => {
        await patchAffiliate(founder, { defaultCommissionRateBps: 1_000 });
        return await pay(founder, user);
      };
      return { eventId, repair: { nextOneEarns } };
    },
    advice: /Raise the creator's commission rate, or the app's if the creator has none: later payments/,
    attribute: { decision: 'attributed', explanation: CREATOR },
    writeCommission: { facts: { price: { amountCents: 1_000 }, commissions: [] } },
  },
  no_policy_rule: {
    produce: async (founder) => {
      const user = await founder.customer();
      await earnByPolicy(founder, service.sql, {
        base: 'gross',
        rules: [{ when: { productIds: ['another'] }, percentBps: 5_000 }],
      });
      const { eventId } = await pay(founder, user);
      const nextOneEarns = async () => {
        await earnByPolicy(founder, service.sql, { base: 'gross', rules: [{ percentBps: 1_000 }] });
        return await pay(founder, user);
      };
      return { eventId, repair: { nextOneEarns } };
    },
    advice:
      /Publish a version of the policy with a rule without conditions at its end: payments after its date/,
    attribute: { decision: 'attributed', explanation: CREATOR },
    writeCommission: { facts: { price: { amountCents: 1_000 }, commissions: [] } },
  },
  ambiguous_code: {
    produce: async (founder) => {
      const other = await founder.newAffiliate('Other');
      await founder.ok('PATCH', `/apps/${founder.app.id}/settings`, { purchaseCodes: 'when_unattributed' });
      for (const [affiliateId, namespace] of [
        [founder.affiliateId, 'attribute'],
        [other.affiliateId, 'app_store'],
      ])
        await founder.ok('POST', `/apps/${founder.app.id}/affiliates/${affiliateId}/codes`, {
          namespace,
          value: 'SPRING',
        });
      const user = newUser();
      const occurredAt = Date.now() + 1_000;
      const extra = { offer_code: 'SPRING', subscriber_attributes: { tributary_code: { value: 'spring' } } };
      const { body } = await founder.revenuecat(
        bodyOf(revenuecatEvent({ userId: user, usd: 10, occurredAt, extra })),
      );
      const thisOneEarns = async () => {
        const from = Date.now() - DAY_MS;
        await founder.ok('POST', `/apps/${founder.app.id}/manual-attributions`, {
          customerUserId: user,
          affiliateId: founder.affiliateId,
          reason: 'The first of both',
          from,
          expectedCents: 200,
        });
      };
      return { eventId: body.eventId, repair: { thisOneEarns } };
    },
    advice: /Give the customer to the right one: Attribute in the console/,
    attribute: {
      explanation:
        /came with the code SPRING of Other\. The purchase came with the code spring of Test creator\.$/,
      facts: { users: [{ identified: false }] },
    },
  },
  missing_exchange_rate: {
    produce: async (founder) => {
      const occurredAt = Date.UTC(2026, 1, 11, 12);
      const userId = await founder.customer();
      const invoice = stripeInvoicePaid({ userId, amount: 1_000, currency: 'eur', occurredAt });
      const { body } = await founder.stripe(bodyOf(invoice));
      return { eventId: body.eventId, repair: { thisOneEarns: () => importEuro('2026-02-11') } };
    },
    advice:
      /operator to import exchange rates \(tributary rates import\): the payment is then evaluated automatically/,
    attribute: { facts: { users: [{ identified: true, attribution: { affiliateName: 'Test creator' } }] } },
    writeCommission: { facts: { price: { currency: 'EUR', amountMinor: 1_000, amountCents: null } } },
  },
  price_unknown: {
    produce: async (founder) => {
      const userId = await founder.customer();
      const payment = { userId, transactionId: `7${Date.now()}`, occurredAt: YESTERDAY() };
      const unpriced = revenuecatEvent({ ...payment, usd: null, localPrice: null });
      const { body } = await founder.revenuecat(bodyOf(unpriced));
      const nextOneEarns = async () =>
        (await founder.revenuecat(bodyOf(revenuecatEvent({ ...payment, usd: 10 })))).body;
      return { eventId: body.eventId, repair: { nextOneEarns } };
    },
    advice:
      /Look up the amount at the provider and settle it .* manually\. If the provider reports the payment again with an amount, it is evaluated/,
    attribute: {},
    writeCommission: { facts: { price: { amountMinor: null, amountCents: null } } },
  },
  processing: {
    produce: async (founder) => {
      const user = await founder.customer();
      await runOn(
        service.database.url,
        `create function test_breaks() returns trigger language plpgsql as $$ begin raise exception 'broken'; end $$;
         create trigger test_breaks before insert on commissions for each row execute function test_breaks();`,
      );
      const { eventId } = await pay(founder, user);
      return { eventId, repair: { thisOneEarns: fixCommissions } };
    },
    advice:
      /No action is needed: check again in a moment\. .* the page Deliveries of the console shows the error/,
    attribute: { facts: { users: [{ identified: true, attribution: { decided: false } }] } },
  },
};

describe('likely causes', () => {
  // @promise unattributed-likely-cause, event-unattributed, inactive-at-evaluation
  // @promise cause-true-and-cured, explanation-cause
  test.each(LIKELY_CAUSES)(
    'a payment with the cause %s is listed and explained, and the stated fix makes a payment earn',
    async (cause) => {
      const scenario = SCENARIOS[cause];
      const founder = await setUpFounder(service);
      const ofApp = `/apps/${founder.app.id}`;
      const { eventId, repair } = await scenario.produce(founder);
      const explanation = CAUSE_EXPLANATIONS[cause];

      const listed = async () =>
        (await founder.ok<{ items: Record<string, unknown>[] }>('GET', `${ofApp}/diagnostics/unattributed`))
          .items;
      await eventually(`the cause is ${cause}`, async () => (await listed())[0]?.['likelyCause'] === cause);
      expect(await listed()).toEqual([expect.objectContaining({ eventId, likelyCause: cause, explanation })]);
      expect(explanation).toMatch(scenario.advice);

      const { steps } = await founder.ok<{ steps: Step[] }>('GET', `${ofApp}/events/${eventId}/explanation`);
      const [attribute, writeCommission] = steps.slice(-2);
      expect([attribute?.step, writeCommission?.step]).toEqual(['attribute', 'write_commission']);
      expect(writeCommission).toMatchObject({ decision: cause, explanation, ...scenario.writeCommission });
      const { decision = cause, explanation: sentence, facts = {} } = scenario.attribute;
      expect(attribute).toMatchObject({ decision, facts });
      if (sentence === undefined) expect(attribute?.explanation).toBe(explanation);
      else expect(attribute?.explanation).toMatch(sentence);

      const earned = async () =>
        (await founder.ok<{ items: Record<string, unknown>[] }>('GET', `${ofApp}/commissions`)).items;
      expect(await earned()).toEqual([]);
      if ('thisOneEarns' in repair) {
        await repair.thisOneEarns();
        await eventually('the payment earns', async () => (await earned()).length === 1);
        expect(await earned()).toMatchObject([{ eventId, kind: 'earning' }]);
        expect(await listed()).toEqual([]);
      } else {
        const { eventId: next, commissionId } = await repair.nextOneEarns();
        expect(await earned()).toMatchObject([{ id: commissionId, eventId: next }]);
        expect(await listed()).toMatchObject([{ eventId, likelyCause: cause }]);
      }
    },
  );
});

// @promise longer-window
test('a longer window extends the reach of a late identify, but never to a time before the click', async () => {
  const founder = await setUpFounder(service);
  const clickedAt = Date.now() - 60 * DAY_MS;
  const user = newUser();
  const device = await founder.install(founder.slug, clickedAt);
  const reached = await pay(founder, user, clickedAt);
  const before = await pay(founder, user, clickedAt - 1);
  await founder.ok('PATCH', `/apps/${founder.app.id}/settings`, { attributionWindowDays: 90 });
  await founder.identify(device, user);
  const causes = async () =>
    await service.sql<{ id: string; cause: string }>`
      select id, likely_cause as cause from events where app_id = ${founder.app.id} and likely_cause is not null`;
  await eventually('both payments are re-evaluated', async () =>
    (await causes()).every(({ cause }) => cause !== 'user_never_identified'),
  );
  expect(await causes()).toEqual([{ id: before.eventId, cause: 'outside_attribution_window' }]);
  expect(reached.eventId).not.toBe(before.eventId);
});
