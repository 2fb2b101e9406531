import * as fc from 'fast-check';
import type { Currency, Report } from './money-facts.ts';
import type { Component, Statement } from './money-policies.ts';
import type { Payload } from './provider-fixtures.ts';

// The sales of the worlds that the service and the model of its money are compared on (money-worlds.ts).

export const PROVIDERS_OF_MODEL = ['stripe', 'paddle', 'revenuecat', 'superwall'] as const;
export type ProviderOfModel = (typeof PROVIDERS_OF_MODEL)[number];

export const WINDOW_DAYS = 60;

interface EventStep {
  readonly do: 'event';
  readonly provider: ProviderOfModel;
  readonly body: Payload;
  readonly report: Report;
}

/** What a sale consists of: webhooks, a connected account that is listed or not, and what an export of Stripe lists. */
export type SaleStep = {
  /** Steps of a sale with a stage keep the order of their stages. */
  readonly stage?: number;
} & (
  | EventStep
  /** Something happens now; what is paid then states the time. */
  | { readonly do: 'moment'; readonly moment: string }
  /** An event of a payment at a moment, or now if the moment is later. */
  | {
      readonly do: 'event now';
      readonly moment: string;
      readonly build: (at: number) => EventStep;
    }
  | { readonly do: 'accounts'; readonly account: string; readonly isListed: boolean }
  | {
      readonly do: 'export';
      readonly lists: readonly (readonly Payload[])[];
      /** What is true at the provider. The model decides what the ledger lacks of it. */
      readonly reports: readonly Report[];
    }
);

/** The ids and the helpers of one sale. */
export interface SaleContext {
  /** Unique over all worlds. */
  readonly name: string;
  /** Unique over all worlds, and the same for all sales of one. */
  readonly run: string;
  readonly userId: (user: number) => string;
  /** Epoch ms, a whole second. */
  readonly now: number;
}

/** The code of a creator, the same for all sales of a world. Null for no creator. */
export const codeOf = (creator: number | null, run: string): string | null =>
  creator === null ? null : `code-${run}-${creator}`;

export const anyUser = fc.nat(2);
const maybeUser = fc.option(anyUser, { freq: 3 });
const maybeCode = fc.option(fc.nat(1), { freq: 2 });
/** Small amounts at the rates of the worlds lead to every fraction of a cent, and often to half a cent. */
const anyMinor = fc.oneof(fc.integer({ min: 1, max: 99 }), fc.integer({ min: 100, max: 90_000 }));
const anyCurrency = fc.constantFrom<Currency>('usd', 'eur', 'jpy', 'jpy');
const anyDaysAgo = fc.oneof(fc.integer({ min: 31, max: WINDOW_DAYS - 2 }), fc.integer({ min: 31, max: 95 }));

const maybeShare = fc.constantFrom(null, null, 0, 70_000, 159_664, 300_000);
/** What a provider states of a price: its product, and tax and store fee in parts per million. */
const anyPrice = fc.record({ product: fc.nat(1), tax: maybeShare, fee: maybeShare });
type Price = typeof anyPrice extends fc.Arbitrary<infer T> ? T : never;

export const productOf = (product: number) => `product-${product}`;

/** The tax and the fee of an amount as a provider states them. */
export function amountsOf({ tax, fee }: Price, minor: number) {
  const amount = (ppm: number | null) => (ppm === null ? null : Math.floor((minor * ppm) / 1_000_000));
  return { tax: amount(tax), fee: amount(fee) };
}

/** What an event states of a payment. Null for what it does not state. */
export function statementOf(
  { ref, source, minor }: Pick<Statement, 'ref' | 'source' | 'minor'>,
  parts: { readonly tax: Component | null; readonly fee: Component | null; readonly product: string | null },
): readonly Statement[] {
  const stated = Object.entries(parts).filter(([, part]) => part !== null);
  return [{ ref, source, minor, ...Object.fromEntries(stated) }];
}

/** A state of a dispute of Stripe, under any name that an event of it may have. */
const anyDisputeState = fc.record({
  name: fc.constantFrom('created', 'updated', 'closed', 'funds_withdrawn', 'funds_reinstated'),
  status: fc.constantFrom(
    'needs_response',
    'under_review',
    'appeal_needs_response',
    'appeal_under_review',
    'won',
    'won',
    'lost',
    'lost',
    'lost',
    'prevented',
  ),
});

const anyTake = fc.record({
  kind: fc.constantFrom('refund', 'refund', 'dispute', 'dispute', 'outside'),
  percent: fc.integer({ min: 1, max: 130 }),
  names: fc.constantFrom('intent', 'charge', 'both'),
  /** What becomes of a refund, or of a chargeback of Paddle. */
  isBack: fc.boolean(),
  isInquiry: fc.boolean(),
  states: fc.array(anyDisputeState, { minLength: 1, maxLength: 4 }),
});
export type Take = typeof anyTake extends fc.Arbitrary<infer T> ? T : never;

/** A payment intent that paid a part of an invoice. */
const anyPart = fc.record({
  percent: fc.integer({ min: 1, max: 99 }),
  user: maybeUser,
  isTied: fc.boolean(),
});
export type Part = typeof anyPart extends fc.Arbitrary<infer T> ? T : never;

const anyPlainSale = fc.record({
  kind: fc.constant('plain' as const),
  provider: fc.constantFrom('stripe', 'stripe', 'stripe', 'paddle', 'revenuecat'),
  minor: anyMinor,
  currency: anyCurrency,
  price: anyPrice,
  daysAgo: anyDaysAgo,
  user: maybeUser,
  otherUser: maybeUser,
  linkedUser: maybeUser,
  /** The user whom the session of the subscription names, which ties the customer, too. */
  signedUpUser: fc.constant<number | null>(null),
  /** Whether the customer is that of other sales of the world. */
  isCompany: fc.constant<boolean>(false),
  invoice: fc.constantFrom('none', 'plain', 'legacy'),
  session: fc.constantFrom('none', 'alone', 'with invoice'),
  intent: fc.boolean(),
  tie: fc.boolean(),
  charge: fc.boolean(),
  takes: fc.array(anyTake, { maxLength: 3 }),
  undo: fc.boolean(),
  parts: fc.constant<readonly Part[]>([]),
  /** The creators whose codes the purchase and its session came with. */
  code: maybeCode,
  sessionCode: maybeCode,
  /** Whether the invoice has codes of both creators, of Stripe alone. */
  hasBothCodes: fc.constantFrom(false, false, false, false, true),
  /** The creator with whose code the subscription began without a payment, and how long before the purchase. After it, it changes nothing. */
  freeCode: maybeCode,
  freeDays: fc.constantFrom(0, 7, 7, 30, -1),
  /** The user whom that event names. */
  freeUser: maybeUser,
  /** Another payment of the subscription, without a code, and who paid it. */
  again: fc.option(fc.record({ user: maybeUser, hours: fc.constantFrom<number>(1, 1, -120) }), { freq: 2 }),
  /** Whether its Stripe account is a connected one, which is listed until all of its events but refunds and disputes arrived. */
  account: fc.constantFrom<'own' | 'unlisted later' | 'never listed'>('own'),
  /** Whether its parts arrive before the invoice, and both before the other payment of the subscription. */
  hasPartsFirst: fc.constant<boolean>(false),
});
export type PlainSale = typeof anyPlainSale extends fc.Arbitrary<infer T> ? T : never;

/** A payment that two references attribute to two creators until an event ties them. */
const anyDoubleSale = fc
  .record({
    sale: anyPlainSale,
    take: anyTake,
    users: fc.constantFrom([0, 1], [1, 0], [2, 0], [0, 2], [1, 1]),
  })
  .map(({ sale, take, users: [user = 0, otherUser = 1] }): PlainSale => ({
    ...sale,
    provider: 'stripe' as const,
    invoice: 'plain',
    session: 'alone',
    tie: true,
    charge: true,
    user,
    otherUser,
    daysAgo: Math.min(sale.daysAgo, WINDOW_DAYS - 2),
    takes: [take, ...sale.takes].slice(0, 2),
  }));

/** An invoice that payment intents of any users paid in parts, of which some are never tied to it. */
const anySaleInParts = fc
  .record({ sale: anyPlainSale, parts: fc.array(anyPart, { minLength: 1, maxLength: 3 }) })
  .map(({ sale, parts }): PlainSale => ({
    ...sale,
    provider: 'stripe',
    minor: sale.minor + 10,
    invoice: 'plain',
    session: 'none',
    intent: false,
    tie: false,
    charge: false,
    parts,
  }));

/** An invoice that one user paid in parts, and another payment of that user. */
const anyRenewedSaleInParts = fc
  .record({
    sale: anySaleInParts,
    user: anyUser,
    isNamed: fc.boolean(),
    hours: fc.constantFrom(1, 24, 30 * 24),
    hasPartsFirst: fc.constantFrom(true, true, false),
  })
  .map(({ sale, user, isNamed, hours, hasPartsFirst }): PlainSale => ({
    ...sale,
    hasPartsFirst,
    user: isNamed ? user : null,
    parts: sale.parts
      .slice(0, hasPartsFirst ? 1 : undefined)
      .map((part) => ({ ...part, user, isTied: true })),
    again: { user, hours },
    takes: sale.takes.slice(0, 1),
  }));

/** Refunds or chargebacks, of which all but the last are undone together. */
const anyUndoneSale = fc
  .record({
    sale: anyPlainSale,
    provider: fc.constantFrom('paddle' as const, 'revenuecat' as const),
    user: anyUser,
    takes: fc.array(anyTake, { minLength: 3, maxLength: 3 }),
  })
  .map(({ sale, takes, ...rest }): PlainSale => ({
    ...sale,
    ...rest,
    takes: takes.map((take) => ({ ...take, kind: 'dispute', isBack: false })),
    undo: true,
  }));

/** A user whom no device reports. */
export const ORGANIC = 3;

/**
 * The invoice of a company, which may name its user, often one without a creator. Sessions tie the company's subscriptions and
 * the company itself to other users.
 */
const anyCompanySale = fc
  .record({
    sale: anyPlainSale,
    user: fc.constantFrom(null, ORGANIC, ORGANIC, 0, 1),
    linkedUser: fc.constantFrom(null, null, ORGANIC, 1),
    signedUpUser: fc.constantFrom(null, 0, 0, 1),
  })
  .map(({ sale, ...users }): PlainSale => ({
    ...sale,
    ...users,
    provider: 'stripe',
    invoice: 'plain',
    isCompany: true,
    daysAgo: Math.min(sale.daysAgo, WINDOW_DAYS - 2),
    takes: sale.takes.slice(0, 1),
  }));

const anyConnectedSale = fc
  .record({
    sale: anyPlainSale,
    take: anyTake,
    user: anyUser,
    account: fc.constantFrom('unlisted later' as const, 'unlisted later' as const, 'never listed' as const),
  })
  .map(({ sale, take, user, account }): PlainSale => ({
    ...sale,
    provider: 'stripe',
    account,
    user,
    invoice: 'plain',
    tie: true,
    charge: true,
    daysAgo: Math.min(sale.daysAgo, WINDOW_DAYS - 2),
    takes: [take, ...sale.takes].slice(0, 2),
  }));

/** An invoice of one user that so many payment intents pay in full. Each may name the user, as the invoice may. */
const anySaleOfParts = (length: { readonly minLength: number; readonly maxLength: number }) =>
  fc.record({
    kind: fc.constant('split' as const),
    /** Minor units of each part. */
    parts: fc.array(anyMinor, length),
    currency: anyCurrency,
    daysAgo: fc.integer({ min: 31, max: WINDOW_DAYS - 2 }),
    user: anyUser,
    invoiceNames: fc.boolean(),
    partsName: fc.array(fc.boolean(), { minLength: length.maxLength, maxLength: length.maxLength }),
    /** Whether a later event of the subscription names the user. */
    isLinked: fc.boolean(),
    takes: fc.array(fc.record({ take: anyTake, part: fc.nat() }), { maxLength: 3 }),
    /** Whether a part is never paid, so that Stripe never reports the invoice as paid. */
    isOpen: fc.constantFrom(false, false, false, true),
    /** What arrives after everything else but refunds and disputes. */
    late: fc.constantFrom(null, null, 'invoice' as const, 'part' as const, 'part' as const, 'tie' as const),
  });
const anySplitSale = anySaleOfParts({ minLength: 2, maxLength: 3 });
const anySaleOfManyParts = anySaleOfParts({ minLength: 3, maxLength: 6 });
export type SplitSale = typeof anySplitSale extends fc.Arbitrary<infer T> ? T : never;

/** An invoice, and perhaps its dispute, of which webhooks are lost or late, and which an export lists. */
const anyExportedSale = fc.record({
  kind: fc.constant('exported' as const),
  minor: anyMinor,
  currency: anyCurrency,
  daysAgo: fc.integer({ min: 31, max: WINDOW_DAYS - 2 }),
  user: anyUser,
  /** When the webhook of the invoice arrives. `outside` is an invoice that a bank transfer paid, which only an export lists. */
  invoice: fc.constantFrom<'before' | 'late' | 'never' | 'outside'>('before', 'before', 'late', 'never'),
  dispute: fc.option(
    fc.record({
      percent: fc.integer({ min: 1, max: 100 }),
      result: fc.constantFrom('won', 'won', 'won', 'lost', 'needs_response'),
      isWithdrawnSent: fc.constantFrom(true, true, true, false),
      isEndSent: fc.constantFrom(false, false, false, true),
      listsBalance: fc.boolean(),
    }),
    { freq: 9 },
  ),
});
export type ExportedSale = typeof anyExportedSale extends fc.Arbitrary<infer T> ? T : never;

/** What an event says of a payment in the App Store. */
const anyReportOfStore = fc.record({
  by: fc.constant<'revenuecat' | 'superwall'>('revenuecat'),
  user: maybeUser,
  /** Another user who is an alias of the customer, of RevenueCat alone. */
  alias: fc.constantFrom(null, null, null, 0, 1, 2),
  price: anyPrice,
  phone: fc.nat(1),
  /** Whether it names the anonymous id of the phone beside the user. */
  isSignedIn: fc.boolean(),
  code: maybeCode,
  /** Cents above the price that the first event of most payments states. */
  surcharge: fc.constantFrom(0, 0, 0, 7),
});
export type ReportOfStore = typeof anyReportOfStore extends fc.Arbitrary<infer T> ? T : never;

/** The users whose purchases became those of others: of one, or, in error, of several. */
const anyTransfer = fc.record({
  from: fc.oneof(
    fc.array(anyUser, { minLength: 1, maxLength: 2 }),
    fc.constantFrom<number[]>([0, 1], [1, 2]),
  ),
  to: fc.array(anyUser, { minLength: 1, maxLength: 2 }),
});
type Transfer = typeof anyTransfer extends fc.Arbitrary<infer T> ? T : never;

/** A subscription in the App Store, of users and phones that other subscriptions of the world may have, too. */
const customerSaleOf = (most: { readonly reports: number }, hours: fc.Arbitrary<number>) =>
  fc.record({
    kind: fc.constant('customer' as const),
    minor: anyMinor,
    daysAgo: anyDaysAgo,
    payments: fc.array(
      fc.record({
        hours,
        /** Whether it is paid at a moment of the world, before or after what founders say. */
        moment: fc.boolean(),
        reports: fc.array(anyReportOfStore, { minLength: 1, maxLength: most.reports }),
      }),
      { minLength: 1, maxLength: 3 },
    ),
    /** The creator with whose code it began for free, and who began it. */
    free: fc.option(fc.record({ user: maybeUser, phone: fc.nat(1), code: fc.nat(1) }), { freq: 2 }),
    takes: fc.array(fc.record({ payment: fc.nat(2), percent: fc.integer({ min: 1, max: 130 }) }), {
      maxLength: 1,
    }),
    transfers: fc.constant<readonly Transfer[]>([]),
    /** Whether its events arrive in the order in which they are stated here. */
    isInOrder: fc.constant<boolean>(false),
  });
const anyCustomerSale = customerSaleOf({ reports: 2 }, fc.constantFrom(0, 1, 30 * 24, -120));
export type CustomerSale = typeof anyCustomerSale extends fc.Arbitrary<infer T> ? T : never;

/**
 * Subscriptions of one phone that are anonymous at first. Their user signs in later: founders may speak of the user, the phone and the
 * subscriptions in between.
 */
const anySignedInSales = fc
  .record({
    sales: fc.array(fc.record({ sale: anyCustomerSale, first: anyReportOfStore }), {
      minLength: 2,
      maxLength: 2,
    }),
    // A code binds the phone with the subscription. Without one, founders may give them to several creators.
    codes: fc.oneof(fc.constant([]), fc.array(maybeCode, { minLength: 2, maxLength: 2 })),
    user: fc.constantFrom(0, 1, ORGANIC, ORGANIC),
  })
  .map(({ sales, codes, user }) =>
    sales.map(({ sale, first }, n): CustomerSale => ({
      ...sale,
      payments: [
        {
          hours: 0,
          moment: false,
          reports: [{ ...first, user: null, alias: null, phone: 0, code: codes[n] ?? null }],
        },
        ...sale.payments.slice(0, 2).map((payment) => ({
          ...payment,
          moment: true,
          reports: payment.reports.map((report) => ({
            ...report,
            user,
            alias: null,
            phone: 0,
            isSignedIn: n === 0 || report.isSignedIn,
            code: null,
          })),
        })),
      ],
      free: null,
    })),
  );

/** The last two days before one or two months are over count as after them. */
const anyRenewalHours = fc.constantFrom(1, ...[28, 29, 29, 30, 30, 59, 60, 61].map((days) => days * 24));
/** A subscription of one user, whose payments are numbered. */
const anyRenewedSale = fc
  .record({
    sale: customerSaleOf({ reports: 1 }, anyRenewalHours),
    user: anyUser,
    isInOrder: fc.constantFrom(true, true, false),
  })
  .map(({ sale, user, isInOrder }): CustomerSale => ({
    ...sale,
    isInOrder,
    daysAgo: sale.daysAgo + 30,
    payments: [{ hours: 0 }, ...sale.payments.slice(0, 2)].map((payment, n) => ({
      hours: payment.hours,
      moment: false,
      reports:
        (sale.payments[n] ?? sale.payments[0])?.reports.map((report) => ({ ...report, user, alias: null })) ??
        [],
    })),
  }));

/** A sale whose subscription events tie to users, of Stripe or Paddle. */
const anyLinkedSale = fc
  .record({
    sale: anyPlainSale,
    linkedUser: anyUser,
    provider: fc.constantFrom('stripe', 'stripe', 'paddle'),
  })
  .map(({ sale, ...rest }): PlainSale => ({
    ...sale,
    ...rest,
    invoice: sale.invoice === 'none' ? 'plain' : sale.invoice,
    takes: sale.takes.slice(0, 1),
  }));

/**
 * A subscription that two providers report: each payment by one of them or by both, with other users and codes. The one that reports the
 * first payment first may state its tax and fee after the other one did.
 */
const anyTwiceReportedSale = fc
  .record({
    sale: customerSaleOf({ reports: 2 }, fc.constantFrom(0, 1, 30 * 24, -120)),
    /** What the three reports of the first payment state. The first one states neither tax nor fee. Null: it is like the others. */
    prices: fc.option(fc.tuple(anyPrice, anyPrice, anyPrice), { freq: 3 }),
    providers: fc.array(
      fc.constantFrom<readonly ('revenuecat' | 'superwall')[]>(
        ['revenuecat', 'superwall', 'revenuecat'],
        ['superwall', 'revenuecat', 'superwall'],
        ['superwall', 'superwall', 'revenuecat'],
        ['revenuecat', 'revenuecat', 'superwall'],
      ),
      { minLength: 3, maxLength: 3 },
    ),
  })
  .map(({ sale, prices, providers }): CustomerSale => {
    const payments = sale.payments.map((payment, n) => ({
      ...payment,
      reports: payment.reports.map((report, k) => ({ ...report, by: providers[n]?.[k] ?? report.by })),
    }));
    const [first, ...others] = payments;
    const [report] = first?.reports ?? [];
    const withoutCode = (one: ReportOfStore) => ({ ...one, code: null });
    if (first === undefined || report === undefined || prices === null) return { ...sale, payments };
    const other = report.by === 'revenuecat' ? 'superwall' : 'revenuecat';
    const reports = prices.map((price, k) => ({
      ...withoutCode(report),
      user: report.user ?? 0,
      by: k === 1 ? other : report.by,
      price: k === 0 ? { ...price, tax: null, fee: null } : price,
    }));
    return {
      ...sale,
      isInOrder: true,
      // A share of tax or fee is more than a cent.
      minor: sale.minor + 500,
      daysAgo: Math.min(sale.daysAgo, WINDOW_DAYS - 2),
      free: null,
      payments: [
        { ...first, hours: 0, moment: false, reports },
        ...others.map((payment) => ({ ...payment, reports: payment.reports.map(withoutCode) })),
      ],
    };
  });

/** Users transfer purchases, mostly to one whom no device reports: only a transfer, a code or a founder leads that one to a creator. */
const anyTransferredSale = fc
  .record({ sale: anyCustomerSale, transfers: fc.array(anyTransfer, { minLength: 1, maxLength: 2 }) })
  .map(({ sale, transfers }): CustomerSale => {
    const receiver = (user: number) => (user === 2 ? ORGANIC : user);
    return {
      ...sale,
      payments: sale.payments.map((payment) => ({
        ...payment,
        reports: payment.reports.map((report) => ({
          ...report,
          user: report.user === null ? ORGANIC : receiver(report.user),
        })),
      })),
      transfers: transfers.map(({ from, to: [first = 2, ...more] }) => ({
        from,
        to: [more.length === 0 ? ORGANIC : receiver(first), ...more.map(receiver)],
      })),
    };
  });

/** A user or a key that a founder gives to a creator. */
export const anyTarget = fc.oneof(
  fc.record({ user: anyUser }),
  fc.record({ phone: fc.nat(1) }),
  fc.record({ sale: fc.nat(1) }),
);
export type Target = typeof anyTarget extends fc.Arbitrary<infer T> ? T : never;

export type Sale = PlainSale | SplitSale | ExportedSale | CustomerSale;

const anySale: fc.Arbitrary<Sale> = fc.oneof(
  { arbitrary: fc.oneof(anyPlainSale, anyDoubleSale, anySaleInParts), weight: 6 },
  { arbitrary: anyUndoneSale, weight: 1 },
);
/** The sales of a world, by what the world is about. */
export const SALES = {
  'payments, aliases, refunds and disputes': fc.array(anySale, { minLength: 2, maxLength: 4 }),
  'a customer with several users': fc.array(anyCompanySale, { minLength: 2, maxLength: 4 }),
  'invoices that are paid in parts': fc.array(anySplitSale, { minLength: 1, maxLength: 3 }),
  'invoices that are paid in many parts': fc.array(anySaleOfManyParts, { minLength: 1, maxLength: 2 }),
  'connected accounts': fc.array(anyConnectedSale, { minLength: 1, maxLength: 3 }),
  'exports that are fed back': fc
    .tuple(anyExportedSale, anyExportedSale, fc.array(anySale, { maxLength: 1 }))
    .map(([sale, other, others]): Sale[] => [sale, { ...other, invoice: 'outside' }, ...others]),
  'customers who are given away': fc.array(
    fc.oneof<fc.Arbitrary<Sale>[]>(anyCustomerSale, anyCustomerSale, anyLinkedSale),
    { minLength: 1, maxLength: 2 },
  ),
  'customers who sign in late': anySignedInSales,
  'payments that two providers report': fc.array(anyTwiceReportedSale, { minLength: 1, maxLength: 2 }),
  'purchases that are transferred': fc.array(anyTransferredSale, { minLength: 1, maxLength: 2 }),
  'customers who pay again': fc.array(fc.oneof<fc.Arbitrary<Sale>[]>(anyRenewedSale, anyRenewedSaleInParts), {
    minLength: 1,
    maxLength: 2,
  }),
} satisfies Record<string, fc.Arbitrary<Sale[]>>;
export type Theme = keyof typeof SALES;
export const THEMES = Object.keys(SALES) as readonly Theme[];
