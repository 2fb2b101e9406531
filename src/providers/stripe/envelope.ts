import * as z from 'zod';
import type {
  Environment,
  EventKind,
  NormalizedEvent,
  OriginalAmount,
  PaymentAliasFact,
} from '../../domain/events.ts';
import type { ParseResult } from '../provider.ts';
import * as normalized from '../shared/normalized-event.ts';
import { normalizedEvent } from '../shared/normalized-event.ts';
import { toIsoMinorUnits } from '../shared/minor-units.ts';
import * as read from '../shared/read-body.ts';
import type { Read } from '../shared/read-body.ts';
import { STRIPE_MINOR_UNITS } from './currencies.ts';

/** The store of every Stripe payment. */
export const STORE = 'stripe';

export const envelopeSchema = z.object({
  id: read.id,
  type: read.id,
  created: read.epochSeconds,
  api_version: read.optionalText,
  account: read.optionalText,
  livemode: read.anything,
  data: z.object({ object: z.record(z.string(), z.unknown()), previous_attributes: read.anything }),
});
export type Envelope = z.infer<typeof envelopeSchema>;

/**
 * Returns whether the endpoint's API version is older than `day` (`2024-10-28`). Versions are dates, since 2024-09-30 with a
 * name. An event without a version counts as new.
 */
export function isBeforeVersion(envelope: Envelope, day: string): boolean {
  const version = envelope.api_version?.slice(0, day.length) ?? '';
  return /^\d{4}-\d{2}-\d{2}$/.test(version) && version < day;
}

/** What a parser may add to the event of an envelope. */
export type Details = Partial<Omit<NormalizedEvent, 'sourceEventId' | 'environment'>>;

function environmentOf(envelope: Envelope): Environment | null {
  if (envelope.livemode === true) return 'production';
  return envelope.livemode === false ? 'sandbox' : null;
}

function eventOf(envelope: Envelope, kind: EventKind, details: Details = {}): NormalizedEvent {
  return normalizedEvent({
    sourceEventId: envelope.id,
    kind,
    environment: environmentOf(envelope),
    occurredAt: envelope.created,
    ...details,
  });
}

export function done(envelope: Envelope, kind: EventKind, details: Details = {}): ParseResult {
  return normalized.done(eventOf(envelope, kind, details));
}

export function ignored(envelope: Envelope, reason: string, details: Details = {}): ParseResult {
  return normalized.ignored(reason, eventOf(envelope, 'other', details));
}

/**
 * Reads an amount in Stripe's minor units. Its value in USD is known only where it is in USD, since Stripe states none.
 */
export function originalAmount(currency: string, stated: number): Read<OriginalAmount> {
  const amountMinor = toIsoMinorUnits(stated, currency, STRIPE_MINOR_UNITS);
  if (amountMinor === null) return { ok: false, reason: 'data.object states an amount that is too large' };
  return { ok: true, value: { currency, amountMinor, usdCents: currency === 'USD' ? amountMinor : null } };
}

/** Returns the other ids under which Stripe may name the payment `paymentRef`. */
export function aliasesOf(
  paymentRef: string | null,
  ...names: readonly (string | null)[]
): readonly PaymentAliasFact[] {
  if (paymentRef === null) return [];
  return read
    .distinct(names)
    .filter((aliasRef) => aliasRef !== paymentRef)
    .map((aliasRef) => ({ store: STORE, aliasRef, paymentRef }));
}

/** Reads the object of the event. */
export function readObject<T>(envelope: Envelope, schema: z.ZodType<T>): Read<T> {
  return read.readAs(schema, envelope.data.object, 'data.object');
}
