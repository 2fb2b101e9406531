import * as exported from '../shared/export.ts';
import type { ExportFormat, ExportRow, ProviderExports, RowReading } from '../shared/export.ts';
import type { Payload } from '../shared/sample.ts';

const PRICE = 'purchase_price_in_usd';
const LOCAL_PRICE = 'purchase_price_in_purchased_currency';
/** What is left of the prices after refunds. */
const LEFT = 'price_in_usd';
const LOCAL_LEFT = 'price_in_purchased_currency';
const TAX = 'tax_percentage';
const FEE = 'commission_percentage';

/** Returns the type of the event that reports a transaction. */
function typeOf(row: ExportRow, renewalNumber: number | null): string {
  if (!exported.flag(row, 'is_auto_renewable')) return 'NON_RENEWING_PURCHASE';
  return (renewalNumber ?? 1) > 1 ? 'RENEWAL' : 'INITIAL_PURCHASE';
}

/** Returns the number of a cell, or null. */
function wholeNumber(row: ExportRow, column: string): number | null {
  const written = exported.text(row, column) ?? '';
  return /^\d{1,9}$/.test(written) ? Number(written) : null;
}

function readTransaction(row: ExportRow): RowReading {
  const transaction = exported.text(row, 'store_transaction_id');
  const store = exported.text(row, 'store');
  if (transaction === null || store === null) return exported.noValue('store_transaction_id or store');
  const startedAt = exported.utcTime(row, 'start_time');
  if (startedAt === null) return exported.noTime('start_time');
  const endsAt = exported.utcTime(row, 'end_time');
  if (store.toLowerCase() === 'play_store' && endsAt !== null && endsAt < startedAt) {
    return exported.skipped('a transaction of Google Play that failed: it ends before it starts');
  }
  const [price, local] = [exported.decimal(row, PRICE), exported.decimal(row, LOCAL_PRICE)];
  if (price === undefined) return exported.noDecimal(PRICE);
  if (local === undefined) return exported.noDecimal(LOCAL_PRICE);
  const [tax, fee] = [exported.decimal(row, TAX), exported.decimal(row, FEE)];
  if (tax === undefined) return exported.noDecimal(TAX);
  if (fee === undefined) return exported.noDecimal(FEE);
  const isRenewable = exported.flag(row, 'is_auto_renewable');
  const renewalNumber = wholeNumber(row, 'renewal_number');
  const key = [store.toLowerCase(), transaction, ...(isRenewable ? [renewalNumber ?? ''] : [])];
  const event = {
    app_user_id: exported.text(row, 'rc_last_seen_app_user_id_alias'),
    original_app_user_id: exported.text(row, 'rc_original_app_user_id'),
    aliases: [],
    currency: exported.text(row, 'purchased_currency'),
    environment: exported.flag(row, 'is_sandbox') ? 'SANDBOX' : 'PRODUCTION',
    event_timestamp_ms: startedAt,
    expiration_at_ms: isRenewable ? endsAt : null,
    id: exported.reconciledId(...key),
    original_transaction_id: exported.text(row, 'original_store_transaction_id'),
    is_family_share: exported.text(row, 'ownership_type')?.toUpperCase() === 'FAMILY_SHARED',
    is_trial_conversion: exported.flag(row, 'is_trial_conversion'),
    period_type: exported.flag(row, 'is_trial_period') ? 'TRIAL' : 'NORMAL',
    price,
    price_in_purchased_currency: local,
    product_id: exported.text(row, 'product_identifier'),
    purchased_at_ms: startedAt,
    renewal_number: isRenewable ? renewalNumber : null,
    store: store.toUpperCase(),
    tax_percentage: tax,
    commission_percentage: fee,
    transaction_id: transaction,
    type: typeOf(row, renewalNumber),
  };
  const bodies: Payload[] = [bodyOf(event)];
  if (exported.text(row, 'refunded_at') !== null) {
    const refundedAt = exported.utcTime(row, 'refunded_at');
    if (refundedAt === null) return exported.noTime('refunded_at');
    const [left, localLeft] = [exported.decimal(row, LEFT), exported.decimal(row, LOCAL_LEFT)];
    if (left === undefined) return exported.noDecimal(LEFT);
    if (localLeft === undefined) return exported.noDecimal(LOCAL_LEFT);
    const refunded = { price, price_in_purchased_currency: local };
    // A file without these columns does not state how much: a refund that no webhook has reported counts as the whole price.
    if (left !== null || localLeft !== null) {
      refunded.price = difference(price, left);
      refunded.price_in_purchased_currency = difference(local, localLeft);
    }
    if ((refunded.price ?? 0) > 0 || (refunded.price_in_purchased_currency ?? 0) > 0)
      bodies.push(bodyOf(refundOf({ ...event, ...refunded }, refundedAt, key)));
  }
  return exported.events(...bodies);
}

function bodyOf(event: Payload): Payload {
  return { api_version: '1.0', event };
}

/** Returns what was refunded of a price; null if one of the two is not stated. A difference of decimals can have a tail, which is no money. */
function difference(price: number | null, left: number | null): number | null {
  return price === null || left === null ? null : Number((price - left).toFixed(6));
}

function negative(price: unknown): number | null {
  return typeof price === 'number' ? -price : null;
}

function refundOf(event: Payload, at: number, key: readonly (string | number)[]): Payload {
  return {
    ...event,
    type: 'CANCELLATION',
    cancel_reason: 'CUSTOMER_SUPPORT',
    event_timestamp_ms: at,
    // A refund may be taken back and made again.
    id: exported.reconciledId('refund', ...key, at),
    price: negative(event['price']),
    price_in_purchased_currency: negative(event['price_in_purchased_currency']),
  };
}

const transactions: ExportFormat = {
  title: 'transactions of the scheduled data export, version 4 or newer',
  form: 'csv',
  required: [
    'rc_original_app_user_id',
    'rc_last_seen_app_user_id_alias',
    'start_time',
    'end_time',
    'store',
    'is_auto_renewable',
    'is_trial_period',
    'is_sandbox',
    PRICE,
    'purchased_currency',
    LOCAL_PRICE,
    'store_transaction_id',
    'refunded_at',
    'renewal_number',
    'ownership_type',
  ],
  optional: [
    'is_trial_conversion',
    'product_identifier',
    'original_store_transaction_id',
    TAX,
    FEE,
    LEFT,
    LOCAL_LEFT,
  ],
  lists: 'both',
  namesUsers: true,
  withoutUser: 'The export names no user of this payment.',
  read: readTransaction,
  merge: null,
};

/** The exports of RevenueCat that can be compared. */
export const revenuecatExports: ProviderExports = {
  formats: [transactions],
  hasRefundIds: false,
  hasRefundAmounts: false,
};
