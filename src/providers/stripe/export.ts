import { decimalToMinor } from '../../domain/money.ts';
import * as exported from '../shared/export.ts';
import type {
  ExportContext,
  ExportFormat,
  ExportRow,
  PaymentPart,
  ProviderExports,
  RowReading,
} from '../shared/export.ts';
import { toSeconds } from '../shared/sample.ts';
import type { Payload } from '../shared/sample.ts';
import { STRIPE_MINOR_UNITS } from './currencies.ts';

/** The column of the report that has the app's user id. It must be requested by this name. */
const USER = 'payment_metadata[app_user_id]';

/** Why a payment without a user is not fed back. */
const WITHOUT_USER = `The report names no user of this payment. Without an invoice, it counts only if a checkout session named its user, which the report does not show. If the export lacks the column ${USER}, request it. Otherwise have Stripe send the webhook of the session again.`;

/** The column of the report that has the payment method, such as `card` or `sepa_debit`. */
const METHOD = 'payment_method_type';

const CATEGORIES_OF_PAYMENTS: ReadonlySet<string> = new Set([
  'charge',
  'charge_failure',
  'partial_capture_reversal',
]);

const isText = (value: unknown): value is string => typeof value === 'string';

function eventOf(type: string, object: Payload, at: number, livemode: unknown = true): Payload {
  return {
    id: exported.reconciledId(type, ...[object['id'], object['status']].filter(isText)),
    object: 'event',
    type,
    created: toSeconds(at),
    livemode,
    data: { object },
  };
}

/** Returns an amount of the report, which is in major units, in Stripe's minor units. Null where it can't be read. */
function minorUnits(row: ExportRow, column: string, currency: string): number | null {
  const written = exported.text(row, column);
  if (written === null || !/^-?\d+(?:\.\d+)?$/.test(written)) return null;
  return decimalToMinor(written, STRIPE_MINOR_UNITS.decimals.get(currency) ?? 2);
}

interface BalanceRow {
  readonly at: number;
  readonly currency: string;
  /** Minor units of Stripe, with the sign of the report. */
  readonly amount: number;
  readonly invoice: string | null;
  readonly intent: string | null;
  readonly charge: string | null;
  readonly source: string | null;
}

function readBalanceRow(row: ExportRow): RowReading {
  const category = exported.text(row, 'reporting_category');
  const isPayment = CATEGORIES_OF_PAYMENTS.has(category ?? '');
  if (!isPayment && !['refund', 'refund_failure', 'dispute', 'dispute_reversal'].includes(category ?? '')) {
    return exported.skipped('a movement of the balance that is no payment, refund or dispute');
  }
  const at = exported.utcTime(row, 'created_utc');
  if (at === null) return exported.noTime('created_utc');
  const currency = exported.text(row, 'customer_facing_currency')?.toUpperCase() ?? null;
  if (currency === null) {
    return exported.unreadable(
      'customer_facing_currency is empty, so the amount that the customer paid is not known; gross is in the currency of the balance.',
    );
  }
  const amount = minorUnits(row, 'customer_facing_amount', currency);
  if (amount === null) return exported.noDecimal('customer_facing_amount');
  const names: BalanceRow = {
    at,
    currency,
    amount,
    invoice: exported.text(row, 'invoice_id'),
    intent: exported.text(row, 'payment_intent_id'),
    charge: exported.text(row, 'charge_id'),
    source: exported.text(row, 'source_id'),
  };
  if (isPayment && names.invoice === null && names.intent === null) {
    return exported.skipped('a charge without a payment intent and without an invoice, which never counts');
  }
  const group = names.invoice ?? names.intent ?? names.charge;
  if (group === null) return exported.noValue('charge_id');
  const body = isPayment ? paymentOf(row, names) : adjustmentOf(names, category ?? '');
  if (body === null) return exported.noValue('source_id');
  return {
    kind: 'events',
    bodies: [body],
    group,
    refusal: isPayment ? refusalOf(row, names) : null,
    isNegative: isPayment && category !== 'charge',
  };
}

/**
 * Returns why a charge is not fed back, as a sentence. The report does not show whether its invoice is paid, and the first amount of a
 * payment stays; nor whether a charge without an invoice had a checkout session, without which its money counts only if it names its
 * user. Bank debits are in the balance while they are pending.
 */
function refusalOf(row: ExportRow, { invoice }: BalanceRow): string | null {
  if (invoice !== null) {
    return 'The report does not show whether the invoice is paid in full. Export the invoices as JSON, and compare that file.';
  }
  if (exported.text(row, USER) === null) return WITHOUT_USER;
  const method = exported.text(row, METHOD);
  if (method === 'card') return null;
  const what =
    method === null
      ? `The row has no ${METHOD}, and a bank debit is in the balance before it succeeds or fails.`
      : 'The payment is not by card, and it may be in the balance before it succeeds or fails.';
  return `${what} Have Stripe send the webhook again.`;
}

/** Returns the payment of a row. The parts of one payment are added up in `mergePayments`. */
function paymentOf(row: ExportRow, names: BalanceRow): Payload {
  const amount = Math.abs(names.amount);
  const currency = names.currency.toLowerCase();
  const customer = exported.text(row, 'customer_id');
  const user = exported.text(row, USER);
  const metadata = user === null ? {} : { app_user_id: user };
  const { invoice, intent, charge, at } = names;
  if (invoice !== null) {
    const object = {
      id: invoice,
      object: 'invoice',
      currency,
      amount_paid: amount,
      customer,
      payment_intent: intent,
      charge,
      metadata,
      status_transitions: { paid_at: toSeconds(at) },
      lines: { data: [] },
    };
    return eventOf('invoice.paid', object, at);
  }
  if (user !== null) {
    const object = {
      id: intent,
      currency,
      amount_received: amount,
      latest_charge: charge,
      customer,
      metadata,
    };
    return eventOf('payment_intent.succeeded', { ...object, object: 'payment_intent' }, at);
  }
  // Only to be compared with the payment of a checkout session, if there was one: `refusalOf` keeps it from being fed back.
  const object = {
    id: intent,
    object: 'checkout.session',
    mode: 'payment',
    payment_status: 'paid',
    currency,
    amount_total: amount,
    payment_intent: intent,
    metadata,
  };
  return eventOf('checkout.session.completed', object, at);
}

function adjustmentOf(names: BalanceRow, category: string): Payload | null {
  const { source, at, charge, intent } = names;
  if (source === null) return null;
  const object = {
    id: source,
    currency: names.currency.toLowerCase(),
    amount: Math.abs(names.amount),
    payment_intent: intent,
    charge,
  };
  // Money may go and come back several times: each movement is an event of its own.
  const movement = (type: string, further: Payload = {}) => ({
    ...eventOf(type, { ...object, ...further }, at),
    id: exported.reconciledId(type, source, toSeconds(at)),
  });
  switch (category) {
    case 'refund':
      return movement('refund.updated', { created: toSeconds(at), status: 'succeeded' });
    case 'refund_failure':
      return movement('refund.failed', { status: 'failed' });
    case 'dispute':
      return movement('charge.dispute.funds_withdrawn');
    default:
      return movement('charge.dispute.funds_reinstated', { status: 'won' });
  }
}

const AMOUNT_FIELDS = ['amount_paid', 'amount_received', 'amount_total'] as const;

interface StripeBody {
  readonly created: number;
  readonly data: { readonly object: Readonly<Record<string, unknown>> };
}

/** Adds up the charges of one invoice or payment intent: an invoice may be paid in parts. Null where all of it went back. */
function mergePayments(parts: readonly PaymentPart[]): Payload | null {
  const stated = parts
    .map(({ body, isNegative }) => ({ ...(body as unknown as StripeBody), sign: isNegative ? -1 : 1 }))
    .toSorted((a, b) => a.created - b.created);
  const keyOf = ({ created, sign, data: { object } }: (typeof stated)[number]) =>
    [
      created,
      sign,
      ...AMOUNT_FIELDS.map((name) => object[name]),
      ...[object['charge'], object['latest_charge']].filter(isText),
    ].join(' ');
  // A row may be in the file twice, where two exports were put together.
  const all = [...new Map(stated.map((part) => [keyOf(part), part])).values()];
  const charges = all.filter(({ sign }) => sign > 0);
  const [first] = charges;
  const last = charges.at(-1);
  if (first === undefined || last === undefined) return null;
  const field = AMOUNT_FIELDS.find((name) => name in first.data.object) ?? 'amount_paid';
  const sum = all.reduce((total, { data, sign }) => total + sign * Number(data.object[field]), 0);
  if (sum <= 0) return null;
  const { sign: _, ...event } = last;
  const metadata = Object.assign({}, ...charges.map(({ data }) => data.object['metadata'])) as Payload;
  const object = { ...withoutNulls(first.data.object), ...withoutNulls(last.data.object) };
  // Each charge has a payment intent of its own, which later events of the part name.
  const payments = field === 'amount_paid' ? { payments: { data: charges.map(invoicePaymentOf) } } : {};
  return { ...event, data: { object: { ...object, ...payments, metadata, [field]: sum } } };
}

function invoicePaymentOf({ data: { object } }: StripeBody): Payload {
  return { payment: { payment_intent: object['payment_intent'], charge: object['charge'] } };
}

function withoutNulls(object: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(object).filter(([, value]) => value !== null));
}

const balance: ExportFormat = {
  title: 'itemized balance change from activity',
  form: 'csv',
  required: [
    'created_utc',
    'reporting_category',
    'source_id',
    'customer_facing_amount',
    'customer_facing_currency',
    'charge_id',
    'payment_intent_id',
    'invoice_id',
  ],
  optional: ['customer_id', METHOD, USER],
  lists: 'both',
  namesUsers: false,
  withoutUser: WITHOUT_USER,
  read: readBalanceRow,
  merge: mergePayments,
};

const secondsOf = (value: unknown): number | null => (Number.isSafeInteger(value) ? Number(value) : null);

const NO_TIME = exported.unreadable('created is not a time in seconds.');

/** Returns an event of an object of the API, of the live mode or of a test mode. */
function objectEvent(type: string, object: ExportRow, seconds: number): Payload {
  return eventOf(type, object, seconds * 1000, object['livemode'] ?? true);
}

function jsonFormat(
  object: string,
  details: Pick<ExportFormat, 'title' | 'required' | 'lists' | 'read'> & { readonly namesUsers?: boolean },
): ExportFormat {
  return {
    form: 'json',
    optional: [],
    accepts: (row) => row['object'] === object,
    namesUsers: false,
    withoutUser:
      'The object names no user, and no webhook has named the user of its subscription or customer. Set metadata.app_user_id, or have Stripe send the webhook again.',
    merge: null,
    ...details,
  };
}

const objectsIn = (value: unknown): readonly Payload[] =>
  Array.isArray(value)
    ? value.filter((item): item is Payload => typeof item === 'object' && item !== null)
    : [];

const partOf = (value: unknown): Payload =>
  typeof value === 'object' && value !== null ? (value as Payload) : {};

const NO_PAYMENTS =
  'The invoices do not state their payments, so they do not show what was paid outside Stripe. Export them again with GET /v1/invoices?status=paid&expand[]=data.payments.';

/**
 * Reads an invoice with its payments. Those outside Stripe are events of their own, since the paid amount includes them. Before
 * API version 2025-03-31 an invoice has no payments, and says whether it was paid outside Stripe.
 */
function readInvoice(invoice: ExportRow): RowReading {
  if (invoice['status'] !== 'paid' || invoice['amount_paid'] === 0) {
    return exported.skipped('an object that moved no money');
  }
  const paidAt = secondsOf(partOf(invoice['status_transitions'])['paid_at']) ?? secondsOf(invoice['created']);
  if (paidAt === null) return NO_TIME;
  const paid = objectEvent('invoice.paid', invoice, paidAt);
  if ('paid_out_of_band' in invoice) return exported.events(paid);
  const payments = partOf(invoice['payments']);
  if (!Array.isArray(payments['data'])) return exported.refused(NO_PAYMENTS);
  if (payments['has_more'] === true) {
    return exported.unreadable(
      'The invoice has more payments than it lists, so it does not show what was paid outside Stripe. Have Stripe send its webhooks again.',
    );
  }
  const outside = objectsIn(payments['data']).filter(
    (payment) => partOf(payment['payment'])['type'] === 'payment_record' && payment['status'] === 'paid',
  );
  return exported.events(
    paid,
    ...outside.map((payment) => {
      const livemode = invoice['livemode'] ?? true;
      return objectEvent('invoice_payment.paid', { ...payment, invoice: invoice['id'], livemode }, paidAt);
    }),
  );
}

const invoices = jsonFormat('invoice', {
  title: 'list of invoices',
  required: ['id', 'object', 'status', 'currency', 'amount_paid'],
  lists: 'payments',
  read: readInvoice,
});

const refunds = jsonFormat('refund', {
  title: 'list of refunds',
  required: ['id', 'object', 'status', 'currency', 'amount'],
  lists: 'refunds',
  read: (refund) => {
    if (!['succeeded', 'failed', 'canceled'].includes(String(refund['status']))) {
      return exported.skipped('an object that moved no money');
    }
    const created = secondsOf(refund['created']);
    return created === null ? NO_TIME : exported.events(objectEvent('refund.updated', refund, created));
  },
});

/** Returns when the balance last moved in one direction because of a dispute, in seconds. Null where it does not say so. */
function lastMovement(dispute: ExportRow, isBack: boolean): number | null {
  const times = objectsIn(dispute['balance_transactions'])
    .filter(({ amount }) => typeof amount === 'number' && amount > 0 === isBack)
    .flatMap(({ created }) => secondsOf(created) ?? []);
  return times.length === 0 ? null : Math.max(...times);
}

/**
 * Reads a dispute. Its state began when the balance last moved. A dispute that gave back counts from the time of the export
 * where the balance does not show when: it is later than everything that webhooks reported before.
 */
function readDispute(dispute: ExportRow, { exportedAt }: ExportContext): RowReading {
  const status = String(dispute['status']);
  if (status.startsWith('warning_')) return exported.skipped('an object that moved no money');
  const created = secondsOf(dispute['created']);
  if (created === null) return NO_TIME;
  const isBack = status === 'won' || status === 'prevented';
  const at = lastMovement(dispute, isBack) ?? (isBack ? toSeconds(exportedAt) : created);
  const type = isBack || status === 'lost' ? 'charge.dispute.closed' : 'charge.dispute.created';
  const event = objectEvent(type, dispute, at);
  // The time is in the id, so that a later export can state the same status again.
  return exported.events({ ...event, id: `${String(event['id'])}:${at}` });
}

const disputes = jsonFormat('dispute', {
  title: 'list of disputes',
  required: ['id', 'object', 'status', 'currency', 'amount'],
  lists: 'refunds',
  read: readDispute,
});

/** The exports of Stripe that can be compared. */
export const stripeExports: ProviderExports = {
  formats: [balance, invoices, refunds, disputes],
  hasRefundIds: true,
  hasRefundAmounts: true,
};
