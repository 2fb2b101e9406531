import { describe, expect, test } from '@jest/globals';
import { alertText, closedText, openedText } from '../../src/domain/alert-text.ts';
import { ALERT_RULES, LEAST_SILENCE_MS } from '../../src/domain/alerts.ts';
import type { AlertFacts, AlertRule } from '../../src/domain/alerts.ts';
import { DAY_MS, HOUR_MS } from '../../src/domain/time.ts';

const START = Date.UTC(2026, 5, 1);

const context = { appName: 'Chess <!channel> & more', pageUrl: null, titleOf: () => 'Stripe' };

// @promise alert-slack
test.each(ALERT_RULES.flatMap((rule) => [[rule, 'alert.opened'] as const, [rule, 'alert.closed'] as const]))(
  'the text of %s, %s, is one line without a mention or a value that is missing',
  (rule, type) => {
    const facts = {
      lastAcceptedAt: START,
      allowedMs: 1,
      failing: 5,
      refused: 3,
      totalCents: 41_205,
      refundBps: 1_250,
      usualBps: 500,
    };
    const data = { rule, subject: 'stripe', facts, openedAt: START + 7 * HOUR_MS };
    const text = alertText({ type, data }, context);
    expect(text).toMatch(/^Chess &lt;!channel&gt; &amp; more: [^<>\n]+\.$/);
    expect(text).not.toMatch(/undefined|NaN|null/);
  },
);

const active = { kind: 'webhook', failingSince: START, deactivatedAt: null, deactivatedReason: null };
const deactivated = { ...active, deactivatedAt: START + DAY_MS, deactivatedReason: 'failing' };

describe('the text of an alert that opens', () => {
  test.each<[AlertRule, AlertFacts, string]>([
    [
      'provider_silent',
      { lastAcceptedAt: START - 7 * HOUR_MS, allowedMs: LEAST_SILENCE_MS },
      'No webhook of Stripe was accepted for 7 hours. Look at the page of webhooks in its dashboard.',
    ],
    [
      'deliveries_failing',
      { failing: 5 },
      '5 webhooks of Stripe failed or cannot be processed. Look at the deliveries.',
    ],
    [
      'webhooks_refused',
      { refused: 3, lastRefusedAt: START },
      '3 requests in the name of Stripe were refused. Compare the secret with that of its dashboard.',
    ],
    [
      'draft_waiting',
      { totalCents: 41_205, itemCount: 2, draftedAt: START, expiresAt: START + 7 * DAY_MS },
      'A payout run of $412.05 waits for your approval. Approve it or cancel it.',
    ],
    [
      'draft_waiting',
      {
        totalCents: 1_234_560,
        itemCount: 41,
        scheduledMonth: '2026-05',
        draftedAt: START,
        expiresAt: START + 7 * DAY_MS,
      },
      'The payout run of the schedule of $12345.60 waits for your approval. Approve it or cancel it.',
    ],
    [
      'run_stalled',
      { totalCents: 41_299, itemCount: 2, approvedAt: START, advancedAt: null },
      'A payout run of $412.99 is approved, and was not paid any further for an hour. Ask the operator of the service.',
    ],
    [
      'endpoint_failing',
      active,
      'An endpoint of your webhooks does not accept messages. Look at the attempts.',
    ],
    [
      'endpoint_failing',
      deactivated,
      'An endpoint of your webhooks did not accept messages and was deactivated. Repair it, then activate it again.',
    ],
    [
      'endpoint_failing',
      { ...active, kind: 'slack' },
      'The Slack URL does not accept messages. Look at the attempts.',
    ],
    [
      'endpoint_failing',
      { ...deactivated, kind: 'slack' },
      'The Slack URL did not accept messages and was deactivated. Set it again.',
    ],
    [
      'many_refunds',
      { refundedCents: 4_115, grossCents: 32_900, refundBps: 1_251, usualBps: 500 },
      '12.5 % of the revenue of the last 7 days was refunded, and 5 % of that of 28 days. Look at the events, and at the creators who brought the payments.',
    ],
    [
      'ledger_violated',
      { rules: 2, violations: 7, rule: 'rollups_equal_facts', foundAt: START },
      'A check of the ledger found rows that break a rule: 7. Pay nobody before the operator of the service has looked at it.',
    ],
  ])('an alert %s that opens says what was found and what to do (%#)', (rule, facts, sentence) => {
    expect(openedText({ rule, subject: 'Stripe', facts }, START)).toBe(sentence);
    const data = { rule, subject: 'stripe', facts, openedAt: START };
    expect(alertText({ type: 'alert.opened', data }, { ...context, appName: 'Chess' })).toBe(
      `Chess: ${sentence}`,
    );
  });

  test.each([
    ['as soon as a provider is silent', LEAST_SILENCE_MS + 1, '6 hours'],
    ['before the seventh hour is full', 7 * HOUR_MS - 1, '6 hours'],
    ['before two days are full', 2 * DAY_MS - 1, '47 hours'],
    ['after two days', 2 * DAY_MS, '2 days'],
    ['before the third day is full', 3 * DAY_MS - 1, '2 days'],
    ['after 28 days', 28 * DAY_MS, '28 days'],
  ])('how long nothing came is stated in whole hours, and in whole days from two on: %s', (_, ms, words) => {
    const alert = { rule: 'provider_silent', subject: 'Stripe', facts: { lastAcceptedAt: START } } as const;
    expect(openedText(alert, START + ms)).toContain(`was accepted for ${words}.`);
  });
});

describe('the text of an alert that closes', () => {
  test.each<[AlertRule, string]>([
    ['provider_silent', 'Stripe sends webhooks again, or was disconnected.'],
    ['deliveries_failing', 'No webhook of Stripe failed within the last hour.'],
    ['webhooks_refused', 'No request in the name of Stripe was refused any more.'],
    ['draft_waiting', 'The payout run does not wait for your approval any more.'],
    ['run_stalled', 'The payout run goes on, or has ended.'],
    ['endpoint_failing', 'It accepts messages again, or somebody changed or deleted it.'],
    ['many_refunds', 'Of the revenue of the last 7 days, at most 2.5 % was refunded, or no more than usual.'],
    ['ledger_violated', 'The ledger was checked again, and no row breaks a rule.'],
  ])('an alert %s that closes says what is so now', (rule, sentence) => {
    expect(closedText({ rule, subject: 'Stripe' })).toBe(sentence);
    const data = { rule, subject: 'stripe', facts: {}, openedAt: START };
    expect(alertText({ type: 'alert.closed', data }, { ...context, appName: 'Chess' })).toBe(
      `Chess: Resolved: ${sentence}`,
    );
  });
});

test('the text ends with the address of the page where it is known', () => {
  const pageUrl = 'https://example.com/console/apps/app_1/alerts';
  expect(alertText({ type: 'webhook.test', data: {} }, { ...context, pageUrl })).toBe(
    `Chess &lt;!channel&gt; &amp; more: This is a test message. Alerts will appear here. ${pageUrl}`,
  );
});
