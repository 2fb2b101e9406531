/**
 * What the readers of providers' exports have in common. A reader makes the webhook bodies that the provider would have sent
 * for a row, so that the provider's parser decides what the row is worth, as for every webhook.
 */
import { RECONCILED_EVENT_PREFIX } from '../../domain/reconcile-findings.ts';
import { decimalToMinor } from '../../domain/money.ts';
import type { Payload } from './sample.ts';
import { isDay } from './read-body.ts';

/** A row of an export: the cells of a line by their column, as text, or an object of a JSON list. */
export type ExportRow = Readonly<Record<string, unknown>>;

/** What a row means. */
export type RowReading =
  | {
      readonly kind: 'events';
      readonly bodies: readonly Payload[];
      /** What the rows of one payment have in common. By default the reference of the payment. */
      readonly group?: string;
      /** Why no event may be made of the row, as a sentence. */
      readonly refusal?: string | null;
      /** Whether the amount reduces the payment that other rows state. */
      readonly isNegative?: boolean;
    }
  /** The row moves no money, or none that counts. */
  | { readonly kind: 'skipped'; readonly reason: string }
  | { readonly kind: 'unreadable'; readonly reason: string }
  /** The whole export lacks what a comparison needs. The reason says how to export it. */
  | { readonly kind: 'refused'; readonly reason: string };

/** What is known about an export besides its rows. */
export interface ExportContext {
  /** Until when its rows are known to be right, epoch ms: when the file was written. */
  readonly exportedAt: number;
}

/** One form of a provider's export. */
export interface ExportFormat {
  /** How people call it, such as `transactions of the scheduled data export`. */
  readonly title: string;
  readonly form: 'csv' | 'json';
  /** CSV: the columns that it must have. JSON: the fields that each object must have. */
  readonly required: readonly string[];
  /** Columns that are read where they exist. */
  readonly optional: readonly string[];
  /** Whether a JSON object has this form. By default every object that has the required fields. */
  readonly accepts?: (object: ExportRow) => boolean;
  /** What the export lists. Only for what it lists can the service have something that the export lacks. */
  readonly lists: 'payments' | 'refunds' | 'both';
  /** Whether a row always names the user whom the provider's webhook names. */
  readonly namesUsers: boolean;
  /** Where to find what this form lacks, as a sentence. For refusals. */
  readonly withoutUser: string;
  readonly read: (row: ExportRow, context: ExportContext) => RowReading;
  /** Makes one body of several that report parts of one payment; null if nothing is left of it. Null: every body is complete. */
  readonly merge: ((parts: readonly PaymentPart[]) => Payload | null) | null;
}

/** A body that reports a part of a payment. */
export interface PaymentPart {
  readonly body: Payload;
  readonly isNegative: boolean;
}

/** What the service can read of a provider's exports. */
export interface ProviderExports {
  readonly formats: readonly ExportFormat[];
  /** Whether the provider's refunds have ids of their own. */
  readonly hasRefundIds: boolean;
  /** Whether the exports state how much is refunded. */
  readonly hasRefundAmounts: boolean;
}

export function skipped(reason: string): RowReading {
  return { kind: 'skipped', reason };
}

export function unreadable(reason: string): RowReading {
  return { kind: 'unreadable', reason };
}

export function refused(reason: string): RowReading {
  return { kind: 'refused', reason };
}

export function events(...bodies: readonly Payload[]): RowReading {
  return { kind: 'events', bodies };
}

/** Returns the id of an event that is made from an export. The same row always has the same id. */
export function reconciledId(...parts: readonly (string | number)[]): string {
  return RECONCILED_EVENT_PREFIX + parts.join(':');
}

/** Returns the text of a cell. Null where it is missing or empty, or the `\N` that ClickHouse writes for null. */
export function text(row: ExportRow, column: string): string | null {
  const value = row[column];
  if (typeof value !== 'string') return null;
  const trimmed = value.trim();
  return trimmed === '' || trimmed === String.raw`\N` || trimmed.toLowerCase() === 'null' ? null : trimmed;
}

/** Returns a flag, written as `true`, `t` or `1`. Anything else is false. */
export function flag(row: ExportRow, column: string): boolean {
  return ['true', 't', '1'].includes(text(row, column)?.toLowerCase() ?? '');
}

const TIME =
  /^(\d{4}-\d{2}-\d{2})(?:[T ](\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?))?\s*(Z|UTC|[+-]\d{2}:?\d{2}|[+-]\d{2})?$/i;

/** Returns a time in UTC, epoch ms. A zone in the text counts; without one it is UTC. Null where it can't be read. */
export function utcTime(row: ExportRow, column: string): number | null {
  const [, day, time = '00:00', zone = 'Z'] = TIME.exec(text(row, column) ?? '') ?? [];
  if (day === undefined || !isDay(day)) return null;
  const [clock = '', fraction = ''] = time.split('.');
  const offset = /^[+-]\d{2}$/.test(zone) ? `${zone}:00` : zone.replace(/^([+-]\d{2})(\d{2})$/, '$1:$2');
  const at = Date.parse(
    `${day}T${clock}${fraction === '' ? '' : `.${fraction.slice(0, 3)}`}${offset.toUpperCase() === 'UTC' ? 'Z' : offset}`,
  );
  return Number.isNaN(at) ? null : at;
}

const PLAIN_DECIMAL = /^-?\d+(?:\.\d+)?$/;

/** Returns the number of a decimal cell, or null where it is empty. Undefined where it is no plain decimal. */
export function decimal(row: ExportRow, column: string): number | null | undefined {
  const written = text(row, column);
  if (written === null) return null;
  return PLAIN_DECIMAL.test(written) && decimalToMinor(written, 2) !== null ? Number(written) : undefined;
}

/** Returns the reason for a cell that is no plain decimal. It does not quote the cell. */
export function noDecimal(column: string): RowReading {
  return unreadable(
    `${column} is not a decimal number such as 12.50. Export the file with a point as decimal separator and without separators of thousands.`,
  );
}

/** Returns the reason for a cell without a time. */
export function noTime(column: string): RowReading {
  return unreadable(`${column} is not a time such as 2026-01-31 12:00:00 or 2026-01-31T12:00:00Z.`);
}

/** Returns the reason for an empty cell. */
export function noValue(column: string): RowReading {
  return unreadable(`${column} is empty, so the row names no payment.`);
}
