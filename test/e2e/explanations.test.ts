import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { DAY_MS } from '../../src/domain/time.ts';
import { setUpApp, setUpFounder } from '../support/founder.ts';
import type { Founder } from '../support/founder.ts';
import {
  bodyOf,
  revenuecatEvent,
  revenuecatRefund,
  stripeCharge,
  stripeInvoicePaid,
  stripeInvoicePaymentPaid,
  stripeRefund,
} from '../../tools/provider-payloads.ts';
import { startTestService } from '../support/service.ts';
import type { TestService } from '../support/service.ts';

let service: TestService;
let founder: Founder;

beforeAll(async () => {
  service = await startTestService();
  founder = await setUpFounder(service, { commissionRateBps: 2000 });
});
afterAll(async () => {
  await service.close();
});

interface Step {
  readonly step: string;
  readonly decision: string;
  readonly explanation: string;
  readonly facts: Record<string, never>;
}

async function explain(eventId: string | undefined): Promise<Step[]> {
  const { steps } = await founder.ok<{ steps: Step[] }>(
    'GET',
    `/apps/${founder.app.id}/events/${eventId ?? ''}/explanation`,
  );
  return steps;
}

interface FeedEvent {
  readonly eventId: string;
  readonly outcome: string;
  readonly explanation: string | null;
  readonly commissionCents: number | null;
  readonly receivedAt: number;
}

async function feed(of: Founder, query: Record<string, string> = {}): Promise<FeedEvent[]> {
  const events: FeedEvent[] = [];
  let cursor: string | null = null;
  do {
    const search: string = new URLSearchParams({
      ...query,
      ...(cursor === null ? {} : { cursor }),
    }).toString();
    const page: { items: FeedEvent[]; nextCursor: string | null } = await of.ok(
      'GET',
      `/apps/${of.app.id}/events?${search}`,
    );
    events.push(...page.items);
    cursor = page.nextCursor;
  } while (cursor !== null);
  return events;
}

const decisions = (steps: readonly Step[]) => steps.map(({ step, decision }) => `${step}: ${decision}`);

// @promise search
test('the search finds the events of a Stripe payment by its invoice, payment intent and charge', async () => {
  const [invoiceId, paymentIntentId, chargeId] = ['in_FakeSearch01', 'pi_FakeSearch01', 'ch_FakeSearch01'];
  const [paid, refunded] = [stripeInvoicePaid({ invoiceId }), stripeRefund({ chargeId, paymentIntentId })];
  // The first two name each other only by the two between them, which report no money.
  const names = [
    stripeInvoicePaymentPaid({ invoiceId, paymentIntentId }),
    stripeCharge({ chargeId, paymentIntentId }),
  ];
  for (const event of [paid, ...names, refunded])
    expect((await founder.stripe(bodyOf(event))).status).toBe(200);
  const found = async (q: string) => {
    const { events: all } = await founder.ok<{ events: { sourceEventId: string }[] }>(
      'GET',
      `/apps/${founder.app.id}/search?q=${q}`,
    );
    return all.map(({ sourceEventId }) => sourceEventId).toSorted();
  };
  const ids = [String(paid['id']), String(refunded['id'])].toSorted();
  for (const q of [invoiceId, paymentIntentId, chargeId]) expect([q, await found(q)]).toEqual([q, ids]);
});

describe('GET /apps/:appId/events/:eventId/explanation', () => {
  // @promise post-webhook, get-explanation, event-stored, explanation-steps
  test('the explanation of an earning reports verification, event kind, winning and losing touches, and the rate', async () => {
    const other = await founder.newAffiliate('Later creator');
    const deviceId = await founder.install(founder.slug, Date.now() - 60 * DAY_MS);
    await founder.ok(
      'POST',
      '/sdk/install',
      { deviceId, affiliateCode: other.slug, firstOpenAt: Date.now() },
      founder.app.sdkKey,
    );
    const user = `explained-${deviceId}`;
    await founder.identify(deviceId, user);
    const { body } = await founder.purchase(user, 9.99);
    const steps = await explain(body.eventId);
    expect(decisions(steps)).toEqual([
      'verify: verified',
      'store_raw: stored',
      'normalize: purchase',
      'dedupe: first',
      'attribute: attributed',
      'write_commission: earned',
    ]);
    expect(steps[0]?.facts).toMatchObject({ provider: 'revenuecat', scheme: 'static_token' });
    expect(steps[4]?.explanation).toContain('Test creator by the claim token of a click');
    expect(steps[4]?.explanation).toContain('A later touch does not.');
    expect(steps[4]?.facts).toMatchObject({
      users: [
        {
          customerUserId: user,
          identified: true,
          attribution: {
            affiliateId: founder.affiliateId,
            decided: true,
            matchMethod: 'claim_token',
            lostTouches: [{ affiliateId: other.affiliateId, matchMethod: 'code' }],
          },
        },
      ],
    });
    expect(steps[5]?.explanation).toBe(
      "$2.00: 20 % (the app's rate at the time of the evaluation) of $9.99.",
    );
  });

  // @promise null-clears-rate
  test('an explanation names the rate of the affiliate that applied, even after the rate has changed', async () => {
    const { affiliateId, slug } = await founder.newAffiliate('Own rate');
    const path = `/apps/${founder.app.id}/affiliates/${affiliateId}`;
    await founder.ok('PATCH', path, { defaultCommissionRateBps: 5000 });
    const { body } = await founder.purchase(await founder.customer(slug), 10);
    await founder.ok('PATCH', path, { defaultCommissionRateBps: null });
    expect((await explain(body.eventId)).at(-1)?.explanation).toBe(
      "$5.00: 50 % (the creator's own rate at the time of the evaluation) of $10.00.",
    );
  });

  test('the explanation of a refund reports that it waits for its payment, then what it reversed', async () => {
    const user = await founder.customer();
    const early = await founder.refund(user, 4.99, 'explained-tx');
    expect(decisions(await explain(early.body.eventId)).slice(4)).toEqual([
      'attribute: waiting_for_payment',
      'write_commission: none',
    ]);
    const paid = await founder.purchase(user, 9.98, { transactionId: 'explained-tx' });
    const refunded = await explain(early.body.eventId);
    expect(decisions(refunded).slice(4)).toEqual(['attribute: attributed', 'write_commission: reversed']);
    expect(refunded.at(-1)?.explanation).toMatch(/^-\$1\.00/);
    const earned = (await explain(paid.body.eventId)).at(-1);
    expect(earned?.explanation).toContain('Later refunds and disputes have rows of their own.');
    expect(earned?.facts['commissions']).toHaveLength(2);
  });

  // @promise explanation-without-commission
  test('the explanation of a refund without an amount reports the unknown price instead of waiting', async () => {
    const user = await founder.customer();
    const transactionId = `amountless-${user}`;
    await founder.purchase(user, 10, { transactionId });
    const refund = revenuecatRefund({ userId: user, transactionId, usd: null, localPrice: null });
    const { body } = await founder.revenuecat(bodyOf(refund));
    expect(decisions(await explain(body.eventId)).slice(4)).toEqual([
      'attribute: price_unknown',
      'write_commission: price_unknown',
    ]);
  });

  // @promise sandbox-shown
  test('the explanation of a sandbox event reports that it never earns', async () => {
    const event = revenuecatEvent({ userId: await founder.customer(), usd: 5, occurredAt: Date.now() });
    const inner = event['event'] as Record<string, unknown>;
    const { body } = await founder.revenuecat(
      bodyOf({ ...event, event: { ...inner, environment: 'SANDBOX' } }),
    );
    const steps = await explain(body.eventId);
    expect(decisions(steps).slice(2)).toEqual([
      'normalize: purchase',
      'dedupe: first',
      'attribute: not_needed',
      'write_commission: none',
    ]);
    expect(steps[2]?.explanation).toContain('sandbox');
  });

  // @promise explanation-without-commission
  test('the explanation of an unreadable or duplicate event ends with the step at which its delivery ended', async () => {
    const unread = await founder.revenuecat('{"event": 7}');
    const steps = await explain(unread.body.eventId);
    expect(decisions(steps)).toEqual(['verify: verified', 'store_raw: stored', 'normalize: failed']);
    const event = bodyOf(revenuecatEvent({ userId: 'twice', usd: 1, occurredAt: Date.now() }));
    const first = await founder.revenuecat(event);
    expect((await founder.revenuecat(event)).body).toEqual({ duplicate: true });
    const { eventId } = await service.sql.one<{ eventId: string }>`
      select event_id from deliveries where processing_status = 'duplicate' limit 1`;
    const duplicate = await explain(eventId);
    expect(decisions(duplicate).at(-1)).toBe('dedupe: duplicate');
    expect(duplicate.at(-1)?.facts).toEqual({ duplicateOfEventId: first.body.eventId });
  });

  test('the explanation of a second event of one payment names the event that counted', async () => {
    const user = await founder.customer();
    const fields = { transactionId: `both-${user}` };
    const first = await founder.purchase(user, 5, { ...fields, eventId: `a-${user}` });
    const second = await founder.purchase(user, 5, { ...fields, eventId: `b-${user}` });
    const steps = await explain(second.body.eventId);
    expect(steps[3]).toMatchObject({ decision: 'same_payment', facts: { firstEventId: first.body.eventId } });
    expect(steps[5]).toMatchObject({ decision: 'none' });
  });
});

/** What the explanation of an event says about its outcome. */
function outcomeIn(steps: readonly Step[]): string {
  const of = (name: string) => steps.find(({ step }) => step === name);
  if (of('normalize')?.explanation.includes('sandbox') === true) return 'sandbox';
  if (of('attribute')?.decision === 'waiting_for_payment') return 'waiting';
  const written = of('write_commission')?.decision ?? '';
  if (['earned', 'corrected'].includes(written)) return 'earned';
  if (written === 'reversed') return 'reversed';
  return ['processing', 'missing_exchange_rate'].includes(written) ? 'waiting' : 'nothing';
}

describe('GET /apps/:appId/events', () => {
  // @promise get-events, events-outcome, events-filter
  test('the feed lists events as they were received, each with the outcome that its explanation gives', async () => {
    const own = await setUpApp(founder, { commissionRateBps: 2000 });
    const user = await own.customer();
    const transactionId = `feed-${user}`;
    const occurredAt = Date.now() - DAY_MS;
    const sale = revenuecatEvent({ userId: user, usd: 5, occurredAt });
    const inSandbox = { ...(sale['event'] as Record<string, unknown>), environment: 'SANDBOX' };
    const bodies = [
      await own.refund(user, 5, `late-${user}`),
      await own.purchase(user, 10, { transactionId, eventId: `first-${user}` }),
      await own.purchase(user, 10, { transactionId, eventId: `second-${user}` }),
      await own.refund(user, 5, transactionId),
      await own.purchase('a stranger', 20),
      await own.revenuecat(bodyOf(revenuecatEvent({ userId: user, type: 'EXPIRATION', occurredAt }))),
      await own.revenuecat(
        bodyOf(revenuecatEvent({ userId: user, currency: 'XTS', localPrice: 7, usd: null, occurredAt })),
      ),
      await own.revenuecat(bodyOf({ ...sale, event: inSandbox })),
    ].map(({ body }) => body.eventId ?? '');
    const events = (await feed(own, { limit: '3' })).toReversed();
    expect(events.map(({ eventId }) => eventId)).toEqual(bodies);
    expect(events.map(({ outcome, commissionCents }) => [outcome, commissionCents])).toEqual([
      ['waiting', null],
      ['earned', 200],
      ['nothing', null],
      ['reversed', -100],
      ['nothing', null],
      ['nothing', null],
      ['waiting', null],
      ['sandbox', null],
    ]);
    for (const { eventId, outcome, explanation } of events) {
      const steps = await explain(eventId);
      expect([eventId, outcome]).toEqual([eventId, outcomeIn(steps)]);
      const says = steps.some((step) => explanation !== null && step.explanation === explanation);
      expect([outcome, says]).toEqual([outcome, !['earned', 'reversed'].includes(outcome)]);
    }
    const matching = async (query: Record<string, string>) =>
      (await feed(own, query)).toReversed().map(({ eventId }) => bodies.indexOf(eventId));
    expect(await matching({ outcome: 'waiting' })).toEqual([0, 6]);
    expect(await matching({ outcome: 'nothing', kind: 'expiration' })).toEqual([5]);
    expect(await matching({ environment: 'sandbox' })).toEqual([7]);
    expect(await matching({ affiliateId: own.affiliateId })).toEqual([1, 2, 3]);
    expect(await matching({ affiliateId: 'unknown' })).toEqual([]);
    expect(await matching({ customerUserId: 'a stranger' })).toEqual([4]);
    expect(await matching({ source: 'stripe' })).toEqual([]);
    const at = String(events[2]?.receivedAt);
    expect(await matching({ to: at })).toEqual([0, 1]);
    expect(await matching({ from: at })).toEqual([2, 3, 4, 5, 6, 7]);
  });
});
