import type { NormalizedEvent } from '../domain/events.ts';

export const PROVIDER_NAMES = ['revenuecat', 'adapty', 'superwall', 'stripe', 'paddle'] as const;
export type ProviderName = (typeof PROVIDER_NAMES)[number];

/** Request headers as Node gives them: lower-case names, repeated headers as arrays. */
export type Headers = Readonly<Record<string, string | readonly string[] | undefined>>;

/** One webhook as it arrived. `body` are the raw bytes: parsing and printing again would break signatures. */
export interface SignedRequest {
  readonly headers: Headers;
  readonly body: Buffer;
  /** When the request arrived, epoch ms. Tolerances count from here, so a check repeated later says the same. */
  readonly receivedAt: number;
}

/** What a body turned out to be. `ignored` and `failed` are final: the same bytes would read the same next time. */
export type ParseResult =
  | { readonly outcome: 'event'; readonly event: NormalizedEvent }
  | { readonly outcome: 'ignored'; readonly reason: string; readonly event: NormalizedEvent | null }
  | { readonly outcome: 'failed'; readonly reason: string };

/** Everything the service needs to know of one billing provider. One file each in this folder. */
export interface Provider {
  readonly name: ProviderName;
  /**
   * How the sender proves itself. `static_token`: the service can make the secret up. `hmac`: signature headers over the
   * raw bytes, whose key the provider makes.
   */
  readonly scheme: 'static_token' | 'hmac';
  /**
   * The headers that the proof needs, lower case: kept with the delivery so that it can be checked again. The header
   * of a static token is the secret itself and is kept as a keyed hash only.
   */
  readonly proofHeaders: readonly string[];
  /** Where the founder types the URL and the secret at the provider. One sentence each. */
  readonly setupHint: string;
  /** What is wrong with the form of a secret that a founder copied; null for nothing. Missing: any text will do. */
  readonly secretFault?: (secret: string) => string | null;
  /** Whether `request` is proved by `secret`. Never throws: whatever a caller sends is a plain false. */
  verify(request: SignedRequest, secret: string): boolean;
  /** The time that the request says it was signed at, epoch ms; null where it names none. Missing: nothing is timed. */
  readonly signedAt?: (request: SignedRequest) => number | null;
  /** Reads a verified body. Never throws. */
  parse(body: Buffer): ParseResult;
  /** What the provider wants to read in the answer when it checks a verified set-up. Never throws. */
  readonly setupAnswer?: (body: Buffer) => Readonly<Record<string, string>>;
}
