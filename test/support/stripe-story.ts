import { HOUR_MS } from '../../src/domain/time.ts';
import type { Report } from './money-facts.ts';
import type { SaleStep, Take } from './money-sales.ts';
import { stripeDispute, stripeInvoicePaymentPaid, stripeRefund } from './provider-fixtures.ts';
import type { Payload } from './provider-fixtures.ts';

/** What an event states, without its id. */
export type Facts = Omit<Report, 'eventId'>;
export type Ids = { readonly eventId: string; readonly occurredAt: number };

/** Collects the steps of a sale. */
export class Story {
  readonly steps: SaleStep[] = [];
  readonly #name: string;
  readonly #at: number;
  readonly #account: string | null;
  #events = 0;

  constructor(name: string, at: number, account: string | null = null) {
    this.#name = name;
    this.#at = at;
    this.#account = account;
  }

  add(
    build: (ids: Ids) => Payload,
    report: Facts,
    { at = this.#at, stage }: { readonly at?: number; readonly stage?: number | undefined } = {},
  ): void {
    const eventId = `evt_${this.#name}_${(this.#events += 1)}`;
    const body = build({ eventId, occurredAt: at });
    this.steps.push({
      do: 'event',
      provider: 'stripe',
      body: this.#account === null ? body : { ...body, account: this.#account },
      report: { ...report, eventId },
      ...(stage === undefined ? {} : { stage }),
    });
  }
}

/** Returns a share of an amount, of a minor unit at least. */
export const shareOf = (minor: number, percent: number) => Math.max(1, Math.floor((minor * percent) / 100));

interface Taken {
  readonly name: string;
  readonly n: number;
  readonly minor: number;
  readonly currency: string;
  readonly at: number;
  readonly invoiceId: string;
  readonly intentId: string;
  readonly chargeId: string;
}

/** Adds the events of a refund, of a dispute, or of a part that was paid outside Stripe. */
export function addTake(story: Story, take: Take, of: Taken): void {
  const { name, n, currency, intentId, chargeId, invoiceId } = of;
  const time = (k: number) => of.at + (1 + n * 10 + k) * HOUR_MS;
  const amount = shareOf(of.minor, take.percent);
  const id = `${take.kind}_${name}_${n}`;
  const names = {
    paymentIntentId: take.names === 'charge' ? null : intentId,
    chargeId: take.names === 'intent' ? null : chargeId,
  };
  const state = (k: number, isEnd: boolean, isBack: boolean): Facts => ({
    take: {
      id,
      ref: take.kind === 'outside' ? invoiceId : take.names === 'charge' ? chargeId : intentId,
      minor: amount,
      at: time(k),
      isEnd,
      isBack,
      group: id,
    },
  });
  if (take.kind === 'outside') {
    const outside = { id, invoiceId, paymentRecordId: `pr_${id}`, amount, currency };
    story.add((ids) => stripeInvoicePaymentPaid({ ...ids, ...outside }), state(0, false, false), {
      at: time(0),
    });
    return;
  }
  if (take.kind === 'refund') {
    const refund = (k: number, status: string) =>
      story.add(
        (ids) => stripeRefund({ ...ids, ...names, id, amount, currency, status }),
        state(k, status !== 'succeeded', status !== 'succeeded'),
        { at: time(k) },
      );
    refund(0, 'succeeded');
    if (take.isBack) refund(1, 'failed');
    return;
  }
  const dispute = (k: number, type: string, status: string, facts: Facts) =>
    story.add(
      (ids) =>
        stripeDispute({ ...ids, ...names, id, amount, currency, status, type: `charge.dispute.${type}` }),
      facts,
      { at: time(k) },
    );
  // An inquiry takes nothing. It may become a dispute.
  if (take.isInquiry) dispute(0, 'created', 'warning_needs_response', {});
  for (const [k, { name: type, status }] of take.states.entries()) {
    // The status says what is so, whatever the event is called. The refund of a prevented dispute counts itself.
    dispute(k + 1, type, status, state(k + 1, true, ['won', 'prevented'].includes(status)));
  }
}
