/** A second statement of what payout runs, exports and reports do, which shares no code with the service. Amounts are in US cents. */

/** A bonus or a deduction. */
interface Entry {
  readonly cents: number;
  isPaid: boolean;
}

export interface ModelCreator {
  readonly id: string;
  readonly entries: Entry[];
  isBlocked: boolean;
}

/** What a payment service did with a row of a file. A pending payment may arrive. */
export type RailStatus = 'Pending' | 'Completed' | 'Returned';

/** A payment of a payout: by a row of a run's file, or by hand. */
interface Payment {
  readonly runId: string | null;
  /** The key of the row. */
  readonly itemId: string | null;
  status: RailStatus;
}

export interface ModelPayout {
  readonly id: string;
  readonly creatorId: string;
  readonly cents: number;
  /** In turn. */
  readonly payments: Payment[];
  /** What was stated since the latest file with it. */
  stated: 'nothing' | 'sent' | 'returned';
  /** Whether it was stated since then that the money came back. */
  cameBack: boolean;
}

/** An item of a draft. */
export interface ModelItem {
  readonly creatorId: string;
  readonly cents: number;
  /** In a resend run. */
  readonly payoutId: string | null;
}

export interface ModelDraft {
  readonly runId: string;
  readonly kind: 'pay' | 'resend';
  /** The largest first. */
  readonly items: readonly ModelItem[];
  /** Entries from before the draft, which it may pay. */
  readonly known: ReadonlySet<Entry>;
}

const sum = (entries: readonly Entry[]) => entries.reduce((total, { cents }) => total + cents, 0);
const unpaid = ({ entries }: ModelCreator) => entries.filter(({ isPaid }) => !isPaid);

export class PayoutModel {
  readonly creators = new Map<string, ModelCreator>();
  readonly payouts = new Map<string, ModelPayout>();

  addCreator(id: string): void {
    this.creators.set(id, { id, entries: [], isBlocked: false });
  }

  creator(id: string): ModelCreator {
    const found = this.creators.get(id);
    if (found === undefined) throw new Error(`the model has no creator ${id}`);
    return found;
  }

  payout(id: string): ModelPayout {
    const found = this.payouts.get(id);
    if (found === undefined) throw new Error(`the model has no payout ${id}`);
    return found;
  }

  /** What is due to a creator. */
  due(id: string): number {
    return sum(unpaid(this.creator(id)));
  }

  draftPay(runId: string, minimumCents: number): ModelDraft {
    const items = [...this.creators.values()]
      .filter(({ isBlocked }) => !isBlocked)
      .map(({ id }) => ({ creatorId: id, cents: this.due(id), payoutId: null }))
      .filter(({ cents }) => cents > 0 && cents >= minimumCents);
    const known = new Set([...this.creators.values()].flatMap(unpaid));
    return { runId, kind: 'pay', items, known };
  }

  draftResend(runId: string): ModelDraft {
    const items = this.returned()
      .filter(({ creatorId }) => !this.creator(creatorId).isBlocked)
      .map(({ id, creatorId, cents }) => ({ creatorId, cents, payoutId: id }));
    return { runId, kind: 'resend', items, known: new Set() };
  }

  /** The payouts whose money came back and was not sent again. */
  returned(): ModelPayout[] {
    return [...this.payouts.values()].filter(({ stated }) => stated === 'returned');
  }

  /** Whether a run pays an item, or sends it again, if it is approved now. Later bonuses wait, later deductions count. */
  isSettled({ kind, known }: ModelDraft, item: ModelItem): boolean {
    const creator = this.creator(item.creatorId);
    if (creator.isBlocked) return false;
    if (kind === 'resend') return this.payout(item.payoutId ?? '').stated === 'returned';
    const rows = unpaid(creator).filter((entry) => entry.cents < 0 || known.has(entry));
    return rows.length > 0 && sum(rows) === item.cents;
  }

  /** Notes that a run has paid an item. */
  pay({ known }: ModelDraft, item: ModelItem, payoutId: string): void {
    const rows = unpaid(this.creator(item.creatorId)).filter((entry) => entry.cents < 0 || known.has(entry));
    this.#book(rows, item.creatorId, payoutId);
  }

  /** Notes an export. Null: nothing is due. */
  export(creatorId: string, payoutId: string | null): void {
    const rows = unpaid(this.creator(creatorId));
    if (payoutId !== null) this.#book(rows, creatorId, payoutId);
  }

  #book(rows: readonly Entry[], creatorId: string, payoutId: string): void {
    for (const row of rows) row.isPaid = true;
    if (this.payouts.has(payoutId)) throw new Error(`${payoutId} was made twice`);
    this.payouts.set(payoutId, {
      id: payoutId,
      creatorId,
      cents: sum(rows),
      payments: [],
      stated: 'nothing',
      cameBack: false,
    });
  }

  /** Notes that a resend run has put a payout into a file. */
  resend(payoutId: string): void {
    const payout = this.payout(payoutId);
    payout.stated = 'nothing';
    payout.cameBack = false;
  }

  /** A row of a file is uploaded, or somebody transfers the money by hand: a payment service pays it, without a look at earlier ones. */
  send(payoutId: string, payment: Payment): void {
    const payout = this.payout(payoutId);
    const earlier = payout.payments.find(({ status }) => status !== 'Returned');
    if (earlier !== undefined) throw new Error(`the money of ${payoutId} was sent twice`);
    payout.payments.push(payment);
  }

  /** The report of the payment services about a run, and what it states. */
  import(runId: string, rows: ReadonlyMap<string, RailStatus>): void {
    for (const payout of this.payouts.values()) {
      const latest = payout.payments.findLast((payment) => payment.runId !== null);
      const status = latest?.runId === runId ? rows.get(latest.itemId ?? '') : undefined;
      if (status === 'Returned' && !payout.cameBack) {
        payout.stated = 'returned';
        payout.cameBack = true;
      }
      if (status === 'Completed' && payout.stated === 'nothing') payout.stated = 'sent';
    }
  }

  /** The payments by the files of a run. */
  paymentsOf(runId: string): readonly Payment[] {
    return [...this.payouts.values()].flatMap(({ payments }) =>
      payments.filter((one) => one.runId === runId),
    );
  }
}
