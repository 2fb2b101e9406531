import { DAY_MS, HOUR_MS } from '../../src/domain/time.ts';
import type { Report } from './money-facts.ts';
import type { ExportedSale, SaleContext, SaleStep } from './money-sales.ts';
import {
  stripeCharge,
  stripeDispute,
  stripeInvoicePaid,
  stripeInvoicePaymentPaid,
} from './provider-fixtures.ts';
import type { Payload } from './provider-fixtures.ts';
import { shareOf, Story } from './stripe-story.ts';
import type { Facts, Ids } from './stripe-story.ts';

/**
 * The events of an invoice and its dispute, and the lists of Stripe's API that an operator feeds back. The webhooks that tie the
 * references come first, so that only the lost and late ones matter.
 */
export function exportedStory(sale: ExportedSale, { name, userId, now }: SaleContext): SaleStep[] {
  const at = now - sale.daysAgo * DAY_MS;
  const story = new Story(name, at);
  const { minor, currency, dispute } = sale;
  const user = userId(sale.user);
  const [invoiceId, intentId, chargeId] = [`in_${name}`, `pi_${name}`, `ch_${name}`];
  const money = { amount: minor, currency };
  const paid = (ids: Ids) =>
    stripeInvoicePaid({ ...ids, ...money, invoiceId, subscriptionId: `sub_${name}`, userId: user });
  const payment = {
    ref: invoiceId,
    store: 'stripe' as const,
    minor,
    currency,
    at,
    users: [user],
    keys: [`sub_${name}`],
    customers: [],
  };
  const invoice = (isOutside: boolean) => ({
    ...objectOf(paid({ eventId: '', occurredAt: at })),
    payments: {
      object: 'list',
      data: [
        {
          id: `inpay_${name}`,
          object: 'invoice_payment',
          amount_paid: minor,
          currency,
          status: 'paid',
          payment: isOutside
            ? { type: 'payment_record', payment_record: `pr_${name}` }
            : { type: 'payment_intent', payment_intent: intentId },
        },
      ],
    },
  });
  if (sale.invoice === 'outside') {
    return [{ do: 'export', lists: [[invoice(true)]], reports: [] }];
  }
  const tie = { stage: 0 };
  story.add(
    (ids) => stripeInvoicePaymentPaid({ ...ids, ...money, invoiceId, paymentIntentId: intentId }),
    { same: [[invoiceId, intentId]] },
    tie,
  );
  story.add(
    (ids) => stripeCharge({ ...ids, ...money, chargeId, paymentIntentId: intentId }),
    { same: [[intentId, chargeId]] },
    tie,
  );
  if (sale.invoice !== 'never') story.add(paid, { payment }, { stage: sale.invoice === 'late' ? 2 : 0 });
  const lists: Payload[][] = [[invoice(false)]];
  const reports: Report[] = [{ eventId: `exported ${name}`, payment: { ...payment, isExported: true } }];
  if (dispute !== null) {
    const id = `du_${name}`;
    const amount = shareOf(minor, dispute.percent);
    const times = [1, 2, 3].map((n) => at + n * HOUR_MS) as [number, number, number];
    const state = (when: number, isBack: boolean): Facts => ({
      take: { id, ref: intentId, minor: amount, at: when, isEnd: true, isBack, group: id },
    });
    const build = (status: string, type: string) => (ids: Ids) =>
      stripeDispute({ ...ids, id, amount, currency, paymentIntentId: intentId, chargeId, status, type });
    const isBack = dispute.result === 'won';
    story.add(build('needs_response', 'charge.dispute.created'), state(times[0], false), {
      at: times[0],
      stage: 0,
    });
    if (dispute.isWithdrawnSent) {
      story.add(build('needs_response', 'charge.dispute.funds_withdrawn'), state(times[1], false), {
        at: times[1],
      });
    }
    if (dispute.isEndSent && dispute.result !== 'needs_response') {
      story.add(build(dispute.result, 'charge.dispute.closed'), state(times[2], isBack), { at: times[2] });
    }
    const movedAt = isBack ? [times[1], times[2]] : [times[1]];
    const moved = movedAt.map((when, n) => ({
      id: `txn_${name}_${n}`,
      object: 'balance_transaction',
      created: when / 1000,
      amount: n === 0 ? -amount : amount,
    }));
    const object = {
      ...objectOf(build(dispute.result, 'x')({ eventId: '', occurredAt: times[0] })),
      balance_transactions: dispute.listsBalance ? moved : [],
    };
    lists.push([object]);
    const stated = dispute.listsBalance ? Math.max(...movedAt) : Infinity;
    reports.push({ eventId: `exported ${id}`, ...state(stated, isBack) });
  }
  return [...story.steps, { do: 'export', lists, reports, stage: 1 }];
}

function objectOf(event: Payload): Payload {
  return (event['data'] as { readonly object: Payload }).object;
}
