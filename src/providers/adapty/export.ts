import * as exported from '../shared/export.ts';
import type { ExportFormat, ExportRow, ProviderExports, RowReading } from '../shared/export.ts';

function readEvent(row: ExportRow): RowReading {
  const type = exported.text(row, 'event_type')?.toLowerCase() ?? null;
  if (type === null) return exported.unreadable('event_type is empty.');
  const transaction = exported.text(row, 'transaction_id');
  const at = exported.utcTime(row, 'event_datetime');
  if (at === null) return exported.noTime('event_datetime');
  const [usd, local] = [exported.decimal(row, 'revenue_usd'), exported.decimal(row, 'revenue_local')];
  if (usd === undefined) return exported.noDecimal('revenue_usd');
  if (local === undefined) return exported.noDecimal('revenue_local');
  const id = exported.reconciledId(type, transaction ?? '', at);
  const moment = new Date(at).toISOString();
  return exported.events({
    event_type: type,
    event_datetime: moment,
    customer_user_id: exported.text(row, 'customer_user_id'),
    event_properties: {
      store: exported.text(row, 'store'),
      currency: exported.text(row, 'currency'),
      price_usd: usd,
      price_local: local,
      profile_event_id: id,
      environment: exported.text(row, 'environment'),
      vendor_product_id: exported.text(row, 'product_id'),
      transaction_id: transaction,
      original_transaction_id: exported.text(row, 'original_transaction_id'),
      event_datetime: moment,
      cancellation_reason: exported.text(row, 'cancellation_reason'),
    },
  });
}

const s3Events: ExportFormat = {
  title: 'events of the Amazon S3 or Google Cloud Storage integration',
  form: 'csv',
  required: [
    'event_type',
    'event_datetime',
    'transaction_id',
    'environment',
    'revenue_usd',
    'revenue_local',
    'currency',
    'customer_user_id',
    'store',
    'cancellation_reason',
  ],
  optional: ['product_id', 'original_transaction_id'],
  lists: 'both',
  namesUsers: true,
  withoutUser: 'The export names no user of this payment.',
  read: readEvent,
  merge: null,
};

/** The exports of Adapty that can be compared. */
export const adaptyExports: ProviderExports = {
  formats: [s3Events],
  hasRefundIds: false,
  hasRefundAmounts: true,
};
