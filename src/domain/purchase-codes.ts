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

/**
 * Whether a text can be a code: 1 to 64 characters, none of them for control, and no spaces around it. A text with @ is an address, which is
 * not stored. The reference name of an offer may have spaces.
 */
export const isCode = (text: string): boolean => /^[^@\p{C}]{1,64}$/u.test(text) && text.trim() === text;

/** The namespaces whose events state the provider's id of a code, and not what the customer entered. */
export const NAMESPACES_WITH_IDS: readonly CodeNamespace[] = ['stripe', 'paddle'];

/** An event has fewer. */
const MOST_CODES = 20;

/** Returns the codes of a payment among the texts, each once. What cannot be a code is left out. */
export function codesOf(
  { store, ref: paymentRef }: { readonly store: string; readonly ref: string },
  candidates: readonly { readonly namespace: CodeNamespace | null; readonly value: string | null }[],
): readonly PurchaseCodeFact[] {
  const codes = new Map<string, PurchaseCodeFact>();
  for (const { namespace, value: stated } of candidates) {
    const value = stated?.trim().normalize('NFC');
    if (namespace === null || value === undefined || !isCode(value)) continue;
    codes.set(`${namespace} ${value}`, { namespace, value, store, paymentRef });
  }
  return [...codes.values()].slice(0, MOST_CODES);
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
