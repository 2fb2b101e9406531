/**
 * Where a code of a purchase is from: a code of the App Store, of Google Play, of Stripe or of Paddle; the attribute `tributary_code` of a
 * subscriber, which the app sets; or the attribute `$campaign`, which measurement tools set.
 */
export const CODE_NAMESPACES = [
  'app_store',
  'play_store',
  'stripe',
  'paddle',
  'attribute',
  'campaign',
] as const;
export type CodeNamespace = (typeof CODE_NAMESPACES)[number];

/** A code that an event states of a payment: the text that the customer entered, or the provider's id of it. */
export interface PurchaseCode {
  readonly namespace: CodeNamespace;
  readonly value: string;
}

/** A code, and the payment whose it is. */
export interface PurchaseCodeFact extends PurchaseCode {
  readonly store: string;
  readonly paymentRef: string;
}

/** A code with which a customer began a subscription whose first period was free: it counts for the payments that follow. */
export interface SubscriptionCodeFact extends PurchaseCode {
  /** The provider's key of the subscription. */
  readonly userKey: string;
  /** When the customer used it, epoch ms. */
  readonly usedAt: number;
}

/**
 * Whether a text can be a code: 1 to 64 characters, none of them for control, and no spaces around it. A text with @ is an address, which is
 * not stored. The reference name of an offer may have spaces.
 */
export const isCode = (text: string): boolean => /^[^@\p{C}]{1,64}$/u.test(text) && text.trim() === text;

/** The namespaces whose events state the provider's id of a code, and not what the customer entered. */
export const NAMESPACES_WITH_IDS: readonly CodeNamespace[] = ['stripe', 'paddle'];

/** An event has fewer. */
const MOST_CODES = 20;

/** A text that an event states where codes are. */
export interface StatedCode {
  readonly namespace: CodeNamespace | null;
  readonly value: string | null;
}

/** Returns the codes among the texts, each once. What cannot be a code is left out. */
function codesAmong(candidates: readonly StatedCode[]): readonly PurchaseCode[] {
  const codes = new Map<string, PurchaseCode>();
  for (const { namespace, value: stated } of candidates) {
    const value = stated?.trim().normalize('NFC');
    if (namespace === null || value === undefined || !isCode(value)) continue;
    codes.set(`${namespace} ${value}`, { namespace, value });
  }
  return [...codes.values()].slice(0, MOST_CODES);
}

/** Returns the codes of a payment. */
export function codesOf(
  { store, ref: paymentRef }: { readonly store: string; readonly ref: string },
  candidates: readonly StatedCode[],
): readonly PurchaseCodeFact[] {
  return codesAmong(candidates).map((code) => ({ ...code, store, paymentRef }));
}

/** Returns the codes of a subscription whose first period was free. None without its key. */
export function codesOfSubscription(
  userKey: string | null,
  usedAt: number,
  candidates: readonly StatedCode[],
): readonly SubscriptionCodeFact[] {
  return userKey === null ? [] : codesAmong(candidates).map((code) => ({ ...code, userKey, usedAt }));
}

/** Whether codes of purchases attribute. `when_unattributed`: only where the user belongs to nobody. */
export const PURCHASE_CODE_SETTINGS = ['off', 'when_unattributed'] as const;
export type PurchaseCodeSetting = (typeof PURCHASE_CODE_SETTINGS)[number];

/** Returns the namespace of the codes of a store. Null for a store without one. */
export function namespaceOfStore(store: string | null): CodeNamespace | null {
  switch (store) {
    case 'app_store':
    case 'mac_app_store':
      return 'app_store';
    case 'play_store':
      return 'play_store';
    default:
      return null;
  }
}
