import type { Schemas } from '../api/client.ts';

export type Namespace = Schemas['Code']['namespace'];

/** Where a code is from, in words, and what to enter for it. */
interface NamespaceWords {
  readonly name: string;
  /** What the code is there, and what to know about it. */
  readonly hint: string;
  /** The name of the field of the code. */
  readonly label: string;
  /** The field of the id that events state instead of the code. Absent where they state the code. */
  readonly externalId?: { readonly label: string; readonly beginning: string };
}

/** Why a code did not attribute a payment. */
export const CODE_STATES: Readonly<Record<Schemas['ExplainedCode']['state'], string | null>> = {
  in_force: null,
  unregistered: 'no creator has it',
  registered_later: 'registered after the purchase',
  deactivated: 'deactivated before the purchase',
  creator_removed: 'the creator is removed',
  user_attributed: 'a user of the subscription belongs to a creator',
  off: 'the app took no codes then',
};

/** In the order of a form: first what works in every store. */
export const NAMESPACES: Readonly<Record<Namespace, NamespaceWords>> = {
  attribute: {
    name: 'RevenueCat, set by your app',
    hint: 'The most dependable way, for every store: your app asks for the code, and sets it as the subscriber attribute tributary_code before the purchase.',
    label: 'Code',
  },
  app_store: {
    name: 'App Store',
    hint: 'An offer code. The App Store does not report what customers type, but the reference name of the offer, so each creator needs an offer.',
    label: 'Reference name of the offer',
  },
  play_store: {
    name: 'Google Play',
    hint: 'An offer, by the name that your billing provider reports with the purchase.',
    label: 'Offer',
  },
  stripe: {
    name: 'Stripe',
    hint: 'A promotion code. Checkout reports it by its id. For subscriptions that begin without Checkout, add the event customer.discount.created to the endpoint: an invoice states no code.',
    label: 'Promotion code',
    externalId: { label: 'Id of the promotion code at Stripe', beginning: 'promo_' },
  },
  paddle: {
    name: 'Paddle',
    hint: 'A discount. Transactions report it by its id.',
    label: 'Discount code',
    externalId: { label: 'Id of the discount at Paddle', beginning: 'dsc_' },
  },
  campaign: {
    name: 'RevenueCat, set by a measurement tool',
    hint: 'The subscriber attribute $campaign, which measurement tools set. Compare the code with what your tool sends.',
    label: 'Campaign',
  },
};
