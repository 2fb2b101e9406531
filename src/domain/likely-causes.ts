import type { LikelyCause } from './evaluate-payment.ts';

/** Why a paid event earned nothing, in a sentence for the founder that says what to change, if anything. */
export const CAUSE_EXPLANATIONS: Readonly<Record<LikelyCause, string>> = {
  missing_user_id:
    "The provider's event names no user: hand the app's own user id to the billing provider before the purchase.",
  anonymous_user_id:
    "The event has only ids that the provider's SDK made up: log the user in there with the app's own user id before the purchase.",
  user_never_identified:
    'No device ever told of this user: call identify(userId) with the very string that the billing provider reports.',
  user_id_mismatch:
    'The app knows this user by another id: give identify(userId) and the billing provider the same string.',
  user_not_attributed:
    'This user is known, but the device came through no creator: nothing to change, unless the install should have carried a claim token or a code.',
  outside_attribution_window:
    "The user was attributed too late for this payment: call identify(userId) before the purchase, or lengthen the app's attribution window for later ones.",
  affiliate_paused:
    'The creator was paused when this was calculated: set the status back to active, and later payments earn.',
  affiliate_removed:
    'The creator was removed when this was calculated: set the status back to active, and later payments earn.',
  rate_zero:
    "The commission came to zero: raise the creator's or the app's commission rate, and later payments earn.",
  missing_exchange_rate:
    "No reference rate of the payment's currency is known for that day or the week before it: have the operator import exchange rates, and it goes on by itself.",
  price_unknown:
    'The provider states no amount: look the payment up there, since an amount is never guessed here.',
  processing: 'This was received and is still being worked on: nothing to change, look again in a moment.',
};

/** All causes that there are. */
export const LIKELY_CAUSES = Object.keys(CAUSE_EXPLANATIONS) as readonly LikelyCause[];
