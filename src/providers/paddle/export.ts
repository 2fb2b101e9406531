import * as exported from '../shared/export.ts';
import type { ExportFormat, ExportRow, ProviderExports, RowReading } from '../shared/export.ts';
import type { Payload } from '../shared/sample.ts';

/** Returns the notification that Paddle sends about an entity of its API. */
function notificationOf(type: string, entity: ExportRow, at: string): Payload {
  return {
    event_id: exported.reconciledId(type, String(entity['id']), String(entity['status'])),
    event_type: type,
    occurred_at: at,
    data: entity,
  };
}

/** Returns the first of the fields that is a time. */
function timeOf(entity: ExportRow, ...fields: readonly string[]): string | null {
  const field = fields.find((name) => exported.utcTime(entity, name) !== null);
  return field === undefined ? null : new Date(Number(exported.utcTime(entity, field))).toISOString();
}

function readTransaction(entity: ExportRow): RowReading {
  if (entity['status'] !== 'completed') return exported.skipped('a transaction that is not completed');
  const at = timeOf(entity, 'billed_at', 'updated_at', 'created_at');
  return at === null
    ? exported.noTime('billed_at')
    : exported.events(notificationOf('transaction.completed', entity, at));
}

function readAdjustment(entity: ExportRow): RowReading {
  const at = timeOf(entity, 'updated_at', 'created_at');
  return at === null
    ? exported.noTime('updated_at')
    : exported.events(notificationOf('adjustment.updated', entity, at));
}

const hasPrefix = (prefix: string) => (entity: ExportRow) => String(entity['id']).startsWith(prefix);

const transactions: ExportFormat = {
  title: 'list of transactions',
  form: 'json',
  required: ['id', 'status', 'currency_code', 'details'],
  optional: [],
  accepts: hasPrefix('txn_'),
  lists: 'payments',
  namesUsers: true,
  withoutUser: 'The transaction names no user.',
  read: readTransaction,
  merge: null,
};

const adjustments: ExportFormat = {
  title: 'list of adjustments',
  form: 'json',
  required: ['id', 'status', 'action', 'transaction_id', 'currency_code', 'totals'],
  optional: [],
  accepts: hasPrefix('adj_'),
  lists: 'refunds',
  namesUsers: true,
  withoutUser: 'The adjustment names no user.',
  read: readAdjustment,
  merge: null,
};

/** The exports of Paddle that can be compared. */
export const paddleExports: ProviderExports = {
  formats: [transactions, adjustments],
  hasRefundIds: true,
  hasRefundAmounts: true,
};
