/* What the program of the load test and its generator, a process of its own, tell each other. */

/** Whom the requests are for. */
export interface Target {
  readonly bases: readonly string[];
  readonly appId: string;
  readonly key: string;
  readonly webhookSecret: string;
  readonly creators: readonly string[];
  readonly users: readonly string[];
}

export const STREAMS = ['webhook', 'read', 'health', 'export'] as const;
export type StreamName = (typeof STREAMS)[number];

/** Requests at fixed rates, or exports that all start at once. */
export type Order =
  | {
      readonly kind: 'rates';
      readonly seconds: number;
      /** Requests per second. */
      readonly rates: Partial<Readonly<Record<StreamName, number>>>;
    }
  | { readonly kind: 'exports'; readonly count: number };

/** What became of the requests of one stream. Times are from the instant at which a request was due, not sent. */
export interface StreamResult {
  readonly sent: number;
  readonly ok: number;
  /** 503 with `Retry-After`. */
  readonly shed: number;
  /** Webhooks that were accepted without their outcome. */
  readonly pending: number;
  /** Every other answer, and failed connections. */
  readonly bad: readonly string[];
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly shedP99Ms: number;
  readonly mostMs: number;
  /** The cents that the CSVs of exports add up to. */
  readonly paidCents: number;
}

export interface OrderResult {
  readonly streams: Partial<Readonly<Record<StreamName, StreamResult>>>;
  /** How late the generator sent a request at most, ms: above a few hundred it lacked the time itself. */
  readonly latestMs: number;
}
