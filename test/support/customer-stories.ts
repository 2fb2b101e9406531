import { DAY_MS, HOUR_MS } from '../../src/domain/time.ts';
import { codeOf, productOf, statementOf } from './money-sales.ts';
import type { CustomerSale, ReportOfStore, SaleContext, SaleStep, Target } from './money-sales.ts';
import {
  revenuecatEvent,
  revenuecatRefund,
  revenuecatTransfer,
  superwallEvent,
} from './provider-fixtures.ts';

// The story of a subscription of the App Store: whom its payments name, who gets the customer, and to whom purchases are transferred.

/** The anonymous id of a phone, the same for all sales of a world. */
const phoneOf = (phone: number, run: string) => `$RCAnonymousID:${run}${phone}`;
const transactionOf = (name: string) => `rc-sub-${name}`;

/** Returns the user or the keys that a founder may name: the subscription of a sale is that of its provider. */
export function namesOf(
  target: Target,
  { run, userId }: Pick<SaleContext, 'run' | 'userId'>,
): readonly string[] {
  if ('user' in target) return [userId(target.user)];
  if ('phone' in target) return [phoneOf(target.phone, run)];
  const name = `${run}${target.sale}`;
  return [`app_store:${transactionOf(name)}`, `sub_${name}`];
}

export function customerStory(sale: CustomerSale, context: SaleContext): SaleStep[] {
  const { name, run, userId, now } = context;
  const start = now - sale.daysAgo * DAY_MS;
  const steps: SaleStep[] = [];
  const key = `app_store:${transactionOf(name)}`;
  const originalTransactionId = transactionOf(name);
  const nextId = () => `evt_${name}_${steps.length + 1}`;
  const refOf = (n: number) => `rc-${name}-${n}`;

  const payment = (n: number, at: number, report: ReportOfStore) => {
    const { by, user, phone, code, price } = report;
    const alias = by === 'revenuecat' && report.alias !== null ? userId(report.alias) : null;
    const eventId = nextId();
    const [ref, value] = [refOf(n), codeOf(code, run)];
    const anonymous = by === 'superwall' ? `$SuperwallAlias:${run}${phone}` : phoneOf(phone, run);
    const [named, minor] = [user === null ? anonymous : userId(user), sale.minor + report.surcharge];
    const hasPhone = user === null || (by === 'revenuecat' && report.isSignedIn);
    // The keys of two providers are two. They have ids of their own here: a code binds one text for one provider only.
    const original = by === 'superwall' ? `sw-sub-${name}` : originalTransactionId;
    const subscription = `app_store:${original}`;
    const build = (paidAt: number): Extract<SaleStep, { do: 'event' }> => {
      const paid = {
        eventId,
        userId: named,
        transactionId: ref,
        originalTransactionId: original,
        purchasedAt: paidAt,
        occurredAt: paidAt,
        usd: minor / 100,
        productId: productOf(price.product),
      };
      const share = (ppm: number | null) => (ppm === null ? null : ppm / 1_000_000);
      const component = (ppm: number | null) => (ppm === null ? null : { ppm });
      const parts = { tax: component(price.tax), fee: component(price.fee), product: paid.productId };
      return {
        do: 'event',
        provider: by,
        body:
          by === 'superwall'
            ? superwallEvent({
                ...paid,
                type: 'renewal',
                extra: {
                  ...(value === null ? {} : { offerCode: value }),
                  taxPercentage: share(price.tax),
                  commissionPercentage: share(price.fee),
                },
              })
            : revenuecatEvent({
                ...paid,
                aliases: [named, ...(alias === null ? [] : [alias]), ...(hasPhone ? [anonymous] : [])],
                type: 'RENEWAL',
                extra: {
                  ...(value === null ? {} : { offer_code: value }),
                  tax_percentage: share(price.tax),
                  commission_percentage: share(price.fee),
                },
              }),
        report: {
          eventId,
          codes: value === null ? [] : [{ ref, code: value }],
          states: statementOf({ ref, source: by, minor }, parts),
          payment: {
            ref,
            store: 'app_store',
            minor,
            currency: 'usd',
            at: paidAt,
            users: [
              ...new Set([...(user === null ? [] : [userId(user)]), ...(alias === null ? [] : [alias])]),
            ],
            keys: hasPhone ? [anonymous, subscription] : [subscription],
          },
        },
      };
    };
    return { build, at };
  };

  for (const [n, { hours, moment, reports }] of sale.payments.entries()) {
    for (const report of reports) {
      const { build, at } = payment(n, start + hours * HOUR_MS, report);
      steps.push(moment ? { do: 'event now', moment: refOf(n), build } : build(at));
    }
    if (moment) steps.push({ do: 'moment', moment: refOf(n) });
  }
  if (sale.free !== null) {
    const { user, phone, code } = sale.free;
    const anonymous = phoneOf(phone, run);
    const at = start - 7 * DAY_MS;
    const eventId = nextId();
    const value = codeOf(code, run) ?? '';
    steps.push({
      do: 'event',
      provider: 'revenuecat',
      body: revenuecatEvent({
        eventId,
        userId: user === null ? anonymous : userId(user),
        type: 'INITIAL_PURCHASE',
        transactionId: originalTransactionId,
        originalTransactionId,
        purchasedAt: at,
        occurredAt: at,
        usd: 0,
        extra: { offer_code: value, period_type: 'TRIAL' },
      }),
      report: {
        eventId,
        began: {
          key,
          code: value,
          at,
          users: user === null ? [] : [userId(user)],
          ...(user === null ? { anonymous } : {}),
        },
      },
    });
  }
  for (const { payment: n, percent } of sale.takes) {
    const eventId = nextId();
    const ref = refOf(n % sale.payments.length);
    const cents = Math.max(1, Math.floor((sale.minor * percent) / 100));
    const at = now - DAY_MS;
    steps.push({
      do: 'event',
      provider: 'revenuecat',
      body: revenuecatRefund({ eventId, transactionId: ref, usd: cents / 100, occurredAt: at }),
      report: {
        eventId,
        take: { id: eventId, ref, minor: cents, at, isEnd: false, isBack: false, group: eventId },
      },
    });
  }
  for (const { from, to } of sale.transfers) {
    const eventId = nextId();
    const transfer = { from: from.map(userId), to: to.map(userId) };
    steps.push({
      do: 'event',
      provider: 'revenuecat',
      body: revenuecatTransfer({ eventId, ...transfer, occurredAt: start }),
      report: { eventId, transfer },
    });
  }
  return sale.isInOrder ? steps.map((step, stage) => ({ ...step, stage })) : steps;
}
