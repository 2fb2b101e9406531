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

/** What a payment service did with a row of a file. A pending payment may arrive. A denied one never left. */
export type RailStatus = 'Pending' | 'Completed' | 'Returned' | 'Denied';

/** Whether the money of a payment is with the founder. */
export const isBack = ({ status }: { readonly status: RailStatus }): boolean =>
  status === 'Returned' || status === 'Denied';

/** A row of a report. */
export interface RailRow {
  readonly itemId: string;
  /** The id that the payment service gave to the payment. */
  readonly reference: string;
  readonly status: RailStatus;
}

/** A payment of a payout: by a row of a run's file, or by hand. */
interface Payment {
  readonly runId: string | null;
  /** The key of the row. */
  readonly itemId: string | null;
  readonly reference: string;
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
  /** The payment that was stated as sent or returned. Empty: by hand. */
  statedReference: string;
  /** Whether it was stated since then that the money came back. */
  cameBack: boolean;
  /** Payments since then that reports have named, and that had not come back, beside the one that is stated. */
  readonly others: Set<string>;
  /** Whether one of them contradicts that the money came back. */
  isContradicted: boolean;
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
    return [...this.payouts.values()].filter((one) => one.stated === 'returned' && !one.isContradicted);
  }

  /** Those about which reports contradict each other. */
  contradicted(): ModelPayout[] {
    return [...this.payouts.values()].filter((one) => one.stated === 'returned' && one.isContradicted);
  }

  /** Whether a run pays an item, or sends it again, if it is approved now. Later bonuses wait, later deductions count. */
  isSettled({ kind, known }: ModelDraft, item: ModelItem): boolean {
    const creator = this.creator(item.creatorId);
    if (creator.isBlocked) return false;
    if (kind === 'resend') return this.returned().includes(this.payout(item.payoutId ?? ''));
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
      statedReference: '',
      cameBack: false,
      others: new Set(),
      isContradicted: false,
    });
  }

  /** Notes that a resend run has put a payout into a file. */
  resend(payoutId: string): void {
    const payout = this.payout(payoutId);
    payout.stated = 'nothing';
    payout.cameBack = false;
    payout.others.clear();
    payout.isContradicted = false;
  }

  /** A row of a file is uploaded, or somebody transfers the money by hand: a payment service pays it, without a look at earlier ones. */
  send(payoutId: string, payment: Payment): void {
    const payout = this.payout(payoutId);
    const earlier = payout.payments.find((one) => !isBack(one));
    if (earlier !== undefined) throw new Error(`the money of ${payoutId} was sent twice`);
    payout.payments.push(payment);
  }

  /** Returns the payouts of which a run has the latest file. */
  #filedBy(runId: string): ModelPayout[] {
    return [...this.payouts.values()].filter(
      ({ payments }) => payments.findLast((payment) => payment.runId !== null)?.runId === runId,
    );
  }

  /** A report of the payment services about a run, and what it states. */
  import(runId: string, rows: readonly RailRow[]): void {
    for (const payout of this.#filedBy(runId)) {
      const named = rows.filter(({ itemId }) =>
        payout.payments.some((payment) => payment.runId === runId && payment.itemId === itemId),
      );
      if (named.length > 0) this.#read(payout, named);
    }
  }

  #read(payout: ModelPayout, rows: readonly RailRow[]): void {
    const out = rows.filter((row) => !isBack(row));
    if (out.length > 0) {
      this.#readOut(payout, out);
      return;
    }
    const back = rows.map(({ reference }) => reference);
    const isOut =
      [...payout.others].some((reference) => !back.includes(reference)) ||
      (payout.stated === 'sent' && !back.includes(payout.statedReference));
    if (payout.cameBack || isOut) return;
    payout.stated = 'returned';
    payout.statedReference = back[0] ?? '';
    payout.cameBack = true;
  }

  /** Reads payments that arrived or may arrive. */
  #readOut(payout: ModelPayout, out: readonly RailRow[]): void {
    const arrived = out.find(({ status }) => status === 'Completed');
    if (payout.stated === 'nothing' && arrived !== undefined) {
      payout.stated = 'sent';
      payout.statedReference = arrived.reference;
    }
    const others = out.filter(({ reference }) => reference !== payout.statedReference);
    if (payout.stated === 'returned' && others.length > 0) payout.isContradicted = true;
    if (!payout.cameBack) for (const { reference } of others) payout.others.add(reference);
  }

  /** Notes that the founder has stated by hand that the payouts of a run were sent, where nothing was stated. */
  markAll(runId: string): void {
    for (const payout of this.#filedBy(runId)) {
      if (payout.stated !== 'nothing') continue;
      payout.stated = 'sent';
      payout.statedReference = '';
    }
  }

  /** The payments by the files of a run. */
  paymentsOf(runId: string): readonly Payment[] {
    return [...this.payouts.values()].flatMap(({ payments }) =>
      payments.filter((one) => one.runId === runId),
    );
  }
}
