import type { NormalizedEvent } from '../domain/events.ts';
import type { CodeNamespace } from '../domain/purchase-codes.ts';
import type { ProviderExports } from './shared/export.ts';
import type { MinorUnits } from './shared/minor-units.ts';
import type { ProviderSample } from './shared/sample.ts';

/** Request headers as Node provides them: lower-case names, repeated headers as arrays. */
export type Headers = Readonly<Record<string, string | readonly string[] | undefined>>;

/** One webhook request. `body` holds the raw bytes: parsing and printing them again would break signatures. */
export interface SignedRequest {
  readonly headers: Headers;
  readonly body: Buffer;
  /** When the request arrived, epoch ms. Tolerances count from here, so that a later check returns the same result. */
  readonly receivedAt: number;
}

/** The connected accounts of a provider that an app lists, or all. */
export type ListedAccounts = readonly string[] | 'all';

/**
 * The result of reading a body. `ignored` and `failed` are final: a retry reads the same. The event of an ignored body may have a
 * refund or dispute: it counts for a payment that is stored, and the reason then does not apply.
 */
export type ParseResult =
  | { readonly outcome: 'event'; readonly event: NormalizedEvent }
  | { readonly outcome: 'ignored'; readonly reason: string; readonly event: NormalizedEvent | null }
  | { readonly outcome: 'failed'; readonly reason: string };

/** Everything the service needs to know about one billing provider. Each provider is one folder beside this file. */
export interface Provider {
  /** The name in URLs and in the database: lower case, the same as in the table of index.ts. */
  readonly name: string;
  /** The name that people read, such as `RevenueCat`. */
  readonly title: string;
  /**
   * How a request proves its sender. `static_token`: it carries the secret, which this service can generate. `hmac`: it
   * carries a signature of the raw bytes, made with a key that the provider generates.
   */
  readonly scheme: 'static_token' | 'hmac';
  /**
   * Where a delivery's environment comes from. `body`: bodies name it, so it may be omitted when the secret is set.
   * `secret`: bodies do not name it, so the founder has to state it with the secret. An environment in a body always takes
   * precedence over that of the secret.
   */
  readonly environmentFrom: 'body' | 'secret';
  /**
   * The headers that the proof needs, in lower case. They are stored with the delivery so that it can be verified again;
   * of a static token, which is the secret itself, only a keyed hash is stored.
   */
  readonly proofHeaders: readonly string[];
  /** Where in the provider's dashboard the founder enters the URL and the secret, and where the app sets its user id. */
  readonly setupHint: string;
  /** Of which namespaces the provider's purchases state codes, and what the founder does so that one arrives. */
  readonly codes: Readonly<Partial<Record<CodeNamespace, string>>>;
  /** A signature that the provider makes beside its static token, where the founder sets a signing secret. Absent: it makes none. */
  readonly bodySignature?: BodySignature;
  /** Returns what is wrong with the form or the strength of a secret, or null. */
  readonly secretProblem: (secret: string) => string | null;
  /** Returns whether `secret` proves `request`. Never rejects: invalid input is false. */
  verify(request: SignedRequest, secret: string): Promise<boolean>;
  /** Returns when the request claims to have been signed, epoch ms, or null. Absent: the scheme signs no time. */
  readonly signedAt?: (request: SignedRequest) => number | null;
  /** Returns whether that time is within the tolerance. Needs no HMAC. Absent where `signedAt` is. */
  readonly isOnTime?: (request: SignedRequest) => boolean;
  /** How bodies state amounts of money: as decimal numbers, or in minor units with the decimals of this table. */
  readonly amounts: 'decimal' | MinorUnits;
  /**
   * Reads a verified body. `accounts` are the connected accounts whose payments count as the app's own, where the provider has
   * such; none if absent. Should not throw; in the table of index.ts an exception becomes a `failed` result.
   */
  parse(body: Buffer, accounts?: ListedAccounts): ParseResult;
  /** The test request that the provider sends when a webhook is saved. Absent: it sends none. */
  readonly setupCheck?: SetupCheck;
  /** A test purchase in the provider's format, for the self-test. */
  readonly sample: ProviderSample;
  /** The provider's own exports that can be compared with the ledger. */
  readonly exports: ProviderExports;
}

/** A signature beside a static token. The stored secret has both texts (`shared/signed-token.ts`). */
interface BodySignature {
  /** The headers that may carry it, in lower case. */
  readonly headers: readonly string[];
  /** Returns what is wrong with a signing secret, or null. */
  readonly secretProblem: (signingSecret: string) => string | null;
}

/** What a provider expects in the response to its test request. */
export interface SetupCheck {
  /** The field that the response to a test request may have. */
  readonly responseField: string;
  /** Returns the value of that field, or null where `body` asks for none. Never throws. */
  responseTo(body: Buffer): string | null;
}
