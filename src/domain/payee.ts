/** How the money of a creator is sent. `none`: the creator has no payee any more. */
export const PAYEE_METHODS = ['paypal', 'wise', 'other', 'none'] as const;
export type PayeeMethod = (typeof PAYEE_METHODS)[number];

/** What a receiver at Wise is. */
export const RECEIVER_TYPES = ['PERSON', 'INSTITUTION'] as const;
export type ReceiverType = (typeof RECEIVER_TYPES)[number];

/** Where the money of a creator goes. */
export type Payee =
  | { readonly method: 'paypal'; readonly recipient: { readonly email: string } }
  | {
      readonly method: 'wise';
      readonly recipient: {
        readonly email: string;
        readonly name: string;
        readonly receiverType: ReceiverType;
      };
    }
  | { readonly method: 'other'; readonly recipient: { readonly name: string; readonly reference: string } }
  | { readonly method: 'none'; readonly recipient: null };

/** Who receives the money. */
export type Recipient = NonNullable<Payee['recipient']>;

/** Whether both send money to the same recipient in the same way. */
export function isSamePayee(one: Payee, other: Payee): boolean {
  return one.method === other.method && textOfRecipient(one) === textOfRecipient(other);
}

/** Returns the recipient as JSON, its fields in one order. Null for `none`. */
export function textOfRecipient(payee: Payee): string | null {
  switch (payee.method) {
    case 'paypal':
      return JSON.stringify({ email: payee.recipient.email });
    case 'wise': {
      const { email, name, receiverType } = payee.recipient;
      return JSON.stringify({ email, name, receiverType });
    }
    case 'other': {
      const { name, reference } = payee.recipient;
      return JSON.stringify({ name, reference });
    }
    case 'none':
      return null;
  }
}

const HIDDEN = '•••';

/** Returns the first character and dots, or dots alone if that were half of the text or more. */
function startOf(text: string): string {
  const [first = '', ...rest] = text;
  return rest.length < 2 ? HIDDEN : first + HIDDEN;
}

/** Returns enough of an e-mail address to recognize it, such as `a•••@example.com`. */
export function maskEmail(email: string): string {
  const at = email.lastIndexOf('@');
  return startOf(email.slice(0, at)) + email.slice(at);
}

/** Returns enough of a recipient to recognize it, such as `a•••@example.com`, and too little to write or pay to it. */
export function maskRecipient(recipient: Recipient): string {
  return 'email' in recipient ? maskEmail(recipient.email) : startOf(recipient.name);
}

/** A version of a creator's payee. */
export interface PayeeVersion {
  /** From 1. */
  readonly version: number;
  readonly method: PayeeMethod;
  /** When its wait ends, epoch ms. */
  readonly countsFrom: number;
}

/** Why a run of payouts leaves a creator out. */
export const PAYEE_EXCLUSIONS = ['no_payee', 'payee_changed'] as const;
export type PayeeExclusion = (typeof PAYEE_EXCLUSIONS)[number];

/** The payee of a creator at an instant. */
export interface PayeeAt<V extends PayeeVersion> {
  /** The latest version whose wait has ended. Null without one. */
  readonly inForce: V | null;
  /** The latest version, while it waits. Null otherwise. */
  readonly waiting: V | null;
  /** Null if the creator can be paid to `inForce`. */
  readonly excludedAs: PayeeExclusion | null;
}

const latestOf = <V extends PayeeVersion>(versions: readonly V[]): V | null =>
  versions.reduce<V | null>(
    (latest, one) => (latest === null || one.version > latest.version ? one : latest),
    null,
  );

/**
 * Returns which version of a creator's payee is in force at an instant. While the latest one waits, the first one too, nobody is
 * paid: who sees that the payee was changed has time to object. A wait ends at `countsFrom`, inclusive.
 */
export function payeeAt<V extends PayeeVersion>(versions: readonly V[], at: number): PayeeAt<V> {
  const latest = latestOf(versions);
  const inForce = latestOf(versions.filter(({ countsFrom }) => countsFrom <= at));
  if (latest !== inForce) return { inForce, waiting: latest, excludedAs: 'payee_changed' };
  const hasPayee = inForce !== null && inForce.method !== 'none';
  return { inForce, waiting: null, excludedAs: hasPayee ? null : 'no_payee' };
}
