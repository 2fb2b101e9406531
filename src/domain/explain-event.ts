import type { MatchMethod } from './attribution.ts';
import type { LikelyCause } from './evaluate-payment.ts';
import type { Environment, EventKind } from './events.ts';
import type {
  AffiliateId,
  AttributionId,
  ClickId,
  CommissionId,
  DeliveryId,
  EventId,
  LinkId,
} from './ids.ts';
import { CAUSE_EXPLANATIONS } from './likely-causes.ts';

/** The delivery that brought an event: there is always one. */
export interface ExplainedDelivery {
  readonly deliveryId: DeliveryId;
  readonly provider: string;
  readonly receivedAt: number;
  readonly processingStatus: string;
  readonly lastError: string | null;
  readonly secretSetAt: number | null;
  readonly secretEnvironment: Environment | null;
  readonly bodySha256: string;
  readonly bodyBytes: number | null;
}

/** The event as it was read; there is none when the body could not be read, or when it was told before. */
export interface ExplainedEvent {
  readonly sourceEventId: string;
  readonly kind: EventKind;
  readonly environment: Environment;
  readonly occurredAt: number;
  readonly productId: string | null;
  readonly store: string | null;
  readonly paymentRef: string | null;
  readonly currency: string | null;
  readonly amountMinor: number | null;
  readonly amountCents: number | null;
  readonly fxUnits: string | null;
  readonly fxWorthUsd: string | null;
  readonly fxSource: string | null;
  readonly customerUserId: string | null;
  readonly likelyCause: LikelyCause | null;
}

/** A touch that came after a device had its attribution. */
export interface LostTouch {
  readonly affiliateId: AffiliateId;
  readonly matchMethod: MatchMethod;
  readonly touchedAt: number;
}

/** A user that the payment's events name, and what is known of him. */
export interface ExplainedUser {
  readonly customerUserId: string;
  readonly identified: boolean;
  /** What devices told of that differs from this id in its spelling alone; looked up where nobody told of this one. */
  readonly similarUserIds: readonly string[];
  readonly attribution: null | {
    readonly attributionId: AttributionId;
    readonly decided: boolean;
    readonly affiliateId: AffiliateId;
    readonly affiliateName: string;
    readonly linkId: LinkId | null;
    readonly clickId: ClickId | null;
    readonly matchMethod: MatchMethod;
    readonly touchedAt: number;
    readonly firstOpenAt: number;
    readonly boundAt: number;
    readonly lostTouches: readonly LostTouch[];
  };
}

/** The payment that the event tells of, by whatever event it was first told. */
export interface ExplainedPayment {
  readonly firstEventId: EventId;
  readonly occurredAt: number;
  /** The app's, as of now. */
  readonly attributionWindowDays: number;
  readonly likelyCause: LikelyCause | null;
  readonly isAttributed: boolean;
  readonly countedElsewhere: boolean;
  readonly users: readonly ExplainedUser[];
}

export interface ExplainedCommission {
  readonly commissionId: CommissionId;
  readonly eventId: EventId;
  readonly kind: 'earning' | 'reversal';
  readonly status: string;
  readonly rateBps: number;
  readonly rateSource: 'affiliate' | 'app' | null;
  readonly baseCents: number;
  readonly amountCents: number;
  readonly occurredAt: number;
  readonly dueAt: number;
}

/** Everything that is kept about one event. */
export interface EventFile {
  readonly eventId: EventId;
  readonly delivery: ExplainedDelivery;
  readonly event: ExplainedEvent | null;
  /** For a duplicate: the event that told it first. */
  readonly toldBefore: EventId | null;
  readonly payment: ExplainedPayment | null;
  /** All rows of the payment's ledger, in the order in which they were written. */
  readonly commissions: readonly ExplainedCommission[];
}

export const EXPLANATION_STEPS = [
  'verify',
  'store_raw',
  'normalize',
  'dedupe',
  'attribute',
  'write_commission',
] as const;
type StepName = (typeof EXPLANATION_STEPS)[number];

/** What one step decided, in a word that programs may read, in a sentence, and from what. */
export interface ExplainedStep {
  readonly step: StepName;
  readonly decision: string;
  readonly explanation: string;
  readonly facts: Readonly<Record<string, unknown>>;
}

const MONEY_IN: ReadonlySet<EventKind> = new Set([
  'purchase',
  'renewal',
  'trial_converted',
  'product_change',
]);
const MONEY_BACK: ReadonlySet<EventKind> = new Set([
  'refund',
  'refund_reversed',
  'chargeback',
  'chargeback_reversed',
]);

/** How a provider proves itself. */
type ProofScheme = 'static_token' | 'hmac';

function verify({ delivery }: EventFile, scheme: ProofScheme): ExplainedStep {
  const { provider, receivedAt, secretSetAt, secretEnvironment } = delivery;
  const facts = { provider, scheme, receivedAt, secretSetAt, secretEnvironment };
  if (delivery.processingStatus === 'rejected') {
    return {
      step: 'verify',
      decision: 'rejected',
      explanation: `The request was refused: ${delivery.lastError ?? 'its proof does not match'}.`,
      facts,
    };
  }
  return {
    step: 'verify',
    decision: 'verified',
    explanation:
      scheme === 'static_token'
        ? `The token in the Authorization header is the one that was set for ${provider}.`
        : `The signature over time and body matches the secret that was set for ${provider}.`,
    facts,
  };
}

function storeRaw({ delivery: { deliveryId, bodySha256, bodyBytes } }: EventFile): ExplainedStep {
  return {
    step: 'store_raw',
    decision: 'stored',
    explanation: 'The request was kept byte for byte before anything was done with it.',
    facts: { deliveryId, bodySha256, bodyBytes },
  };
}

function normalize({ delivery, event, toldBefore }: EventFile): ExplainedStep {
  const step = 'normalize';
  if (event === null) {
    const { processingStatus, lastError } = delivery;
    if (toldBefore !== null) {
      return { step, decision: 'read', explanation: 'The body was read as an event.', facts: {} };
    }
    return processingStatus === 'failed' || processingStatus === 'ignored'
      ? {
          step,
          decision: processingStatus,
          explanation: `The body ${processingStatus === 'failed' ? "can't be read" : 'means nothing here'}: ${lastError ?? 'no reason was kept'}.`,
          facts: {},
        }
      : { step, decision: 'processing', explanation: CAUSE_EXPLANATIONS.processing, facts: { lastError } };
  }
  const {
    kind,
    environment,
    occurredAt,
    productId,
    store,
    paymentRef,
    currency,
    amountMinor,
    customerUserId,
  } = event;
  const amount = amountMinor === null ? '' : ` of ${amountMinor} minor units of ${currency ?? '?'}`;
  const sandbox = environment === 'sandbox' ? ' It is of the sandbox, so it never earns.' : '';
  return {
    step,
    decision: kind,
    explanation: `The body was read as ${kind}${amount}.${sandbox}`,
    facts: {
      kind,
      environment,
      occurredAt,
      productId,
      store,
      paymentRef,
      currency,
      amountMinor,
      customerUserId,
    },
  };
}

function dedupe({ delivery, event, eventId, payment, toldBefore }: EventFile): ExplainedStep {
  const step = 'dedupe';
  if (event === null) {
    return {
      step,
      decision: 'duplicate',
      explanation: `${delivery.provider} told the same event before; this delivery changed nothing.`,
      facts: { toldBefore },
    };
  }
  const { sourceEventId } = event;
  if (payment !== null && payment.firstEventId !== eventId && MONEY_IN.has(event.kind)) {
    return {
      step,
      decision: 'same_payment',
      explanation:
        'Another event told of the same payment before. The payment counts once; what this one says of its user counts too.',
      facts: { sourceEventId, firstEventId: payment.firstEventId },
    };
  }
  return { step, decision: 'first', explanation: 'Nobody told this event before.', facts: { sourceEventId } };
}

function touchSentence({
  affiliateName,
  matchMethod,
  lostTouches,
}: NonNullable<ExplainedUser['attribution']>): string {
  const how = {
    claim_token: 'the claim token of a click',
    code: 'a code',
    deferred: 'a deferred match with a click from the same address',
  }[matchMethod];
  const lost =
    lostTouches.length === 0
      ? ''
      : ` The first touch stays; ${lostTouches.length === 1 ? 'one that came later counts' : `${lostTouches.length} that came later count`} for nothing.`;
  return `The device came through ${affiliateName} by ${how}.${lost}`;
}

function attribute(
  { payment }: EventFile,
  { kind, environment, paymentRef, likelyCause }: ExplainedEvent,
): ExplainedStep {
  const step = 'attribute';
  const users = payment?.users ?? [];
  const facts = { users };
  if (environment === 'sandbox') {
    return { step, decision: 'not_needed', explanation: 'Events of the sandbox are not attributed.', facts };
  }
  if (!MONEY_IN.has(kind) && !MONEY_BACK.has(kind)) {
    return { step, decision: 'not_needed', explanation: 'The event moves no money.', facts: {} };
  }
  if (payment === null) {
    return MONEY_BACK.has(kind) && paymentRef !== null
      ? {
          step,
          decision: 'waiting_for_payment',
          explanation:
            'The payment that this takes money back from is not known yet. It is kept and counts when the payment arrives.',
          facts: { paymentRef },
        }
      : {
          step,
          decision: likelyCause ?? 'not_needed',
          explanation:
            likelyCause === null ? 'The event tells of no payment.' : CAUSE_EXPLANATIONS[likelyCause],
          facts,
        };
  }
  const decided = users.find((user) => user.attribution?.decided === true);
  if (decided?.attribution) {
    return {
      step,
      decision: 'attributed',
      explanation: `${decided.customerUserId} is the user. ${touchSentence(decided.attribution)}`,
      facts,
    };
  }
  if (payment.countedElsewhere) {
    return {
      step,
      decision: 'counted_elsewhere',
      explanation: 'The same payment was attributed under another of its names.',
      facts,
    };
  }
  // A payment has no cause before its first evaluation; its event has one from the beginning.
  const cause = payment.likelyCause ?? likelyCause ?? 'processing';
  return {
    step,
    decision: cause,
    explanation: CAUSE_EXPLANATIONS[cause],
    facts:
      cause === 'outside_attribution_window'
        ? { ...facts, paidAt: payment.occurredAt, attributionWindowDays: payment.attributionWindowDays }
        : facts,
  };
}

function rateSentence({ rateBps, rateSource }: ExplainedCommission): string {
  const whose = rateSource === 'affiliate' ? "the creator's own rate" : "the app's rate";
  return rateSource === null
    ? `${rateBps} basis points`
    : `${rateBps} basis points, ${whose} when it was calculated`;
}

function writeCommission({ eventId, payment, commissions }: EventFile, event: ExplainedEvent): ExplainedStep {
  const step = 'write_commission';
  const { amountCents, fxUnits, fxWorthUsd, fxSource, likelyCause, currency, amountMinor } = event;
  const price = { currency, amountMinor, amountCents, fxUnits, fxWorthUsd, fxSource };
  const own = commissions.filter((row) => row.eventId === eventId);
  const earning = own.find((row) => row.kind === 'earning');
  const facts = { price, commissions: MONEY_IN.has(event.kind) ? commissions : own };
  if (earning !== undefined) {
    const reversed =
      commissions.length > own.length ? ' Money that went back later is in rows of its own.' : '';
    return {
      step,
      decision: 'earned',
      explanation: `${earning.amountCents} cents: ${rateSentence(earning)}, of ${earning.baseCents} cents.${reversed}`,
      facts,
    };
  }
  if (own.length > 0) {
    const sum = own.reduce((total, row) => total + row.amountCents, 0);
    return {
      step,
      decision: 'reversed',
      explanation: `${sum} cents: the part of the commission that belongs to the money that moved.`,
      facts,
    };
  }
  const cause = payment?.likelyCause ?? likelyCause;
  if (event.environment === 'production' && cause !== null) {
    return { step, decision: cause, explanation: CAUSE_EXPLANATIONS[cause], facts };
  }
  return {
    step,
    decision: 'none',
    explanation:
      commissions.length > 0
        ? 'The payment has its commission by another event; this one changes nothing of it.'
        : 'Nothing is owed for this event.',
    facts,
  };
}

/** What each step of the pipeline decided about an event, in order; it ends with the step that ended the delivery. */
export function explainEvent(file: EventFile, scheme: ProofScheme): ExplainedStep[] {
  const { event } = file;
  const verified = verify(file, scheme);
  if (verified.decision === 'rejected') return [verified];
  const read = [verified, storeRaw(file), normalize(file)];
  if (event === null) return file.toldBefore === null ? read : [...read, dedupe(file)];
  return [...read, dedupe(file), attribute(file, event), writeCommission(file, event)];
}
