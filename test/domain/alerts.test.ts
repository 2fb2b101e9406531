import { describe, expect, test } from '@jest/globals';
import { alertText } from '../../src/domain/alert-text.ts';
import {
  ALERT_RULES,
  decideAlerts,
  LEAST_ACCEPTED,
  LEAST_PAYMENTS,
  LEAST_SILENCE_MS,
  MOST_ACCEPTED,
  RHYTHM_MS,
  silenceMs,
} from '../../src/domain/alerts.ts';
import type {
  AlertInputs,
  EndpointFacts,
  Finding,
  OpenAlert,
  ProviderFacts,
  RefundFacts,
  RunFacts,
} from '../../src/domain/alerts.ts';
import type { AlertId, PayoutRunId, WebhookEndpointId } from '../../src/domain/ids.ts';
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../src/domain/time.ts';

const START = Date.UTC(2026, 5, 1);

/** A provider that sends a webhook each hour, and sent its last one at the start. */
const provider = (over: Partial<ProviderFacts> = {}): ProviderFacts => ({
  provider: 'stripe',
  isConfigured: true,
  lastAcceptedAt: START,
  rhythm: { accepted: 600, usualGapMs: HOUR_MS },
  failing: 0,
  refused: 0,
  lastRefusedAt: null,
  ...over,
});

const run = (over: Partial<RunFacts> = {}): RunFacts => ({
  id: 'run_1' as PayoutRunId,
  status: 'draft',
  totalCents: 41_200,
  itemCount: 2,
  scheduledMonth: null,
  createdAt: START,
  expiresAt: START + 7 * DAY_MS,
  approvedAt: null,
  advancedAt: null,
  ...over,
});

const endpoint = (over: Partial<EndpointFacts> = {}): EndpointFacts => ({
  id: 'whe_1' as WebhookEndpointId,
  isSlack: false,
  deactivatedAt: null,
  deactivatedReason: null,
  failingSince: null,
  ...over,
});

const inputs = (over: Partial<AlertInputs>): AlertInputs => ({
  providers: [],
  runs: [],
  endpoints: [],
  refunds: null,
  ledger: null,
  ...over,
});

/** The alerts of an app over time, as evaluations every five minutes make them. */
class Alerts {
  readonly open = new Map<string, OpenAlert>();
  readonly log: string[] = [];

  evaluate(now: number, facts: Partial<AlertInputs>): void {
    const decision = decideAlerts(inputs(facts), [...this.open.values()], now);
    for (const id of decision.close) {
      this.log.push(`closed ${this.open.get(id)?.rule}`);
      this.open.delete(id);
    }
    for (const finding of decision.open) {
      const id = `alr_${this.log.length}` as AlertId;
      this.open.set(id, { id, ...finding });
      this.log.push(`opened ${finding.rule}`);
    }
  }

  /** Evaluates every five minutes of a span with facts that depend on the time. */
  during(from: number, to: number, facts: (now: number) => Partial<AlertInputs>): void {
    for (let now = from; now < to; now += 5 * MINUTE_MS) this.evaluate(now, facts(now));
  }
}

const openedBy = (facts: Partial<AlertInputs>, now: number): readonly Finding[] =>
  decideAlerts(inputs(facts), [], now).open;

// @promise alert-refunds
test.each<[string, Partial<RefundFacts>, boolean]>([
  ['above 5 % and twice the usual share', {}, true],
  ['at 5 %', { weekRefundedCents: 500 }, false],
  ['at twice the usual share', { monthRefundedCents: 3_000, monthGrossCents: 100_000 }, false],
  ['with fewer payments than twenty', { weekPayments: LEAST_PAYMENTS - 1 }, false],
  ['without revenue', { weekGrossCents: 0 }, false],
])('refunds %s open an alert: %s', (_, over, opens) => {
  const refunds = {
    weekRefundedCents: 600,
    weekGrossCents: 10_000,
    monthRefundedCents: 1_000,
    monthGrossCents: 40_000,
    weekPayments: LEAST_PAYMENTS,
    ...over,
  };
  expect(openedBy({ refunds }, START).length > 0).toBe(opens);
});

test('an alert about refunds that change around 5 % opens once, and closes when they are usual', () => {
  const alerts = new Alerts();
  const share = (weekRefundedCents: number) => ({
    refunds: {
      weekRefundedCents,
      weekGrossCents: 10_000,
      monthRefundedCents: 1_000,
      monthGrossCents: 40_000,
      weekPayments: 20,
    },
  });
  for (const cents of [510, 490, 510, 480, 520, 260, 510]) alerts.evaluate(START, share(cents));
  expect(alerts.log).toEqual(['opened many_refunds']);
  alerts.evaluate(START, share(250));
  expect(alerts.log).toEqual(['opened many_refunds', 'closed many_refunds']);
});

describe('a silent provider', () => {
  // @promise alert-silence
  test('a provider that goes silent opens one alert, and its next webhook closes it', () => {
    const alerts = new Alerts();
    alerts.during(START, START + 2 * DAY_MS, () => ({ providers: [provider()] }));
    expect(alerts.log).toEqual(['opened provider_silent']);
    const back = START + 2 * DAY_MS;
    // The long gap may change the rhythm. What was sent since decides.
    const again = provider({ lastAcceptedAt: back, rhythm: { accepted: 601, usualGapMs: 30 * DAY_MS } });
    alerts.during(back, back + HOUR_MS, () => ({ providers: [again] }));
    expect(alerts.log).toEqual(['opened provider_silent', 'closed provider_silent']);
    const silent = { ...again, rhythm: { accepted: 601, usualGapMs: HOUR_MS } };
    alerts.during(back + HOUR_MS, back + DAY_MS, () => ({ providers: [silent] }));
    expect(alerts.log).toEqual([
      'opened provider_silent',
      'closed provider_silent',
      'opened provider_silent',
    ]);
  });

  // @promise alert-silence
  test.each([
    ['after six hours with short gaps', HOUR_MS, LEAST_SILENCE_MS],
    ['after four usual gaps where these are longer', 2 * HOUR_MS, 8 * HOUR_MS],
  ])('it is silent %s', (_, usualGapMs, allowedMs) => {
    const one = provider({ rhythm: { accepted: LEAST_ACCEPTED, usualGapMs } });
    expect(openedBy({ providers: [one] }, START + allowedMs)).toEqual([]);
    expect(openedBy({ providers: [one] }, START + allowedMs + 1)).toEqual([
      { rule: 'provider_silent', subject: 'stripe', facts: { lastAcceptedAt: START, allowedMs } },
    ]);
  });

  // @promise alert-silence
  test.each<[string, Partial<ProviderFacts>, number]>([
    ['sent fewer than twenty webhooks', { rhythm: { accepted: 19, usualGapMs: 1 } }, DAY_MS],
    ['never sent anything', { lastAcceptedAt: null }, DAY_MS],
    ['has no secret any more', { isConfigured: false }, DAY_MS],
    ['was silent for more than 28 days before', {}, RHYTHM_MS + 1],
  ])('a provider that %s opens no alert', (_, over, afterMs) => {
    expect(openedBy({ providers: [provider(over)] }, START + afterMs)).toEqual([]);
  });

  test('a provider whose secret is removed has no open alert any more', () => {
    const alerts = new Alerts();
    alerts.evaluate(START + DAY_MS, { providers: [provider()] });
    alerts.evaluate(START + DAY_MS + 1, { providers: [provider({ isConfigured: false })] });
    expect(alerts.log).toEqual(['opened provider_silent', 'closed provider_silent']);
  });

  test('a provider of which as many webhooks were read as are read at most is silent after six hours', () => {
    expect(silenceMs({ accepted: MOST_ACCEPTED - 1, usualGapMs: 2 * HOUR_MS })).toBe(8 * HOUR_MS);
    expect(silenceMs({ accepted: MOST_ACCEPTED, usualGapMs: 2 * HOUR_MS })).toBe(LEAST_SILENCE_MS);
  });
});

describe('other rules', () => {
  // @promise alert-rules
  test.each<[string, number, Partial<AlertInputs>]>([
    ['five failing deliveries', START, { providers: [provider({ failing: 5 })] }],
    ['three refused requests', START, { providers: [provider({ refused: 3, lastRefusedAt: START })] }],
    ['a draft that is older than a day', START + DAY_MS + 1, { runs: [run()] }],
    [
      'an approved run that did not advance for an hour',
      START + HOUR_MS + 1,
      { runs: [run({ status: 'approved', approvedAt: START })] },
    ],
    [
      'an endpoint that fails for an hour',
      START + HOUR_MS,
      { endpoints: [endpoint({ failingSince: START })] },
    ],
    [
      'an endpoint that the service deactivated',
      START,
      { endpoints: [endpoint({ failingSince: START, deactivatedAt: START, deactivatedReason: 'gone' })] },
    ],
  ])('%s open an alert, once', (_, now, facts) => {
    const alerts = new Alerts();
    alerts.during(now, now + HOUR_MS, () => facts);
    expect(alerts.log).toHaveLength(1);
    alerts.evaluate(now + HOUR_MS, {});
    expect(alerts.log).toHaveLength(2);
  });

  // @promise alert-rules
  test.each<[string, number, Partial<AlertInputs>]>([
    ['four failing deliveries', START, { providers: [provider({ failing: 4 })] }],
    ['two refused requests', START, { providers: [provider({ refused: 2 })] }],
    ['a draft of a day', START + DAY_MS, { runs: [run()] }],
    ['a draft that has expired', START + 7 * DAY_MS, { runs: [run()] }],
    [
      'a run that was approved within the hour',
      START + HOUR_MS,
      { runs: [run({ status: 'approved', approvedAt: START })] },
    ],
    [
      'a run that advances',
      START + 5 * HOUR_MS,
      { runs: [run({ status: 'approved', approvedAt: START, advancedAt: START + 4 * HOUR_MS })] },
    ],
    ['an endpoint that has just failed', START, { endpoints: [endpoint({ failingSince: START })] }],
    [
      'an endpoint that a person deactivated',
      START + DAY_MS,
      {
        endpoints: [endpoint({ failingSince: START, deactivatedAt: START, deactivatedReason: 'by_request' })],
      },
    ],
  ])('%s open no alert', (_, now, facts) => {
    expect(openedBy(facts, now)).toEqual([]);
  });

  // @promise alert-once
  test('a number that changes around its limit opens one alert, which closes when nothing is left', () => {
    const alerts = new Alerts();
    for (const failing of [5, 4, 6, 1, 5, 0]) alerts.evaluate(START, { providers: [provider({ failing })] });
    expect(alerts.log).toEqual(['opened deliveries_failing', 'closed deliveries_failing']);
  });

  // @promise alert-refused
  test('an alert about refused requests stays open until a webhook is accepted, or for seven days', () => {
    const refused = { refused: 0, lastRefusedAt: START };
    const open = { ...provider(refused), lastAcceptedAt: START - 1 };
    const evaluateAt = (now: number, one: ProviderFacts) => {
      const alerts = new Alerts();
      alerts.evaluate(START, { providers: [{ ...open, refused: 3 }] });
      alerts.evaluate(now, { providers: [one] });
      return alerts.log.filter((line) => line.endsWith('webhooks_refused'));
    };
    const [opened, closed] = ['opened webhooks_refused', 'closed webhooks_refused'];
    expect(evaluateAt(START + 7 * DAY_MS, open)).toEqual([opened]);
    expect(evaluateAt(START + 7 * DAY_MS + 1, open)).toEqual([opened, closed]);
    expect(evaluateAt(START + HOUR_MS, { ...open, lastAcceptedAt: START + 1 })).toEqual([opened, closed]);
    expect(evaluateAt(START + HOUR_MS, { ...open, lastAcceptedAt: null })).toEqual([opened]);
    expect(evaluateAt(START + HOUR_MS, { ...open, isConfigured: false })).toEqual([opened, closed]);
  });

  test('each subject has an alert of its own', () => {
    const facts = {
      providers: [provider({ failing: 9 }), provider({ provider: 'paddle', failing: 9, refused: 9 })],
    };
    expect(openedBy(facts, START).map(({ rule, subject }) => `${rule} ${subject}`)).toEqual([
      'deliveries_failing stripe',
      'deliveries_failing paddle',
      'webhooks_refused paddle',
    ]);
  });
});

describe('the text of an alert', () => {
  const context = { appName: 'Chess <!channel> & more', pageUrl: null, titleOf: () => 'Stripe' };
  const facts = {
    lastAcceptedAt: START,
    allowedMs: 1,
    failing: 5,
    refused: 3,
    totalCents: 41_205,
    refundBps: 1_250,
    usualBps: 500,
  };

  // @promise alert-slack
  test.each(
    ALERT_RULES.flatMap((rule) => [[rule, 'alert.opened'] as const, [rule, 'alert.closed'] as const]),
  )('the text of %s, %s, is one line without a mention or a value that is missing', (rule, type) => {
    const data = { rule, subject: 'stripe', facts, openedAt: START + 7 * HOUR_MS };
    const text = alertText({ type, data }, context);
    expect(text).toMatch(/^Chess &lt;!channel&gt; &amp; more: [^<>\n]+\.$/);
    expect(text).not.toMatch(/undefined|NaN|null/);
  });

  test.each([
    ['provider_silent', 'No webhook of Stripe was accepted for 7 hours.'],
    ['draft_waiting', 'A payout run of $412.05 waits for your approval.'],
    ['many_refunds', '12.5 % of the revenue of the last 7 days was refunded, and 5 % of that of 28 days.'],
  ])('the text of %s says what was found', (rule, sentence) => {
    const data = { rule, subject: 'stripe', facts, openedAt: START + 7 * HOUR_MS };
    expect(alertText({ type: 'alert.opened', data }, context)).toContain(sentence);
  });

  test('the text ends with the address of the page where it is known', () => {
    const pageUrl = 'https://example.com/console/apps/app_1/alerts';
    expect(alertText({ type: 'webhook.test', data: {} }, { ...context, pageUrl })).toMatch(
      /test message.* https:\/\/example\.com\/console\/apps\/app_1\/alerts$/,
    );
  });
});
