import type { LikelyCause } from './evaluate-payment.ts';

/** Why a paid event earned nothing, in a sentence for the founder that says what to change, if anything. */
export const CAUSE_EXPLANATIONS: Readonly<Record<LikelyCause, string>> = {
  missing_user_id:
    "The provider's event names no user: have the app hand its own user id to the billing provider before the purchase; setupHint in the webhook settings names the field.",
  anonymous_user_id:
    "The event has only ids that the provider's SDK made up: have the app log the user in there with its own user id before the purchase; setupHint in the webhook settings says how.",
  user_never_identified:
    'No device ever told of this user: call identify(userId) with the very string that the billing provider reports, and this payment is looked at again.',
  user_id_mismatch:
    'The app told of this user in another spelling (case, spaces or a prefix): give identify(userId) and the billing provider the same string, and this payment is looked at again.',
  user_not_attributed:
    'This user is known, but the device came through no creator: nothing to change, unless the call of install should have carried a claim token or a code.',
  outside_attribution_window:
    "The user was tied to a creator only after this payment, which came before the creator's click or longer ago than the attribution window: call identify(userId) before the purchase, or raise attributionWindowDays in the app's settings for calls that come late.",
  affiliate_paused:
    "The creator was paused when this was calculated, and it stays without a commission: set the creator's status back to active, and later payments earn.",
  affiliate_removed:
    "The creator was removed when this was calculated, and it stays without a commission: set the creator's status back to active, and later payments earn.",
  rate_zero:
    "The commission came to zero, and stays so: raise the creator's own commission rate, or the app's where the creator has none, and later payments earn.",
  missing_exchange_rate:
    "No reference rate of the payment's currency is known for that day or the week before it: have the operator import exchange rates (admin rates import), and it goes on by itself.",
  price_unknown:
    'The provider states no amount, and none is guessed here: look it up at the provider and settle it with the creator by hand; if the provider tells of it again with an amount, it counts by itself.',
  processing:
    'This was received and is still being worked on: nothing to change, look again in a moment; if it stays so, the webhooks diagnostic has the error.',
};

/** All causes that there are. */
export const LIKELY_CAUSES = Object.keys(CAUSE_EXPLANATIONS) as readonly LikelyCause[];
