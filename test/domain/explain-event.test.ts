import { describe, expect, test } from '@jest/globals';
import { EXPLANATION_STEPS, explainEvent } from '../../src/domain/explain-event.ts';
import type { ExplainedStep } from '../../src/domain/explain-event.ts';
import type {
  EventHistory,
  ExplainedCommission,
  ExplainedEvent,
  ExplainedCode,
  ExplainedPayment,
  ExplainedUser,
} from '../../src/domain/event-history.ts';
import type {
  AffiliateId,
  AttributionId,
  ClickId,
  CommissionId,
  DeliveryId,
  EventId,
  LinkId,
  PolicyId,
  PolicyVersionId,
} from '../../src/domain/ids.ts';
import { CAUSE_EXPLANATIONS } from '../../src/domain/likely-causes.ts';
import type { LikelyCause } from '../../src/domain/likely-causes.ts';
import type { EventKind } from '../../src/domain/events.ts';
import type { AttributionMethod } from '../../src/domain/attribution.ts';
import type { PolicyInputs, ShownPolicy } from '../../src/domain/policy.ts';
import { DAY_MS, MOST_SKEW_MS } from '../../src/domain/time.ts';

const AT = 1_790_000_000_000;
const EVENT_ID = 'evt_this' as EventId;
const OTHER_EVENT_ID = 'evt_other' as EventId;

const delivery: EventHistory['delivery'] = {
  deliveryId: 'del_1' as DeliveryId,
  provider: 'stripe',
  receivedAt: AT,
  processingStatus: 'processed',
  lastError: null,
  isReconciled: false,
  secretSetAt: AT - 5,
  secretEnvironment: 'production',
  bodySha256: 'ab12',
  bodyBytes: 77,
};

const event: ExplainedEvent = {
  sourceEventId: 'evt_Fake1',
  kind: 'purchase',
  environment: 'production',
  occurredAt: AT - 100,
  productId: 'lantern.plus',
  store: 'stripe',
  paymentRef: 'in_Fake1',
  currency: 'EUR',
  amountMinor: 999,
  tax: null,
  storeFee: null,
  amountCents: 1_085,
  fxUnits: '1',
  fxWorthUsd: '1.0845',
  fxSource: 'ecb 2026-09-20',
  customerUserId: 'user-1',
  likelyCause: null,
};

const attribution: NonNullable<ExplainedUser['attribution']> = {
  attributionId: 'att_1' as AttributionId,
  decided: true,
  affiliateId: 'aff_1' as AffiliateId,
  affiliateName: 'First creator',
  linkId: 'lnk_1' as LinkId,
  clickId: 'clk_1' as ClickId,
  matchMethod: 'claim_token',
  touchedAt: AT - 1_000,
  firstOpenAt: AT - 900,
  boundAt: AT - 800,
  lostTouches: [],
};

const user: ExplainedUser = {
  customerUserId: 'user-1',
  identified: true,
  similarUserIds: [],
  attribution,
  testAttribution: null,
};

const payment: ExplainedPayment = {
  firstEventId: EVENT_ID,
  occurredAt: AT - 100,
  attributionWindowDays: 7,
  likelyCause: null,
  isAttributed: true,
  countedElsewhere: false,
  users: [user],
  codes: [],
  attributableKey: null,
};

const earning: ExplainedCommission = {
  commissionId: 'com_1' as CommissionId,
  eventId: EVENT_ID,
  kind: 'earning',
  status: 'pending',
  rateBps: 2_000,
  rateSource: 'app',
  baseCents: 1_085,
  amountCents: 217,
  occurredAt: AT - 100,
  dueAt: AT + 100,
  payoutId: null,
};

const reversal: ExplainedCommission = {
  ...earning,
  commissionId: 'com_2' as CommissionId,
  eventId: OTHER_EVENT_ID,
  kind: 'reversal',
  amountCents: -60,
};

const history: EventHistory = {
  eventId: EVENT_ID,
  delivery,
  event,
  duplicateOf: null,
  payment,
  commissions: [earning],
};

const lostTouch = { affiliateId: 'aff_2' as AffiliateId, matchMethod: 'code', touchedAt: AT } as const;

function explain(over: Partial<EventHistory> = {}, scheme: 'static_token' | 'hmac' = 'hmac') {
  return explainEvent({ ...history, ...over }, { title: 'Stripe', scheme });
}

/** Returns the step of that name, and expects that there is exactly one. */
function step(name: ExplainedStep['step'], over: Partial<EventHistory> = {}): ExplainedStep {
  const found = explain(over).filter((explained) => explained.step === name);
  expect(found).toHaveLength(1);
  return found[0]!;
}

/** Matches an explanation that contains these words. */
const saying = (words: string): string => expect.stringMatching(words) as unknown as string;

describe('the steps of an explanation', () => {
  test('an event that was read has all six steps in order', () => {
    expect(explain().map((explained) => explained.step)).toEqual(EXPLANATION_STEPS);
    expect(EXPLANATION_STEPS).toEqual([
      'verify',
      'store_raw',
      'normalize',
      'dedupe',
      'attribute',
      'write_commission',
    ]);
  });

  test.each<[string, Partial<EventHistory>, readonly string[]]>([
    ['a request that was refused', { delivery: { ...delivery, processingStatus: 'rejected' } }, ['verify']],
    ['a body that was not read', { event: null }, ['verify', 'store_raw', 'normalize']],
    [
      'an event that was reported before',
      { event: null, duplicateOf: OTHER_EVENT_ID },
      ['verify', 'store_raw', 'normalize', 'dedupe'],
    ],
  ])('the explanation of %s ends with the step that ended the delivery', (_, over, steps) => {
    expect(explain(over).map((explained) => explained.step)).toEqual(steps);
  });
});

describe('the step verify', () => {
  test('the step verify states the proof, the provider and the secret', () => {
    expect(explain({}, 'static_token')[0]).toEqual({
      step: 'verify',
      decision: 'verified',
      explanation: saying('token in the Authorization header .* set for Stripe'),
      facts: {
        provider: 'stripe',
        scheme: 'static_token',
        receivedAt: AT,
        secretSetAt: AT - 5,
        secretEnvironment: 'production',
      },
    });
    expect(explain({}, 'hmac')[0]?.explanation).toMatch(
      /signature over timestamp and body .* set for Stripe/,
    );
  });

  test('the step verify says that the operator added an event from an export', () => {
    expect(explain({ delivery: { ...delivery, isReconciled: true } })[0]).toEqual({
      step: 'verify',
      decision: 'reconciled',
      explanation: saying('operator added this event from an export of Stripe'),
      facts: expect.objectContaining({ provider: 'stripe' }),
    });
  });

  test.each([
    ['the stored reason', 'the time is too old', 'refused: the time is too old\\.'],
    ['a general reason if none is stored', null, 'refused: its proof does not match\\.'],
  ])('the explanation of a refusal gives %s', (_, lastError, words) => {
    const refused = { ...delivery, processingStatus: 'rejected', lastError };
    expect(explain({ delivery: refused })).toEqual([
      {
        step: 'verify',
        decision: 'rejected',
        explanation: saying(words),
        facts: expect.objectContaining({ provider: 'stripe', secretSetAt: AT - 5 }),
      },
    ]);
  });
});

test('the step store_raw states digest and length of the body', () => {
  expect(step('store_raw')).toEqual({
    step: 'store_raw',
    decision: 'stored',
    explanation: saying('stored byte for byte'),
    facts: { deliveryId: 'del_1', bodySha256: 'ab12', bodyBytes: 77 },
  });
});

describe('the step normalize', () => {
  test('the step normalize states the kind and the amount, with all values as facts', () => {
    expect(step('normalize')).toEqual({
      step: 'normalize',
      decision: 'purchase',
      explanation: 'The body was read as an event of the kind purchase, with €9.99.',
      facts: {
        kind: 'purchase',
        environment: 'production',
        occurredAt: AT - 100,
        productId: 'lantern.plus',
        store: 'stripe',
        paymentRef: 'in_Fake1',
        currency: 'EUR',
        amountMinor: 999,
        customerUserId: 'user-1',
      },
    });
  });

  test('the step normalize states no amount and no currency that the event does not have', () => {
    const says = (over: Partial<ExplainedEvent>) => step('normalize', { event: { ...event, ...over } });
    expect(says({ amountMinor: null, currency: null }).explanation).toBe(
      'The body was read as an event of the kind purchase.',
    );
    expect(says({ currency: null }).explanation).toBe('The body was read as an event of the kind purchase.');
    expect(says({ amountMinor: null }).explanation).toBe(
      'The body was read as an event of the kind purchase.',
    );
  });

  test.each([
    ['USD', 999, '$9.99'],
    ['USD', -5, '-$0.05'],
    ['USD', 123_456, '$1,234.56'],
    ['JPY', 500, '¥500'],
    // A space that does not break separates a code from its number.
    ['KWD', 1_250, 'KWD\u00A01.250'],
  ])('the step normalize states an amount of %s with its decimals', (currency, amountMinor, text) => {
    const paid = { ...event, currency, amountMinor };
    expect(step('normalize', { event: paid }).explanation).toBe(
      `The body was read as an event of the kind purchase, with ${text}.`,
    );
  });

  // A tax that the provider states, and a store fee of 15 % that it does not.
  test.each<[number | null, number]>([
    [999, 150],
    [null, 0],
  ])(
    'the step normalize of an amount of %p states the tax as reported and the store fee as estimated',
    (amountMinor, storeFeeMinor) => {
      const paid = { ...event, amountMinor, tax: { minor: 160 }, storeFee: { ppm: 150_000 } };
      expect(step('normalize', { event: paid }).facts).toMatchObject({
        tax: { amountMinor: 160, estimated: false },
        storeFee: { amountMinor: storeFeeMinor, estimated: true },
      });
    },
  );

  test('the step normalize points out a sandbox event', () => {
    const sandbox = { ...event, environment: 'sandbox' } as const;
    expect(step('normalize', { event: sandbox }).explanation).toMatch(
      /€9\.99\. It is a sandbox event, .* never earns/,
    );
  });

  test.each<[string, string | null, string]>([
    ['failed', 'data.id is missing', 'could not be read: data\\.id is missing\\.'],
    ['failed', null, 'could not be read: no reason was stored\\.'],
    ['ignored', 'a thin event', 'event is ignored: a thin event\\.'],
  ])('the step normalize of a body that %s states the reason %p', (processingStatus, lastError, words) => {
    const over = { event: null, delivery: { ...delivery, processingStatus, lastError } };
    expect(step('normalize', over)).toEqual({
      step: 'normalize',
      decision: processingStatus,
      explanation: saying(words),
      facts: {},
    });
  });

  test('the step normalize of an unfinished delivery is processing, with its last error as a fact', () => {
    const over = { event: null, delivery: { ...delivery, processingStatus: 'stored', lastError: 'away' } };
    expect(step('normalize', over)).toEqual({
      step: 'normalize',
      decision: 'processing',
      explanation: CAUSE_EXPLANATIONS.processing,
      facts: { lastError: 'away' },
    });
  });

  test('the body of a duplicate counts as read, whatever the status of the delivery', () => {
    const over = {
      event: null,
      duplicateOf: OTHER_EVENT_ID,
      delivery: { ...delivery, processingStatus: 'ignored' },
    };
    expect(step('normalize', over)).toEqual({
      step: 'normalize',
      decision: 'read',
      explanation: saying('was read as an event'),
      facts: {},
    });
  });
});

describe('the step dedupe', () => {
  test('the step dedupe of a first event says so', () => {
    expect(step('dedupe')).toEqual({
      step: 'dedupe',
      decision: 'first',
      explanation: saying('The event was not reported before'),
      facts: { sourceEventId: 'evt_Fake1' },
    });
  });

  test('the step dedupe of a duplicate names the first event', () => {
    expect(step('dedupe', { event: null, duplicateOf: OTHER_EVENT_ID })).toEqual({
      step: 'dedupe',
      decision: 'duplicate',
      explanation: saying('Stripe reported the same event before\\. .* changed nothing'),
      facts: { duplicateOfEventId: OTHER_EVENT_ID },
    });
  });

  test.each<EventKind>(['purchase', 'renewal', 'trial_converted', 'product_change'])(
    'the step dedupe of a %s names the event that reported its payment first',
    (kind) => {
      const over = { event: { ...event, kind }, payment: { ...payment, firstEventId: OTHER_EVENT_ID } };
      expect(step('dedupe', over)).toEqual({
        step: 'dedupe',
        decision: 'same_payment',
        explanation: saying('Another event reported the same payment.*counts once'),
        facts: { sourceEventId: 'evt_Fake1', firstEventId: OTHER_EVENT_ID },
      });
    },
  );

  test('a refund or an event without a payment never counts as the same payment', () => {
    const others = { ...payment, firstEventId: OTHER_EVENT_ID };
    expect(step('dedupe', { event: { ...event, kind: 'refund' }, payment: others }).decision).toBe('first');
    expect(step('dedupe', { payment: null }).decision).toBe('first');
  });
});

describe('the step attribute', () => {
  test.each([
    ['claim_token', 'the claim token of a click'],
    ['code', 'by a link code'],
    ['deferred', 'a deferred match with a click from the same address'],
  ] as const)(
    'the step attribute names the user, the creator and the %s that decided',
    (matchMethod, words) => {
      const users = [{ ...user, attribution: { ...attribution, matchMethod } }];
      const explained = step('attribute', { payment: { ...payment, users } });
      expect(explained).toEqual({
        step: 'attribute',
        decision: 'attributed',
        explanation: saying(`^The user is user-1\\. The device came through First creator by .*\\.$`),
        facts: { users },
      });
      expect(explained.explanation).toContain(words);
      expect(explained.explanation).not.toContain('first touch');
    },
  );

  test('the step attribute says that somebody attributed the user by hand', () => {
    const users = [{ ...user, attribution: { ...attribution, matchMethod: 'manual' as const } }];
    expect(step('attribute', { payment: { ...payment, users } }).explanation).toBe(
      'The user is user-1. Somebody attributed the user to First creator by hand.',
    );
  });

  test.each([
    [[lostTouch], 'The first touch counts. A later touch does not.'],
    [[lostTouch, lostTouch], 'The first touch counts. 2 later touches do not.'],
  ])('the step attribute counts lost touches (%#)', (lostTouches, words) => {
    const users = [{ ...user, attribution: { ...attribution, lostTouches } }];
    expect(step('attribute', { payment: { ...payment, users } }).explanation).toContain(words);
  });

  // @promise explained-codes
  test.each<[ExplainedCode['state'], boolean, string]>([
    ['in_force', true, 'The purchase came with the code SPRING20 of Ada: codes take no user from a creator.'],
    ['in_force', false, 'The purchase came with the code SPRING20 of Ada.'],
    ['unregistered', false, 'The purchase came with the code SPRING20, which no creator has.'],
    ['registered_later', false, 'SPRING20 of Ada, who has it only since after the purchase.'],
    ['deactivated', false, 'SPRING20 of Ada, which was deactivated before the purchase.'],
    ['creator_removed', false, 'SPRING20 of Ada, who is removed.'],
    [
      'user_attributed',
      true,
      'The subscription began with the code SPRING20 of Ada, and a user of it belongs to a creator: codes take no user from a creator.',
    ],
    ['off', false, 'SPRING20 of Ada, and the app did not take purchase codes then.'],
  ])('the step attribute says why a code that is %s did not count (%#)', (state, hasCreator, words) => {
    const code: ExplainedCode = {
      namespace: 'app_store',
      value: 'SPRING20',
      state,
      affiliateId: state === 'unregistered' ? null : lostTouch.affiliateId,
      affiliateName: state === 'unregistered' ? null : 'Ada',
    };
    const users = [hasCreator ? user : { ...user, attribution: null }];
    const over = {
      payment: { ...payment, users, codes: [code], likelyCause: 'user_not_attributed' as const },
    };
    const explained = step('attribute', over);
    expect(explained.explanation.endsWith(words)).toBe(true);
    expect(explained.facts).toMatchObject({ codes: [code] });
  });

  test('the step attribute says that a key stands for a user', () => {
    const users = [{ ...user, customerUserId: 'sub_1', keySource: 'stripe' }];
    expect(step('attribute', { payment: { ...payment, users } }).explanation).toMatch(
      /^No user is known: sub_1, an id of stripe, stands for one\./,
    );
  });

  const ownCode: ExplainedCode = {
    namespace: 'app_store',
    value: 'SPRING20',
    state: 'in_force',
    affiliateId: attribution.affiliateId,
    affiliateName: attribution.affiliateName,
  };
  const codeOfAda: ExplainedCode = {
    ...ownCode,
    value: 'ADA10',
    affiliateId: lostTouch.affiliateId,
    affiliateName: 'Ada',
  };

  test('the step attribute says nothing more of the code that decided', () => {
    const decided = { ...attribution, matchMethod: 'purchase_code' as const };
    const users = [{ ...user, attribution: decided }];
    expect(step('attribute', { payment: { ...payment, users, codes: [ownCode] } }).explanation).toMatch(
      /A purchase of this customer came with a code of First creator\.$/,
    );
  });

  // @promise explained-codes
  test.each<[string, AttributionMethod, readonly ExplainedCode[], string]>([
    [
      'where a code decided, the explanation names only the codes of other creators',
      'purchase_code',
      [ownCode, codeOfAda],
      'A purchase of this customer came with a code of First creator. The purchase came with the code ADA10 of Ada: codes take no user from a creator.',
    ],
    [
      'where a touch decided, the explanation names every code',
      'code',
      [ownCode, codeOfAda],
      'The device came through First creator by a link code. The purchase came with the code SPRING20 of First creator: codes take no user from a creator. The purchase came with the code ADA10 of Ada: codes take no user from a creator.',
    ],
  ])('%s', (_, matchMethod, codes, words) => {
    const users = [{ ...user, attribution: { ...attribution, matchMethod } }];
    expect(step('attribute', { payment: { ...payment, users, codes } })).toEqual({
      step: 'attribute',
      decision: 'attributed',
      explanation: `The user is user-1. ${words}`,
      facts: { users, codes },
    });
  });

  // @promise explained-codes
  test.each<[LikelyCause, ExplainedCode['state'], boolean]>([
    ['missing_user_id', 'in_force', true],
    ['anonymous_user_id', 'in_force', true],
    ['missing_user_id', 'deactivated', false],
    ['user_never_identified', 'in_force', false],
  ])(
    'a payment with the cause %s and a code that is %s waits for a user: %s',
    (likelyCause, state, waits) => {
      const codes = [{ ...codeOfAda, state }];
      const { decision, explanation } = step('attribute', {
        payment: { ...payment, users: [], codes, likelyCause },
      });
      expect(decision).toBe(likelyCause);
      expect(explanation.startsWith(`${CAUSE_EXPLANATIONS[likelyCause]} The purchase came with`)).toBe(true);
      const words =
        ' If no event names the user within a minute, the code counts for the subscription, or for this payment alone.';
      expect(explanation.endsWith(words)).toBe(waits);
    },
  );

  test('a payment waits for a user if one of its codes is in force', () => {
    const codes = [{ ...ownCode, state: 'deactivated' as const }, codeOfAda];
    const unnamed = { ...payment, users: [], codes, likelyCause: 'missing_user_id' } as const;
    expect(step('attribute', { payment: unnamed }).explanation).toContain(
      'which was deactivated before the purchase. The purchase came with the code ADA10 of Ada. If no event names the user within a minute',
    );
  });

  test('a payment without a code does not wait for a user', () => {
    const unnamed = { ...payment, users: [], likelyCause: 'missing_user_id' } as const;
    expect(step('attribute', { payment: unnamed }).explanation).toBe(CAUSE_EXPLANATIONS.missing_user_id);
  });

  // @promise explained-codes
  test('a code of one creator takes nobody from another creator whose attribution did not decide', () => {
    const nobody = { ...user, customerUserId: 'user-2', attribution: null };
    const users = [nobody, { ...user, attribution: { ...attribution, decided: false } }];
    const undecided = {
      ...payment,
      users,
      codes: [codeOfAda],
      likelyCause: 'outside_attribution_window',
    } as const;
    expect(step('attribute', { payment: undecided }).explanation).toBe(
      `${CAUSE_EXPLANATIONS.outside_attribution_window} The purchase came with the code ADA10 of Ada: codes take no user from a creator.`,
    );
  });

  test('the key that a person can attribute is among the facts of a payment that names no user', () => {
    const attributableKey = {
      customerUserId: 'sub_1',
      keySource: 'stripe',
      standsFor: 'subscription',
    } as const;
    const unnamed = { ...payment, users: [], likelyCause: 'missing_user_id', attributableKey } as const;
    expect(step('attribute', { payment: unnamed }).facts).toEqual({ users: [], attributableKey });
  });

  describe('the step attribute of a customer who was attributed by hand from a time on', () => {
    const BY_HAND =
      'The customer was attributed by hand from a later time on, so this payment earns nothing. It stays so.';
    const explanationOf = (over: Partial<ExplainedPayment>, by: Partial<typeof attribution> = {}) => {
      const manual = { ...attribution, decided: false, matchMethod: 'manual' as const, touchedAt: AT, ...by };
      const users = [
        { ...user, customerUserId: 'user-2', attribution: null },
        { ...user, attribution: manual },
      ];
      const late = { ...payment, users, likelyCause: 'outside_attribution_window' as const, ...over };
      return step('attribute', { payment: late }).explanation;
    };

    test('a payment from before an attribution by hand earns nothing, and no setting is advised', () => {
      expect(explanationOf({ occurredAt: AT - 1 })).toBe(BY_HAND);
    });

    test.each<[string, Partial<ExplainedPayment>, Partial<typeof attribution>]>([
      ['at that time', { occurredAt: AT }, {}],
      ['before a touch', { occurredAt: AT - 1 }, { matchMethod: 'code' }],
    ])('a payment %s is not explained by an attribution by hand', (_, over, by) => {
      expect(explanationOf(over, by)).toBe(CAUSE_EXPLANATIONS.outside_attribution_window);
    });

    test('a payment with another cause is not explained by an attribution by hand', () => {
      const other = { occurredAt: AT - 1, likelyCause: 'affiliate_paused' as const };
      expect(explanationOf(other)).toBe(CAUSE_EXPLANATIONS.affiliate_paused);
    });

    test('a payment was made a minute after it was reported at the latest, whatever time the provider states', () => {
      const later = { occurredAt: AT + DAY_MS };
      expect(explanationOf(later, { touchedAt: AT + MOST_SKEW_MS })).toBe(
        CAUSE_EXPLANATIONS.outside_attribution_window,
      );
      expect(explanationOf(later, { touchedAt: AT + MOST_SKEW_MS + 1 })).toBe(BY_HAND);
    });
  });

  test('the step attribute names the user whose attribution decided', () => {
    const users = [
      { ...user, customerUserId: 'nobody', attribution: null },
      { ...user, customerUserId: 'loser', attribution: { ...attribution, decided: false } },
      user,
    ];
    expect(step('attribute', { payment: { ...payment, users } }).explanation).toMatch(
      /^The user is user-1\./,
    );
  });

  test('the step attribute gives the cause of a payment without a deciding attribution', () => {
    const users = [{ ...user, attribution: { ...attribution, decided: false } }];
    const undecided = { ...payment, users };
    const because = (likelyCause: LikelyCause) =>
      step('attribute', { payment: { ...undecided, likelyCause } });
    expect(because('user_not_attributed')).toEqual({
      step: 'attribute',
      decision: 'user_not_attributed',
      explanation: CAUSE_EXPLANATIONS.user_not_attributed,
      facts: { users },
    });
    expect(because('outside_attribution_window')).toEqual({
      step: 'attribute',
      decision: 'outside_attribution_window',
      explanation: CAUSE_EXPLANATIONS.outside_attribution_window,
      facts: { users, paidAt: AT - 100, attributionWindowDays: 7 },
    });
    const counted = { ...undecided, countedElsewhere: true };
    expect(step('attribute', { payment: counted })).toEqual({
      step: 'attribute',
      decision: 'counted_elsewhere',
      explanation: saying('attributed under another of its references'),
      facts: { users },
    });
    expect(step('attribute', { payment: { ...counted, codes: [codeOfAda] } }).facts).toEqual({
      users,
      codes: [codeOfAda],
    });
  });

  test('the step attribute gives the cause of the event before the payment is evaluated, otherwise processing', () => {
    const undecided = { ...payment, users: [] };
    const nameless = { ...event, likelyCause: 'missing_user_id' } as const;
    expect(step('attribute', { event: nameless, payment: undecided }).decision).toBe('missing_user_id');
    const evaluated = { ...undecided, likelyCause: 'user_never_identified' } as const;
    expect(step('attribute', { event: nameless, payment: evaluated }).decision).toBe('user_never_identified');
    expect(step('attribute', { payment: undecided })).toEqual({
      step: 'attribute',
      decision: 'processing',
      explanation: CAUSE_EXPLANATIONS.processing,
      facts: { users: [] },
    });
  });

  test('a sandbox event is not attributed, even if its user is known', () => {
    const sandbox = { ...event, environment: 'sandbox' } as const;
    expect(step('attribute', { event: sandbox })).toEqual({
      step: 'attribute',
      decision: 'not_needed',
      explanation: saying('Sandbox events are not attributed'),
      facts: { users: [user] },
    });
    expect(step('attribute', { event: sandbox, payment: null }).facts).toEqual({ users: [] });
  });

  test.each([
    ['claim_token', 'the claim token of a click'],
    ['code', 'a link code'],
    ['deferred', 'a deferred match with a click from the same address'],
  ] as const)(
    'a sandbox event says for which creator a purchase would count that a device with a test key reported: %s',
    (matchMethod, words) => {
      const testAttribution = {
        attributionId: 'att_2' as AttributionId,
        affiliateId: 'aff_2' as AffiliateId,
        affiliateName: 'Ada',
        linkId: null,
        matchMethod,
        touchedAt: AT - 1_000,
      };
      const users = [user, { ...user, customerUserId: 'user-2', testAttribution }];
      const sandbox = { ...event, environment: 'sandbox' } as const;
      expect(step('attribute', { event: sandbox, payment: { ...payment, users } })).toEqual({
        step: 'attribute',
        decision: 'not_needed',
        explanation: `Sandbox events are not attributed. The test key attributed the user to Ada by ${words}: with a live key, a production purchase would count for this creator.`,
        facts: { users },
      });
    },
  );

  test('a sandbox event without a test attribution says no more than that it is not attributed', () => {
    const sandbox = { ...event, environment: 'sandbox' } as const;
    expect(step('attribute', { event: sandbox }).explanation).toBe('Sandbox events are not attributed.');
  });

  test.each<EventKind>(['trial_started', 'cancellation', 'expiration', 'transfer', 'test', 'other'])(
    'an event of kind %s moves no money and needs no attribution',
    (kind) => {
      expect(step('attribute', { event: { ...event, kind } })).toEqual({
        step: 'attribute',
        decision: 'not_needed',
        explanation: saying('moves no money'),
        facts: {},
      });
    },
  );

  test.each<EventKind>(['refund', 'refund_reversed', 'chargeback', 'chargeback_reversed'])(
    'an event of kind %s without its payment waits for the payment',
    (kind) => {
      expect(step('attribute', { event: { ...event, kind }, payment: null })).toEqual({
        step: 'attribute',
        decision: 'waiting_for_payment',
        explanation: saying('not known yet.* counts when the payment arrives'),
        facts: { paymentRef: 'in_Fake1' },
      });
    },
  );

  test('a refund without a payment reference does not wait', () => {
    const nameless = { ...event, kind: 'refund', paymentRef: null } as const;
    expect(step('attribute', { event: nameless, payment: null })).toEqual({
      step: 'attribute',
      decision: 'not_needed',
      explanation: saying('contains no payment'),
      facts: { users: [] },
    });
  });

  test('the step attribute of a paid event without a payment gives its cause if it has one', () => {
    const unknown = { event: { ...event, likelyCause: 'price_unknown' as const }, payment: null };
    expect(step('attribute', unknown)).toEqual({
      step: 'attribute',
      decision: 'price_unknown',
      explanation: CAUSE_EXPLANATIONS.price_unknown,
      facts: { users: [] },
    });
    expect(step('attribute', { payment: null })).toMatchObject({
      decision: 'not_needed',
      explanation: saying('contains no payment'),
    });
  });
});

describe('the step write_commission', () => {
  const price = {
    currency: 'EUR',
    amountMinor: 999,
    amountCents: 1_085,
    fxUnits: '1',
    fxWorthUsd: '1.0845',
    fxSource: 'ecb 2026-09-20',
  };

  test.each([
    ['app', "$2.17: 20 % (the app's rate at the time of the evaluation) of $10.85."],
    ['affiliate', "$2.17: 20 % (the creator's own rate at the time of the evaluation) of $10.85."],
    [null, '$2.17: 20 % of $10.85.'],
  ] as const)(
    'the explanation of an earning contains its calculation (rate of: %s)',
    (rateSource, sentence) => {
      const commissions = [{ ...earning, rateSource }];
      expect(step('write_commission', { commissions })).toEqual({
        step: 'write_commission',
        decision: 'earned',
        explanation: sentence,
        facts: { price, commissions },
      });
    },
  );

  const policy: ShownPolicy = {
    policyId: 'pol_1' as PolicyId,
    name: 'Creators 2026',
    policyVersionId: 'plv_3' as PolicyVersionId,
    version: 3,
    ruleIndex: 1,
    base: 'net_of_tax',
    baseEstimated: false,
  };
  const policyInputs: PolicyInputs = {
    grossCents: 1_085,
    paidMinor: 999,
    tax: null,
    storeFee: null,
    store: 'stripe',
    productId: 'lantern.plus',
    paymentNumber: 4,
    firstPaidAt: AT - 90 * DAY_MS,
    monthsSinceFirst: 2,
  };

  test.each<[string, Partial<ExplainedCommission>, string]>([
    [
      'the share, its base and the rule',
      { policy },
      '$2.17: 12.5 % of $10.85, the price without tax, by rule 2 of the policy Creators 2026, version 3.',
    ],
    [
      'that its base is estimated',
      { policy: { ...policy, base: 'proceeds', baseEstimated: true } },
      '$2.17: 12.5 % of $10.85, the proceeds (estimated), by rule 2 of the policy Creators 2026, version 3.',
    ],
    [
      'a fixed amount, and what the payment is worth',
      { amountCents: 300, rateBps: 0, policy: { ...policy, base: 'gross', flatCents: 300 } },
      '$3.00: the fixed amount of $3.00 (the payment is worth $10.85, the price), by rule 2 of the policy Creators 2026, version 3.',
    ],
    [
      'that the creator has the policy',
      { policy, policyScope: 'affiliate' },
      '$2.17: 12.5 % of $10.85, the price without tax, by rule 2 of the policy Creators 2026, version 3, assigned to the creator.',
    ],
    [
      "that the creator's group has the policy",
      { policy, policyScope: 'group' },
      "$2.17: 12.5 % of $10.85, the price without tax, by rule 2 of the policy Creators 2026, version 3, assigned to the creator's group.",
    ],
    [
      'that the app has the policy, and which payment of the customer it is',
      { policy, policyScope: 'app', policyInputs },
      '$2.17: 12.5 % of $10.85, the price without tax, by rule 2 of the policy Creators 2026, version 3, assigned to the app. It is payment 4 of this customer, in month 3.',
    ],
  ])('the explanation of an earning by a policy states %s', (_, over, explanation) => {
    const commissions = [{ ...earning, rateBps: 1_250, rateSource: 'policy' as const, ...over }];
    expect(step('write_commission', { commissions })).toEqual({
      step: 'write_commission',
      decision: 'earned',
      explanation,
      facts: { price, commissions },
    });
  });

  test('the explanation of an earning mentions later refunds', () => {
    const commissions = [earning, reversal];
    const explained = step('write_commission', { commissions });
    expect(explained.explanation).toMatch(/\$10\.85\. Later refunds and disputes have rows of their own\.$/);
    expect(explained.facts).toEqual({ price, commissions });
  });

  test('the explanation of an earning that a correction takes back states both amounts', () => {
    const correction = {
      ...earning,
      commissionId: 'com_4' as CommissionId,
      kind: 'correction',
      amountCents: -157,
    } as const;
    const commissions = [earning, { ...reversal, eventId: EVENT_ID }, correction];
    expect(step('write_commission', { commissions })).toEqual({
      step: 'write_commission',
      decision: 'corrected',
      explanation:
        "$2.17: 20 % (the app's rate at the time of the evaluation) of $10.85. The same payment earned under another of its references, too. A correction of -$1.57 takes back the rest.",
      facts: { price, commissions },
    });
  });

  test('the explanation of a refund states the sum of only its own rows', () => {
    const refund = { ...event, kind: 'refund' } as const;
    const own = [reversal, { ...reversal, commissionId: 'com_3' as CommissionId, amountCents: -40 }];
    const over = { eventId: OTHER_EVENT_ID, event: refund, commissions: [earning, ...own] };
    expect(step('write_commission', over)).toEqual({
      step: 'write_commission',
      decision: 'reversed',
      explanation: saying(
        '^-\\$1\\.00: the share of the commission for the amount that was refunded or returned',
      ),
      facts: { price, commissions: own },
    });
  });

  test("the payment's cause takes precedence over the event's", () => {
    const paused = { ...payment, likelyCause: 'affiliate_paused' as const };
    const causes = { event: { ...event, likelyCause: 'price_unknown' as const }, commissions: [] };
    expect(step('write_commission', { ...causes, payment: paused })).toEqual({
      step: 'write_commission',
      decision: 'affiliate_paused',
      explanation: CAUSE_EXPLANATIONS.affiliate_paused,
      facts: { price, commissions: [] },
    });
    expect(step('write_commission', { ...causes, payment: null }).decision).toBe('price_unknown');
  });

  test('a sandbox event has no commission and no cause, and says why', () => {
    const sandbox = { ...event, environment: 'sandbox', likelyCause: 'price_unknown' } as const;
    expect(step('write_commission', { event: sandbox, commissions: [] })).toMatchObject({
      decision: 'none',
      explanation: saying('sandbox event never earns'),
    });
  });

  test('the explanation of an event whose payment earned through another event says so', () => {
    const commissions = [{ ...earning, eventId: OTHER_EVENT_ID }];
    expect(step('write_commission', { commissions })).toEqual({
      step: 'write_commission',
      decision: 'none',
      explanation: saying('earned its commission through another event'),
      facts: { price, commissions },
    });
    expect(step('write_commission', { commissions: [] }).explanation).toContain(
      'No commission is due for this event',
    );
  });
});
