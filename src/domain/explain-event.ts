import type { LikelyCause } from './likely-causes.ts';
import type { MatchMethod } from './attribution.ts';
import type {
  EventHistory,
  ExplainedCommission,
  ExplainedDelivery,
  ExplainedEvent,
  ExplainedCode,
  ExplainedPayment,
  ExplainedUser,
} from './event-history.ts';
import { explainNothing, MOVES_NO_MONEY, SANDBOX_NEVER_EARNS, WAITING_FOR_PAYMENT } from './event-outcome.ts';
import { ADJUSTMENT_KINDS, componentMinor, PAYMENT_KINDS } from './events.ts';
import type { PaymentComponent } from './events.ts';
import { CAUSE_EXPLANATIONS } from './likely-causes.ts';
import { formatMoney } from './money.ts';
import { paidAtOf } from './payers.ts';
import type { ShownPolicy } from './policy.ts';
import { BASE_WORDS } from './policy-sentences.ts';

export const EXPLANATION_STEPS = [
  'verify',
  'store_raw',
  'normalize',
  'dedupe',
  'attribute',
  'write_commission',
] as const;
type StepName = (typeof EXPLANATION_STEPS)[number];

/** What one step decided: a stable word for programs, a sentence for people, and the facts behind it. */
export interface ExplainedStep {
  readonly step: StepName;
  readonly decision: string;
  readonly explanation: string;
  readonly facts: Readonly<Record<string, unknown>>;
}

/** What the explanation says of the provider: its name for people, and how its requests are verified. */
interface ProviderFacts {
  readonly title: string;
  readonly scheme: 'static_token' | 'hmac';
}

/** Returns what each step decided about an event, in order. The last step is the one that ended the delivery. */
export function explainEvent(history: EventHistory, provider: ProviderFacts): ExplainedStep[] {
  const { event, duplicateOf } = history;
  const verified = verify(history, provider);
  if (verified.decision === 'rejected') return [verified];
  const stored = [verified, storeRaw(history)];
  if (event !== null) {
    return [
      ...stored,
      normalize(event),
      dedupe(history, event),
      attribute(history, event),
      writeCommission(history, event),
    ];
  }
  if (duplicateOf === null) return [...stored, withoutEvent(history)];
  const normalized = step('normalize', 'read', 'The body was read as an event.', {});
  return [...stored, normalized, duplicate(history, provider)];
}

function step(
  name: StepName,
  decision: string,
  explanation: string,
  facts: Readonly<Record<string, unknown>>,
): ExplainedStep {
  return { step: name, decision, explanation, facts };
}

function verify({ delivery }: EventHistory, { title, scheme }: ProviderFacts): ExplainedStep {
  const { provider, receivedAt, secretSetAt, secretEnvironment, lastError } = delivery;
  const facts = { provider, scheme, receivedAt, secretSetAt, secretEnvironment };
  if (delivery.processingStatus === 'rejected') {
    return step(
      'verify',
      'rejected',
      `The request was refused: ${lastError ?? 'its proof does not match'}.`,
      facts,
    );
  }
  if (delivery.isReconciled) {
    return step(
      'verify',
      'reconciled',
      `The operator added this event from an export of ${title}. No webhook of the provider has this id.`,
      facts,
    );
  }
  const explanation =
    scheme === 'static_token'
      ? `The token in the Authorization header matches the token that was set for ${title}.`
      : `The signature over timestamp and body matches the secret that was set for ${title}.`;
  return step('verify', 'verified', explanation, facts);
}

function storeRaw({ delivery: { deliveryId, bodySha256, bodyBytes } }: EventHistory): ExplainedStep {
  return step('store_raw', 'stored', 'The request was stored byte for byte before it was processed.', {
    deliveryId,
    bodySha256,
    bodyBytes,
  });
}

/** The step `normalize` of a delivery without an event. */
function withoutEvent({ delivery: { processingStatus, lastError } }: EventHistory): ExplainedStep {
  const reason = lastError ?? 'no reason was stored';
  switch (processingStatus) {
    case 'failed':
      return step('normalize', 'failed', `The body could not be read: ${reason}.`, {});
    case 'ignored':
      return step('normalize', 'ignored', `The event is ignored: ${reason}.`, {});
    default:
      return step('normalize', 'processing', CAUSE_EXPLANATIONS.processing, { lastError });
  }
}

function normalize(event: ExplainedEvent): ExplainedStep {
  const {
    kind,
    environment,
    occurredAt,
    productId,
    store,
    paymentRef,
    currency,
    amountMinor,
    tax,
    storeFee,
    customerUserId,
  } = event;
  const amount =
    amountMinor === null || currency === null ? '' : `, with ${formatMoney(amountMinor, currency)}`;
  const sandbox = environment === 'sandbox' ? ' It is a sandbox event, so it never earns a commission.' : '';
  return step('normalize', kind, `The body was read as an event of the kind ${kind}${amount}.${sandbox}`, {
    kind,
    environment,
    occurredAt,
    productId,
    store,
    paymentRef,
    currency,
    amountMinor,
    ...(tax === null ? {} : { tax: explainComponent(tax, amountMinor) }),
    ...(storeFee === null ? {} : { storeFee: explainComponent(storeFee, amountMinor) }),
    customerUserId,
  });
}

/** Returns the amount of a component, in whole minor units of the payment's currency. */
function explainComponent(component: PaymentComponent, amountMinor: number | null) {
  return {
    amountMinor: componentMinor(component, amountMinor ?? 0),
    estimated: 'ppm' in component,
  };
}

/** The step `dedupe` of a delivery whose event another delivery reported before. */
function duplicate({ duplicateOf }: EventHistory, { title }: ProviderFacts): ExplainedStep {
  const explanation = `${title} reported the same event before. This delivery changed nothing.`;
  return step('dedupe', 'duplicate', explanation, { duplicateOfEventId: duplicateOf });
}

function dedupe({ eventId, payment }: EventHistory, { kind, sourceEventId }: ExplainedEvent): ExplainedStep {
  if (payment !== null && payment.firstEventId !== eventId && PAYMENT_KINDS.has(kind)) {
    return step(
      'dedupe',
      'same_payment',
      'Another event reported the same payment before. The payment counts once; the users that this event names count too.',
      { sourceEventId, firstEventId: payment.firstEventId },
    );
  }
  return step('dedupe', 'first', 'The event was not reported before.', { sourceEventId });
}

function attribute({ payment, delivery }: EventHistory, event: ExplainedEvent): ExplainedStep {
  const users = payment?.users ?? [];
  if (event.environment === 'sandbox') {
    const tested = users.flatMap(({ testAttribution }) => testAttribution ?? [])[0];
    const test =
      tested === undefined
        ? ''
        : ` The test key attributed the user to ${tested.affiliateName} by ${MATCH_DESCRIPTIONS[tested.matchMethod]}: with a live key, a production purchase would count for this creator.`;
    return step('attribute', 'not_needed', `Sandbox events are not attributed.${test}`, { users });
  }
  if (!PAYMENT_KINDS.has(event.kind) && !ADJUSTMENT_KINDS.has(event.kind)) {
    return step('attribute', 'not_needed', MOVES_NO_MONEY, {});
  }
  return payment === null ? attributeWithoutPayment(event) : attributePayment(payment, event, delivery);
}

function attributeWithoutPayment({ kind, paymentRef, likelyCause }: ExplainedEvent): ExplainedStep {
  if (ADJUSTMENT_KINDS.has(kind) && paymentRef !== null) {
    return step('attribute', 'waiting_for_payment', WAITING_FOR_PAYMENT, { paymentRef });
  }
  return likelyCause === null
    ? step('attribute', 'not_needed', 'The event contains no payment.', { users: [] })
    : step('attribute', likelyCause, CAUSE_EXPLANATIONS[likelyCause], { users: [] });
}

function attributePayment(
  payment: ExplainedPayment,
  event: ExplainedEvent,
  { receivedAt }: ExplainedDelivery,
): ExplainedStep {
  const { users, codes, attributableKey } = payment;
  const ofCodes = codes.length === 0 ? {} : { codes };
  const decided = users.find((user) => user.attribution?.decided === true);
  if (decided?.attribution) {
    const { attribution } = decided;
    const others = codes.filter(
      ({ affiliateId }) =>
        attribution.matchMethod !== 'purchase_code' || affiliateId !== attribution.affiliateId,
    );
    const explanation = [
      whoSentence(decided),
      touchSentence(attribution),
      ...others.map((code) => codeSentence(code, true)),
    ];
    return step('attribute', 'attributed', explanation.join(' '), { users, ...ofCodes });
  }
  if (payment.countedElsewhere) {
    const explanation = 'The same payment was attributed under another of its references.';
    return step('attribute', 'counted_elsewhere', explanation, { users, ...ofCodes });
  }
  // A payment has no cause before its first evaluation. Its event has one from the beginning.
  const cause = payment.likelyCause ?? event.likelyCause ?? 'processing';
  const { attributionWindowDays } = payment;
  const paidAt = paidAtOf({ occurredAt: payment.occurredAt, receivedAt });
  const facts = cause === 'outside_attribution_window' ? { users, paidAt, attributionWindowDays } : { users };
  const ofKey = attributableKey === null ? {} : { attributableKey };
  const hasCreator = users.some(({ attribution }) => attribution !== null);
  const waits =
    NAMES_NO_USER.has(cause) && codes.some(({ state }) => state === 'in_force') ? [WAITS_FOR_USER] : [];
  const ofCode = codes.map((code) => codeSentence(code, hasCreator));
  const isBeforeWord =
    cause === 'outside_attribution_window' &&
    users.some(({ attribution }) => attribution?.matchMethod === 'manual' && paidAt < attribution.touchedAt);
  const explanation = [
    isBeforeWord ? BEFORE_MANUAL_ATTRIBUTION : CAUSE_EXPLANATIONS[cause],
    ...ofCode,
    ...waits,
  ];
  return step('attribute', cause, explanation.join(' '), { ...facts, ...ofCodes, ...ofKey });
}

function whoSentence({ customerUserId, keySource }: ExplainedUser): string {
  return keySource === undefined
    ? `The user is ${customerUserId}.`
    : `No user is known: ${customerUserId}, an id of ${keySource}, stands for one.`;
}

/** Causes of a payment whose code binds its subscription. */
const NAMES_NO_USER: ReadonlySet<LikelyCause> = new Set(['missing_user_id', 'anonymous_user_id']);
const BEFORE_MANUAL_ATTRIBUTION =
  'The customer was attributed by hand from a later time on, so this payment earns nothing. It stays so.';
const WAITS_FOR_USER =
  'If no event names the user within a minute, the code counts for the subscription, or for this payment alone.';

/** Says why a code of the payment did not attribute it. `hasCreator`: a user whom the payment leads to belongs to a creator. */
function codeSentence({ value, state, affiliateName }: ExplainedCode, hasCreator: boolean): string {
  const came = `The purchase came with the code ${value}`;
  const of = `${came} of ${affiliateName}`;
  switch (state) {
    case 'in_force':
      return hasCreator ? `${of}: codes take no user from a creator.` : `${of}.`;
    case 'unregistered':
      return `${came}, which no creator has.`;
    case 'registered_later':
      return `${of}, who has it only since after the purchase.`;
    case 'deactivated':
      return `${of}, which was deactivated before the purchase.`;
    case 'creator_removed':
      return `${of}, who is removed.`;
    case 'user_attributed':
      return `The subscription began with the code ${value} of ${affiliateName}, and a user of it belongs to a creator: codes take no user from a creator.`;
    case 'off':
      return `${of}, and the app did not take purchase codes then.`;
  }
}

const MATCH_DESCRIPTIONS: Readonly<Record<MatchMethod, string>> = {
  claim_token: 'the claim token of a click',
  code: 'a link code',
  deferred: 'a deferred match with a click from the same address',
};

function touchSentence(attribution: NonNullable<ExplainedUser['attribution']>): string {
  const { affiliateName, matchMethod, lostTouches } = attribution;
  if (matchMethod === 'purchase_code')
    return `A purchase of this customer came with a code of ${affiliateName}.`;
  if (matchMethod === 'manual') return `Somebody attributed the user to ${affiliateName} by hand.`;
  const came = `The device came through ${affiliateName} by ${MATCH_DESCRIPTIONS[matchMethod]}.`;
  if (lostTouches.length === 0) return came;
  const later = lostTouches.length === 1 ? 'A later touch does' : `${lostTouches.length} later touches do`;
  return `${came} The first touch counts. ${later} not.`;
}

function writeCommission(
  { eventId, payment, commissions }: EventHistory,
  event: ExplainedEvent,
): ExplainedStep {
  const { amountCents, fxUnits, fxWorthUsd, fxSource, likelyCause, currency, amountMinor } = event;
  const price = { currency, amountMinor, amountCents, fxUnits, fxWorthUsd, fxSource };
  const own = commissions.filter((row) => row.eventId === eventId);
  const facts = { price, commissions: PAYMENT_KINDS.has(event.kind) ? commissions : own };
  const earning = own.find((row) => row.kind === 'earning');
  if (earning !== undefined) {
    const correction = own.find((row) => row.kind === 'correction');
    if (correction !== undefined) {
      const why = 'The same payment earned under another of its references, too.';
      const explanation = `${earningSentence(earning)} ${why} A correction of ${formatMoney(correction.amountCents, 'USD')} takes back the rest.`;
      return step('write_commission', 'corrected', explanation, facts);
    }
    const later =
      commissions.length > own.length ? ' Later refunds and disputes have rows of their own.' : '';
    return step('write_commission', 'earned', `${earningSentence(earning)}${later}`, facts);
  }
  if (own.length > 0) {
    const sum = own.reduce((total, row) => total + row.amountCents, 0);
    const explanation = `${formatMoney(sum, 'USD')}: the share of the commission for the amount that was refunded or returned.`;
    return step('write_commission', 'reversed', explanation, facts);
  }
  const cause = payment?.likelyCause ?? likelyCause;
  if (event.environment === 'sandbox') return step('write_commission', 'none', SANDBOX_NEVER_EARNS, facts);
  if (cause !== null) return step('write_commission', cause, CAUSE_EXPLANATIONS[cause], facts);
  return step('write_commission', 'none', explainNothing(event.kind, commissions.length > 0), facts);
}

function earningSentence(earning: ExplainedCommission): string {
  const { amountCents, rateBps, rateSource, baseCents, policy } = earning;
  if (policy !== undefined) return policySentence(earning, policy);
  const whose = rateSource === 'affiliate' ? "the creator's own rate" : "the app's rate";
  const source = rateSource === null ? '' : ` (${whose} at the time of the evaluation)`;
  return `${formatMoney(amountCents, 'USD')}: ${rateBps / 100} %${source} of ${formatMoney(baseCents, 'USD')}.`;
}

const SCOPES: Readonly<Record<NonNullable<ExplainedCommission['policyScope']>, string>> = {
  affiliate: 'the creator',
  group: "the creator's group",
  app: 'the app',
};

function policySentence(
  { amountCents, rateBps, baseCents, policyScope, policyInputs }: ExplainedCommission,
  { name, version, ruleIndex, base, baseEstimated, flatCents }: ShownPolicy,
): string {
  const about = baseEstimated ? ' (estimated)' : '';
  const of = `${formatMoney(baseCents, 'USD')}, ${BASE_WORDS[base]}${about}`;
  const earned =
    flatCents === undefined
      ? `${rateBps / 100} % of ${of}`
      : `the fixed amount of ${formatMoney(flatCents, 'USD')} (the payment is worth ${of})`;
  const assigned = policyScope === undefined ? '' : `, assigned to ${SCOPES[policyScope]}`;
  const which =
    policyInputs === undefined
      ? ''
      : ` It is payment ${policyInputs.paymentNumber} of this customer, in month ${policyInputs.monthsSinceFirst + 1}.`;
  return `${formatMoney(amountCents, 'USD')}: ${earned}, by rule ${ruleIndex + 1} of the policy ${name}, version ${version}${assigned}.${which}`;
}
