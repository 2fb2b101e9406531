import type { AffiliateId } from './ids.ts';
import type { LikelyCause } from './likely-causes.ts';
import { CANDIDATE_SOURCES } from './payment-snapshot.ts';
import type { BindingSnapshot, PaymentSnapshot, UserCandidate } from './payment-snapshot.ts';
import { DAY_MS, MOST_SKEW_MS } from './time.ts';
import { isSomebody } from './user-ids.ts';

/** Causes that a later binding can fix. Every other cause was a decision, and decisions are not retroactive. */
const IDENTITY_CAUSES: ReadonlySet<LikelyCause | null> = new Set([
  'missing_user_id',
  'anonymous_user_id',
  'user_never_identified',
  'user_id_mismatch',
  'user_not_attributed',
  'outside_attribution_window',
  'test_key_only',
  'ambiguous_code',
]);

/**
 * Returns the payment without the placeholders that earlier versions stored as user ids, and bound: they decide nothing. A payment
 * that leads to nobody else is of an anonymous user.
 */
export function withoutStoredPlaceholders(payment: PaymentSnapshot): PaymentSnapshot {
  const candidates = payment.candidates.filter(isSomebody);
  return {
    ...payment,
    candidates,
    keysToBind: payment.keysToBind.map((key) => ({ ...key, users: key.users.filter(isSomebody) })),
    onlyAnonymousUser: payment.onlyAnonymousUser || candidates.length < payment.candidates.length,
  };
}

/**
 * Returns the candidates who may be the payer (`CANDIDATE_SOURCES` says how a payment leads to them), of a payment without placeholders
 * (`withoutStoredPlaceholders`):
 *
 * - A key that a code bound goes first, for payments that it may attribute: a subscription stays with whom it earned for, also once
 *   its customer has signed in. A user who belongs to the same person stands for the key.
 * - Where a founder has spoken about one of the users after the keys, that user goes before the keys and who stands for them.
 * - Then come the users whom events of the payment name, then those of its subscription, then those of its customer.
 */
export function payersOf(payment: PaymentSnapshot): readonly UserCandidate[] {
  // A founder's last word counts, about the user or about the key.
  const boundKeys = payment.candidates.filter(({ via }) => via === 'bound_key');
  const saidOfKeysAt = Math.max(...boundKeys.map((key) => saidByHandAt(payment, key)));
  const isSaidLater = (one: UserCandidate) => saidByHandAt(payment, one) > saidOfKeysAt;
  const isByHand = payment.candidates.some(
    (one) => (one.via === 'event' || one.via === 'key') && isSaidLater(one),
  );
  const possible = payment.candidates.filter(
    ({ via, binding }) =>
      via !== 'bound_key' || (!isByHand && (binding === null || mayAttribute(payment, binding))),
  );
  const closest = CANDIDATE_SOURCES.find((source) => possible.some(({ via }) => via === source));
  const payers = possible.filter(({ via }) => via === closest);
  if (closest !== 'bound_key') {
    const standsForKey = (one: UserCandidate) => boundKeys.some((key) => isSamePerson(key, one));
    return payers.some(isSaidLater) ? payers.filter((one) => !standsForKey(one)) : payers;
  }
  // The first one: the subscription comes before the anonymous customer, also where it belongs to nobody.
  const [key] = payers;
  const users = possible.filter(
    (one) => one.via !== 'bound_key' && key !== undefined && isSamePerson(key, one),
  );
  return [...users, ...payers.slice(0, 1)];
}

/** Whether two candidates belong to a creator by one attribution, as the user and the keys of a customer do whom a code has bound. */
function isSamePerson(one: UserCandidate, other: UserCandidate): boolean {
  return one.binding !== null && one.binding.attributionId === other.binding?.attributionId;
}

/** When a founder said to whom a candidate belongs. Before all time if none did, or for later payments. */
function saidByHandAt(payment: PaymentSnapshot, { binding, givenToNobodyAt }: UserCandidate): number {
  if (givenToNobodyAt !== null) return givenToNobodyAt;
  return binding !== null && binding.saidAt !== null && mayAttribute(payment, binding)
    ? binding.saidAt
    : -Infinity;
}

/**
 * Returns the candidate that decides: of those who may be the payer, the first whose binding may attribute the payment, else
 * the first with a binding, else the first that was identified, else the first that was nearly identified, else the first that
 * only a test key reported, else the first.
 */
export function chooseUser(payment: PaymentSnapshot): UserCandidate | undefined {
  const candidates = payersOf(payment);
  return (
    candidates.find((c) => c.binding !== null && mayAttribute(payment, c.binding)) ??
    candidates.find((c) => c.binding !== null) ??
    candidates.find((c) => c.identified) ??
    candidates.find((c) => c.nearlyIdentified) ??
    candidates.find((c) => c.identifiedInTest) ??
    candidates[0]
  );
}

/**
 * Whether a payment may be attributed through a binding. By the method of the binding:
 *
 * - `manual`: payments from the founder's instant on, in every evaluation.
 * - `purchase_code`: no payment before the use of the code, unless the payment itself came with codes of this creator only. Otherwise as below.
 * - Any other: every payment in its first evaluation. In a later one, every payment whose delivery was received after the binding was
 *   made, since a first evaluation would have accepted it; any other payment (a late identify) only if it is neither older than
 *   the touch nor older than the attribution window.
 */
export function mayAttribute(payment: PaymentSnapshot, binding: BindingSnapshot): boolean {
  const paidAt = paidAtOf(payment);
  // A founder gives a payment and those after it by the time that the provider states.
  if (binding.matchMethod === 'manual')
    return paidAt >= binding.touchedAt || payment.occurredAt === binding.touchedAt;
  // A purchase that came with a code of the same creator is a touch, too, in whatever order they are reported.
  const isTouch = binding.matchMethod === 'purchase_code' && areCodesOf(payment, binding.affiliateId);
  const isAfterTouch = paidAt >= binding.touchedAt || isTouch;
  // Purchases before the one with the code had nothing of it.
  if (binding.matchMethod === 'purchase_code' && !isAfterTouch) return false;
  // An evaluation that found nobody left one of these causes. Any other one had a binding, or has not taken place.
  const isFirst = !IDENTITY_CAUSES.has(payment.likelyCause);
  if (isFirst || binding.boundAt < payment.receivedAt) return true;
  return isAfterTouch && payment.now - paidAt <= payment.app.attributionWindowDays * DAY_MS;
}

/**
 * Returns when a payment was made at the latest, epoch ms. One that is reported was made: for a renewal, RevenueCat states the beginning of
 * the new period, up to a day after the charge.
 */
export const paidAtOf = ({
  occurredAt,
  receivedAt,
}: Pick<PaymentSnapshot, 'occurredAt' | 'receivedAt'>): number =>
  Math.min(occurredAt, receivedAt + MOST_SKEW_MS);

/** Whether the codes of the payment are all of one creator. */
export function areCodesOf({ codeOwners }: PaymentSnapshot, affiliateId: AffiliateId): boolean {
  return codeOwners.length > 0 && codeOwners.every(({ binding }) => binding.affiliateId === affiliateId);
}
