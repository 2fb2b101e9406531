import * as exported from '../shared/export.ts';
import type { ExportFormat, ExportRow, ProviderExports, RowReading } from '../shared/export.ts';

function readEvent(row: ExportRow): RowReading {
  const [id, name] = [exported.text(row, 'id'), exported.text(row, 'name')];
  if (id === null || name === null) return exported.unreadable('id or name is empty.');
  if (exported.text(row, 'source') === 'sdk' || name === 'transaction_complete') {
    return exported.skipped('an event of the SDK; the store reports the payment in another row');
  }
  const [at, purchasedAt] = [exported.utcTime(row, 'ts'), exported.utcTime(row, 'purchasedAt')];
  if (at === null) return exported.noTime('ts');
  const price = exported.decimal(row, 'price');
  if (price === undefined) return exported.noDecimal('price');
  const local = exported.decimal(row, 'priceInPurchasedCurrency');
  if (local === undefined) return exported.noDecimal('priceInPurchasedCurrency');
  return exported.events({
    object: 'event',
    type: name,
    timestamp: at,
    data: {
      id: exported.reconciledId(id),
      name,
      ts: at,
      purchasedAt,
      environment: exported.text(row, 'environment'),
      periodType: exported.text(row, 'periodType'),
      isTrialConversion: exported.flag(row, 'isTrialConversion'),
      productId: exported.text(row, 'productId'),
      originalAppUserId: exported.text(row, 'appUserId'),
      transactionId: exported.text(row, 'transactionId'),
      store: exported.text(row, 'store'),
      price,
      priceInPurchasedCurrency: local,
      currencyCode: exported.text(row, 'currencyCode'),
    },
  });
}

const revenueEvents: ExportFormat = {
  title: 'revenue events of the query API, with names (CSVWithNames)',
  form: 'csv',
  required: [
    'id',
    'name',
    'ts',
    'purchasedAt',
    'transactionId',
    'store',
    'price',
    'priceInPurchasedCurrency',
    'currencyCode',
    'environment',
    'periodType',
    'appUserId',
    'source',
  ],
  optional: ['isTrialConversion', 'productId'],
  lists: 'both',
  namesUsers: true,
  withoutUser: 'The export names no user of this payment.',
  read: readEvent,
  merge: null,
};

/** The exports of Superwall that can be compared. */
export const superwallExports: ProviderExports = {
  formats: [revenueEvents],
  hasRefundIds: false,
  hasRefundAmounts: true,
};
