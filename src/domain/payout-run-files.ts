import { csvLine, neutralizeFormula } from './csv-cells.ts';
import type { Payee } from './payee.ts';
import type { PayoutFileMethod } from './payout-run.ts';
import type { AffiliateId, PayoutRunItemId } from './ids.ts';
import { formatMinor } from './money.ts';

/** A paid item of a payout run. */
export interface FileRow {
  readonly itemId: PayoutRunItemId;
  readonly affiliateId: AffiliateId;
  readonly affiliateName: string;
  readonly amountCents: number;
  readonly method: PayoutFileMethod;
  /** Null for a creator without a payee, and for one whose payee was erased or is lost with its key. */
  readonly payee: Payee | null;
}

/** A file for a payment service. */
export interface PayoutFile {
  readonly method: PayoutFileMethod;
  /** From 1. */
  readonly part: number;
  readonly rowCount: number;
  readonly totalCents: number;
  /** CSV with CRLF after every line. */
  readonly text: string;
}

/** How the file of a method is written. */
interface Format {
  /** The rows that the payment service takes in one file. */
  readonly most: number;
  /** Null: the file has no header line. */
  readonly header: readonly string[] | null;
  readonly cells: (row: FileRow) => readonly string[];
}

/** Characters of a payment reference at Wise. */
const WISE_REFERENCE = 16;

/** Returns the key that a file for Wise gives to a row: the last characters of the id of its item. */
export const wiseKeyOf = (itemId: string): string => itemId.slice(-WISE_REFERENCE);

/** Returns the key that the file of a method gives to the row of an item. */
const rowKeyOf = (method: PayoutFileMethod, itemId: string): string =>
  method === 'wise' ? wiseKeyOf(itemId) : itemId;

/** Whether the text of a file of a method has the row of an item. The key of a row is a cell of its own, and never the last one. */
export const hasRowOf = (method: PayoutFileMethod, text: string, itemId: string): boolean =>
  text.includes(`${rowKeyOf(method, itemId)},`);

/**
 * The formats, as their services describe them: PayPal (https://docs.paypal.ai/send/use-web-ui) has no header line and at most 5,000
 * rows; Wise takes at most 1,000 (https://wise.com/us/blog/everything-about-batch-payments), under the columns that public exporters
 * write. The key of a row is the id of its item, for Wise its last characters.
 */
const FORMATS: Readonly<Record<PayoutFileMethod, Format>> = {
  paypal: {
    most: 5_000,
    header: null,
    cells: (row) => [emailOf(row), usd(row), 'USD', row.itemId, 'Commissions', 'PAYPAL'],
  },
  wise: {
    most: 1_000,
    header: [
      'name',
      'recipientEmail',
      'paymentReference',
      'receiverType',
      'amountCurrency',
      'amount',
      'sourceCurrency',
      'targetCurrency',
    ],
    cells: (row) => {
      const { name, receiverType } =
        row.payee?.method === 'wise' ? row.payee.recipient : { name: '', receiverType: '' };
      const key = wiseKeyOf(row.itemId);
      return [name, emailOf(row), key, receiverType, 'target', usd(row), 'USD', 'USD'];
    },
  },
  other: {
    most: 50_000,
    header: ['item_id', 'affiliate_id', 'affiliate_name', 'name', 'reference', 'amount_usd', 'currency'],
    cells: (row) => {
      const { name, reference } =
        row.payee?.method === 'other' ? row.payee.recipient : { name: '', reference: '' };
      return [row.itemId, row.affiliateId, row.affiliateName, name, reference, usd(row), 'USD'];
    },
  },
};

const usd = ({ amountCents }: FileRow) => formatMinor(amountCents, 'USD');

function emailOf({ payee }: FileRow): string {
  return payee?.method === 'paypal' || payee?.method === 'wise' ? payee.recipient.email : '';
}

/** A row whose recipient is unknown can't be in the file of a payment service. */
const methodOf = ({ method, payee }: FileRow): PayoutFileMethod =>
  payee?.method === method ? method : 'other';

const line = (texts: readonly string[]) => csvLine(texts.map(neutralizeFormula));

/** Writes the files of a payout run: every row is in exactly one, and no file has more rows than its payment service takes. */
export function writePayoutFiles(rows: readonly FileRow[]): PayoutFile[] {
  const methods = Object.keys(FORMATS) as PayoutFileMethod[];
  return methods.flatMap((method) => {
    const { most, header, cells } = FORMATS[method];
    const ofMethod = rows.filter((row) => methodOf(row) === method);
    const parts = Array.from({ length: Math.ceil(ofMethod.length / most) }, (_, n) =>
      ofMethod.slice(n * most, (n + 1) * most),
    );
    return parts.map((part, n) => ({
      method,
      part: n + 1,
      rowCount: part.length,
      totalCents: part.reduce((sum, { amountCents }) => sum + amountCents, 0),
      text: (header === null ? '' : line(header)) + part.map((row) => line(cells(row))).join(''),
    }));
  });
}
