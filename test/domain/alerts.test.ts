import { describe, expect, test } from '@jest/globals';
import {
  decideAlerts,
  LEAST_ACCEPTED,
  LEAST_PAYMENTS,
  LEAST_SILENCE_MS,
  mayBeSilent,
  MOST_ACCEPTED,
  RHYTHM_MS,
  silenceMs,
} from '../../src/domain/alerts.ts';
import type {
  AlertInputs,
  EndpointFacts,
  Finding,
  LedgerFacts,
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

/** Whether an alert that is open stays so. */
function staysOpen(alert: Finding, facts: Partial<AlertInputs>, now: number): boolean {
  const open = { ...alert, id: 'alr_1' as AlertId };
  return decideAlerts(inputs(facts), [open], now).close.length === 0;
}

const refundsOf = (over: Partial<RefundFacts>): RefundFacts => ({
  weekRefundedCents: 600,
  weekGrossCents: 10_000,
  monthRefundedCents: 1_000,
  monthGrossCents: 40_000,
  weekPayments: LEAST_PAYMENTS,
  ...over,
});

// @promise alert-refunds
test.each<[string, boolean, Partial<RefundFacts>]>([
  ['above 5 % and twice the usual share', true, {}],
  ['at 5 %', false, { weekRefundedCents: 500 }],
  ['at 5 %, ten times the usual share,', false, { weekRefundedCents: 500, monthRefundedCents: 200 }],
  ['just above 5 %', true, { weekRefundedCents: 501, monthRefundedCents: 200 }],
  ['at twice the usual share', false, { monthRefundedCents: 3_000, monthGrossCents: 100_000 }],
  ['with fewer payments than twenty', false, { weekPayments: LEAST_PAYMENTS - 1 }],
  ['without revenue', false, { weekGrossCents: 0 }],
])('refunds %s open an alert: %s', (_, opens, over) => {
  expect(openedBy({ refunds: refundsOf(over) }, START).length > 0).toBe(opens);
});

// @promise alert-refunds
test.each<[string, boolean, Partial<RefundFacts>]>([
  ['just above 2.5 %, the usual share being 1 %,', true, { weekRefundedCents: 251, monthRefundedCents: 400 }],
  ['at 2.5 %, the usual share being 1 %,', false, { weekRefundedCents: 250, monthRefundedCents: 400 }],
  ['just above the usual share of 4 %', true, { weekRefundedCents: 401, monthRefundedCents: 1_600 }],
  ['at the usual share of 4 %', false, { weekRefundedCents: 400, monthRefundedCents: 1_600 }],
  ['above 5 %, with fewer payments than twenty,', true, { weekPayments: LEAST_PAYMENTS - 1 }],
  ['without revenue', false, { weekGrossCents: 0 }],
])('refunds %s keep an alert open: %s', (_, stays, over) => {
  const alert: Finding = { rule: 'many_refunds', subject: 'refunds', facts: {} };
  expect(staysOpen(alert, { refunds: refundsOf(over) }, START)).toBe(stays);
});

test('an alert about refunds that change around 5 % opens once, and closes when they are usual', () => {
  const alerts = new Alerts();
  const share = (weekRefundedCents: number) => ({ refunds: refundsOf({ weekRefundedCents }) });
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
    ['has no known gaps', { rhythm: { accepted: 20, usualGapMs: null } }, DAY_MS],
    ['never sent anything', { lastAcceptedAt: null }, DAY_MS],
    ['has no secret any more', { isConfigured: false }, DAY_MS],
    ['was silent for more than 28 days before', {}, RHYTHM_MS + 1],
  ])('a provider that %s opens no alert', (_, over, afterMs) => {
    expect(openedBy({ providers: [provider(over)] }, START + afterMs)).toEqual([]);
  });

  // @promise alert-silence
  test.each<[string, boolean, Partial<ProviderFacts>, number]>([
    ['for six hours', false, {}, LEAST_SILENCE_MS],
    ['for more than six hours', true, {}, LEAST_SILENCE_MS + 1],
    ['for 28 days', true, {}, RHYTHM_MS],
    ['for more than 28 days', false, {}, RHYTHM_MS + 1],
    ['for a day, and has no secret', false, { isConfigured: false }, DAY_MS],
    ['ever', false, { lastAcceptedAt: null }, DAY_MS],
  ])('of a provider that sent nothing %s, the usual gaps are read: %s', (_, isRead, over, afterMs) => {
    expect(mayBeSilent(provider(over), START + afterMs)).toBe(isRead);
  });

  test('a provider that sent nothing for exactly 28 days opens an alert', () => {
    expect(openedBy({ providers: [provider()] }, START + RHYTHM_MS)).toHaveLength(1);
  });

  test('an alert about silence stays open for months, also when the usual gaps are not read any more', () => {
    const alerts = new Alerts();
    alerts.evaluate(START + DAY_MS, { providers: [provider()] });
    for (const days of [2, 28, 29, 90])
      alerts.evaluate(START + days * DAY_MS, { providers: [provider({ rhythm: null })] });
    expect(alerts.log).toEqual(['opened provider_silent']);
  });

  test('a provider whose usual gaps were not read opens no alert', () => {
    expect(openedBy({ providers: [provider({ rhythm: null })] }, START + DAY_MS)).toEqual([]);
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

const ledger: LedgerFacts = {
  rules: 2,
  violations: 7,
  rule: 'rollups_equal_facts',
  foundAt: START - HOUR_MS,
};
const approved = run({ status: 'approved', approvedAt: START });

describe('other rules', () => {
  // @promise alert-rules
  test.each<[string, number, Partial<AlertInputs>]>([
    ['five failing deliveries', START, { providers: [provider({ failing: 5 })] }],
    ['three refused requests', START, { providers: [provider({ refused: 3, lastRefusedAt: START })] }],
    ['a draft that is older than a day', START + DAY_MS + 1, { runs: [run()] }],
    ['a draft that the schedule has just made', START + 1, { runs: [run({ scheduledMonth: '2026-05' })] }],
    ['an approved run that did not advance for an hour', START + HOUR_MS + 1, { runs: [approved] }],
    [
      'an approved run whose last payout was an hour ago',
      START + 5 * HOUR_MS + 1,
      { runs: [{ ...approved, advancedAt: START + 4 * HOUR_MS }] },
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
    ['rows that break a rule of the ledger', START, { ledger }],
  ])('%s open an alert, once', (_, now, facts) => {
    const alerts = new Alerts();
    alerts.evaluate(now, facts);
    expect(alerts.log).toHaveLength(1);
    alerts.during(now + 1, now + HOUR_MS, () => facts);
    expect(alerts.log).toHaveLength(1);
    alerts.evaluate(now + HOUR_MS, {});
    expect(alerts.log).toHaveLength(2);
  });

  // @promise alert-rules
  test.each<[string, number, Partial<AlertInputs>]>([
    ['four failing deliveries', START, { providers: [provider({ failing: 4 })] }],
    ['two refused requests', START, { providers: [provider({ refused: 2 })] }],
    ['a draft of a day', START + DAY_MS, { runs: [run()] }],
    ['a draft that the schedule makes at this moment', START, { runs: [run({ scheduledMonth: '2026-05' })] }],
    ['a draft that has expired', START + 7 * DAY_MS, { runs: [run()] }],
    ['a draft of nobody', START + 2 * DAY_MS, { runs: [run({ itemCount: 0, totalCents: 0 })] }],
    ['a run that was approved within the hour', START + HOUR_MS, { runs: [approved] }],
    [
      'a run that advances',
      START + 5 * HOUR_MS,
      { runs: [{ ...approved, advancedAt: START + 4 * HOUR_MS }] },
    ],
    ['an endpoint that has just failed', START, { endpoints: [endpoint({ failingSince: START })] }],
    [
      'an endpoint that has failed for almost an hour',
      START + HOUR_MS - 1,
      { endpoints: [endpoint({ failingSince: START })] },
    ],
    ['an endpoint that works', START + DAY_MS, { endpoints: [endpoint()] }],
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

  const endpointAlert: Finding = { rule: 'endpoint_failing', subject: 'whe_1', facts: {} };
  const draftAlert: Finding = { rule: 'draft_waiting', subject: 'run_1', facts: {} };
  const stalledAlert: Finding = { rule: 'run_stalled', subject: 'run_1', facts: {} };

  test.each<[string, boolean, Finding, Partial<AlertInputs>]>([
    [
      'an endpoint that has failed again for less than an hour',
      true,
      endpointAlert,
      { endpoints: [endpoint({ failingSince: START + DAY_MS })] },
    ],
    [
      'an endpoint that was deactivated after failing',
      true,
      endpointAlert,
      { endpoints: [endpoint({ deactivatedAt: START, deactivatedReason: 'failing' })] },
    ],
    ['an endpoint that accepts messages again', false, endpointAlert, { endpoints: [endpoint()] }],
    [
      'an endpoint that a person deactivated',
      false,
      endpointAlert,
      {
        endpoints: [endpoint({ failingSince: START, deactivatedAt: START, deactivatedReason: 'by_request' })],
      },
    ],
    ['a draft that still waits', true, draftAlert, { runs: [run({ expiresAt: START + DAY_MS + 2 })] }],
    ['a draft that has expired', false, draftAlert, { runs: [run({ expiresAt: START + DAY_MS + 1 })] }],
    ['a draft that was approved', false, draftAlert, { runs: [approved] }],
    [
      'a run that advances again',
      false,
      stalledAlert,
      { runs: [{ ...approved, advancedAt: START + DAY_MS }] },
    ],
    ['another run', false, stalledAlert, { runs: [{ ...approved, id: 'run_2' as PayoutRunId }] }],
  ])('with %s, an open alert stays open: %s', (_, stays, alert, facts) => {
    expect(staysOpen(alert, facts, START + DAY_MS + 1)).toBe(stays);
  });

  // @promise alert-rules
  test.each<[Finding['rule'], Finding['subject'], Finding['facts'], Partial<AlertInputs>]>([
    ['deliveries_failing', 'stripe', { failing: 6 }, { providers: [provider({ failing: 6 })] }],
    [
      'webhooks_refused',
      'stripe',
      { refused: 4, lastRefusedAt: START - 1 },
      { providers: [provider({ refused: 4, lastRefusedAt: START - 1 })] },
    ],
    [
      'draft_waiting',
      'run_1',
      { totalCents: 41_200, itemCount: 2, draftedAt: START - 2 * DAY_MS, expiresAt: START + 5 * DAY_MS },
      { runs: [run({ createdAt: START - 2 * DAY_MS, expiresAt: START + 5 * DAY_MS })] },
    ],
    [
      'draft_waiting',
      'run_1',
      {
        totalCents: 41_200,
        itemCount: 2,
        scheduledMonth: '2026-05',
        draftedAt: START - HOUR_MS,
        expiresAt: START + 7 * DAY_MS,
      },
      { runs: [run({ scheduledMonth: '2026-05', createdAt: START - HOUR_MS })] },
    ],
    [
      'run_stalled',
      'run_1',
      { totalCents: 41_200, itemCount: 2, approvedAt: START - 2 * DAY_MS, advancedAt: START - DAY_MS },
      { runs: [{ ...approved, approvedAt: START - 2 * DAY_MS, advancedAt: START - DAY_MS }] },
    ],
    [
      'endpoint_failing',
      'whe_1',
      { kind: 'webhook', failingSince: START - HOUR_MS, deactivatedAt: null, deactivatedReason: null },
      { endpoints: [endpoint({ failingSince: START - HOUR_MS })] },
    ],
    [
      'endpoint_failing',
      'whe_1',
      { kind: 'slack', failingSince: START - DAY_MS, deactivatedAt: START, deactivatedReason: 'failing' },
      {
        endpoints: [
          endpoint({
            isSlack: true,
            failingSince: START - DAY_MS,
            deactivatedAt: START,
            deactivatedReason: 'failing',
          }),
        ],
      },
    ],
    [
      'many_refunds',
      'refunds',
      { refundedCents: 4_115, grossCents: 32_900, refundBps: 1_251, usualBps: 470 },
      {
        refunds: refundsOf({
          weekRefundedCents: 4_115,
          weekGrossCents: 32_900,
          monthRefundedCents: 9_879,
          monthGrossCents: 210_000,
        }),
      },
    ],
    ['ledger_violated', 'ledger', { ...ledger }, { ledger }],
  ])('an alert %s names its subject and what was found (%#)', (rule, subject, facts, found) => {
    expect(openedBy(found, START)).toEqual([{ rule, subject, facts }]);
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
    expect(evaluateAt(START + HOUR_MS, { ...open, lastAcceptedAt: START })).toEqual([opened, closed]);
    expect(evaluateAt(START + HOUR_MS, { ...open, lastAcceptedAt: START + 1 })).toEqual([opened, closed]);
    expect(evaluateAt(START + HOUR_MS, { ...open, lastAcceptedAt: START + 1, refused: 1 })).toEqual([opened]);
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
