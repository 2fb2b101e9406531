import { describe, expect, test } from '@jest/globals';
import { ALERT_RULES, ALERT_TYPES } from '../../src/domain/alerts.ts';
import { AFFILIATE_STATUSES, MATCH_METHODS } from '../../src/domain/attribution.ts';
import { CODE_STATES } from '../../src/domain/event-history.ts';
import { WAITING_CAUSES } from '../../src/domain/event-outcome.ts';
import { ENVIRONMENTS, EVENT_KINDS } from '../../src/domain/events.ts';
import { ID_PREFIXES, isId } from '../../src/domain/ids.ts';
import { CAUSE_EXPLANATIONS, CAUSE_HEALING, HEALING, LIKELY_CAUSES } from '../../src/domain/likely-causes.ts';
import { TIMESERIES_INTERVALS } from '../../src/domain/timeseries.ts';
import type { AppId } from '../../src/domain/ids.ts';
import { DEFAULT_RETENTION } from '../../src/domain/retention.ts';
import { webhookUrl } from '../../src/domain/webhook-url.ts';
import { PAYOUT_REQUESTED, SEND_NOW } from '../../src/domain/signals.ts';
import { workflowIdOf } from '../../src/domain/workflow-id.ts';

describe('values that callers and rows store', () => {
  test.each<[string, readonly string[], string]>([
    ['match methods', MATCH_METHODS, 'claim_token code deferred'],
    [
      'states of codes',
      CODE_STATES,
      'in_force unregistered registered_later deactivated creator_removed user_attributed off',
    ],
    [
      'rules of alerts',
      ALERT_RULES,
      'provider_silent deliveries_failing webhooks_refused draft_waiting run_stalled endpoint_failing many_refunds ledger_violated',
    ],
    ['types of messages about alerts', ALERT_TYPES, 'alert.opened alert.closed'],
    [
      'causes of missing commissions',
      LIKELY_CAUSES,
      'missing_user_id anonymous_user_id user_never_identified user_id_mismatch user_not_attributed outside_attribution_window affiliate_paused affiliate_removed rate_zero no_policy_rule ambiguous_code missing_exchange_rate price_unknown test_key_only processing',
    ],
    ['how a payment without a commission can still earn', HEALING, 'when_fixed automatically never'],
    ['statuses of affiliates', AFFILIATE_STATUSES, 'active paused removed'],
    ['environments', ENVIRONMENTS, 'production sandbox'],
    ['intervals', TIMESERIES_INTERVALS, 'hour day week month'],
    [
      'kinds of events',
      EVENT_KINDS,
      'purchase renewal trial_started trial_converted product_change cancellation expiration refund refund_reversed chargeback chargeback_reversed transfer test other',
    ],
    [
      'prefixes of ids',
      Object.values(ID_PREFIXES),
      'acct app aff lnk clk att evt del com ent grp pol plv mat cod pay trf pbk run pit pfl pye pch eml key ses mem psk whe msg alr sec req pmt adj bnd rpr ins ers aud',
    ],
  ])('stored values do not change: %s', (_, words, expected) => {
    expect(words).toEqual(expected.split(' '));
  });

  test('the webhook URL of an app does not change', () => {
    const appId = 'app_1' as AppId;
    expect(webhookUrl('https://api.example.test/base', 'paddle', appId)).toBe(
      'https://api.example.test/base/webhooks/paddle/app_1',
    );
  });

  test('the signal that running payout workflows wait for keeps its name', () => {
    expect(PAYOUT_REQUESTED).toBe('payoutRequested');
  });

  test('the signal that running webhook workflows wait for keeps its name', () => {
    expect(SEND_NOW).toBe('sendNow');
  });

  test('without a setting, personal data and messages are kept for 90 days and bodies for 400', () => {
    expect(DEFAULT_RETENTION).toEqual({
      idempotency_keys: 1,
      identities: 90,
      refused_counters: 90,
      user_agents: 90,
      bodies: 400,
      webhook_messages: 90,
      emails: 90,
    });
  });

  test('the id of a workflow is its name and its key', () => {
    expect(workflowIdOf('delivery', 'del_1')).toBe('delivery:del_1');
  });
});

describe('an id', () => {
  const body = '01jz6y3v8mf0a9bcdeghjkmnpq';

  test('an id is only of the kind that its prefix names', () => {
    expect(isId('app', `app_${body}`)).toBe(true);
    expect(isId('affiliate', `aff_${body}`)).toBe(true);
    expect(isId('affiliate', `app_${body}`)).toBe(false);
  });

  test.each([
    ['no prefix', body],
    ['a prefix alone', 'app_'],
    ['a character too many', `app_${body}0`],
    ['a character too few', `app_${body.slice(1)}`],
    ['something before it', `xapp_${body}`],
    ['a line end after it', `app_${body}\n`],
    ['more than 128 bits', `app_8${body.slice(1)}`],
    ['capitals', `app_${body.toUpperCase()}`],
    ['a letter that base32 leaves out', `app_${body.slice(1)}l`],
    ['no separator', `app${body}`],
  ])('text with %s is not an id', (_, text) => {
    expect(isId('app', text)).toBe(false);
  });
});

describe('the explanation of a missing commission', () => {
  test.each<[(typeof LIKELY_CAUSES)[number], RegExp]>([
    ['missing_user_id', /contains no user id.*own user id .*before the purchase/],
    ['anonymous_user_id', /SDK generated.*Log the user in.*before the purchase/],
    ['user_never_identified', /No device.*identify\(userId\)/],
    ['user_id_mismatch', /different spelling.*same string.*identify\(userId\)/],
    ['user_not_attributed', /through no creator.*No action is needed.*claim token or a code/],
    [
      'outside_attribution_window',
      /only after this payment.*older than .* the attribution window.*identify\(userId\) before the purchase.*raise the attribution window.*attributionWindowDays/,
    ],
    ['affiliate_paused', /creator was paused.*status to active.*later payments/],
    ['affiliate_removed', /creator was removed.*status to active.*later payments/],
    ['rate_zero', /commission was zero.*Raise.*rate/],
    ['no_policy_rule', /No rule of .* policy applied.*Publish a version.*without conditions.*after its date/],
    ['ambiguous_code', /codes of several creators.*for none.*Attribute in the console.*manual-attributions/],
    ['missing_exchange_rate', /no exchange rate.*operator to import exchange rates/],
    ['price_unknown', /reported no amount.*not estimate.*manually/],
    ['test_key_only', /test SDK key.*never earns.*live key.*evaluated again/],
    ['processing', /still being processed.*check again/],
  ])('the explanation of %s says what happened and what to do', (cause, words) => {
    expect(CAUSE_EXPLANATIONS[cause]).toMatch(words);
  });

  test('every cause has an explanation', () => {
    expect(LIKELY_CAUSES).toHaveLength(15);
  });

  const causesThatHeal = (heals: (typeof HEALING)[number]) =>
    LIKELY_CAUSES.filter((cause) => CAUSE_HEALING[cause] === heals);

  test('a payment is listed as one that earns without an action only while it waits', () => {
    expect(causesThatHeal('automatically').toSorted()).toEqual(WAITING_CAUSES.toSorted());
  });

  test('a payment is listed as one that never earns where its commission was decided or its amount is unknown', () => {
    expect(causesThatHeal('never')).toEqual([
      'affiliate_paused',
      'affiliate_removed',
      'rate_zero',
      'no_policy_rule',
      'price_unknown',
    ]);
  });

  test('a payment is listed as one that earns when its cause is fixed where its customer or creator was not known', () => {
    expect(causesThatHeal('when_fixed')).toEqual([
      'missing_user_id',
      'anonymous_user_id',
      'user_never_identified',
      'user_id_mismatch',
      'user_not_attributed',
      'outside_attribution_window',
      'ambiguous_code',
      'test_key_only',
    ]);
  });
});
