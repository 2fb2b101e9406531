import type { Random } from './random.ts';

/* The payment services of the founder, as far as a founder sees them: each row of an uploaded file is a payment. */

/** What became of a payment. A pending one may arrive. */
type PaymentStatus = 'Pending' | 'Completed' | 'Returned';

/** A row of a file. */
export interface RailRow {
  /** What the file calls the row. */
  readonly key: string;
  readonly payoutId: string;
  readonly cents: number;
}

export interface RailPayment extends RailRow {
  readonly runId: string;
  readonly reference: string;
  status: PaymentStatus;
}

/** Pays every row that is uploaded, without a look at earlier ones, as payment services do. */
export class Rail {
  readonly payments: RailPayment[] = [];
  /** Payouts whose money was on its way, or had arrived, when it was sent again. */
  readonly sentTwice: string[] = [];
  readonly #name: string;

  constructor(name: string) {
    this.#name = name;
  }

  /** Pays the rows of a file. */
  upload(runId: string, rows: readonly RailRow[]): void {
    for (const row of rows) {
      if (this.payments.some((one) => one.payoutId === row.payoutId && one.status !== 'Returned'))
        this.sentTwice.push(`${row.payoutId} by ${runId}`);
      const reference = `T${this.#name}${this.payments.length + 1}`;
      this.payments.push({ ...row, runId, reference, status: 'Pending' });
    }
  }

  /** Some payments arrive or come back, and a few come back that had arrived. */
  goOn(random: Random): void {
    for (const payment of this.payments) {
      const isLatest = this.payments.findLast(({ payoutId }) => payoutId === payment.payoutId) === payment;
      if (payment.status === 'Pending' && random.chance(0.7))
        payment.status = random.chance(0.25) ? 'Returned' : 'Completed';
      else if (payment.status === 'Completed' && isLatest && random.chance(0.01)) payment.status = 'Returned';
    }
  }

  /** Every payment that is on its way arrives. */
  complete(): void {
    for (const payment of this.payments) if (payment.status === 'Pending') payment.status = 'Completed';
  }

  /** The report about a run. */
  reportOf(runId: string): string {
    const rows = this.payments.filter((payment) => payment.runId === runId);
    const lines = rows.map(({ reference, status, key }) => `${reference},${status},${key}`);
    return ['Transaction ID,Status,Unique ID', ...lines].join('\n');
  }
}
