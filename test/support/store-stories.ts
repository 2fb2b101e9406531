import { DAY_MS, HOUR_MS } from '../../src/domain/time.ts';
import type { Report } from './money-facts.ts';
import { amountsOf, codeOf, productOf, statementOf } from './money-sales.ts';
import type { PlainSale, ProviderOfModel, SaleContext, SaleStep } from './money-sales.ts';
import {
  paddleAdjustment,
  paddleSubscription,
  paddleTransaction,
  revenuecatEvent,
  revenuecatRefund,
  withFields,
} from './provider-fixtures.ts';
import type { Payload } from './provider-fixtures.ts';

// The events of Paddle's and RevenueCat's sales, with what each states in the words of its provider's documentation.

type Ids = { readonly eventId: string; readonly occurredAt: number };

function storyOf(provider: ProviderOfModel, name: string, soldAt: number) {
  const steps: SaleStep[] = [];
  const add = (build: (ids: Ids) => Payload, report: Omit<Report, 'eventId'>, occurredAt = soldAt) => {
    const eventId = `evt_${name}_${steps.length + 1}`;
    steps.push({
      do: 'event',
      provider,
      body: build({ eventId, occurredAt }),
      report: { ...report, eventId },
    });
  };
  return { steps, add };
}

const listed = (one: string | null) => (one === null ? [] : [one]);
const named = (n: number | null, userId: SaleContext['userId']) => (n === null ? null : userId(n));
const shareOf = (minor: number, percent: number) => Math.max(1, Math.floor((minor * percent) / 100));
/** When the n-th refund reaches its k-th state. */
const timeOf = (at: number, n: number, k: number) => at + (1 + n * 10 + k) * HOUR_MS;
/** The key of a subscription of the App Store. */
const keyOf = (originalTransactionId: string) => `app_store:${originalTransactionId}`;
/** When the subscription began without a payment. */
export const beganAt = ({ freeDays }: PlainSale, at: number) => at - freeDays * DAY_MS;
/** When all refunds are undone: before some of them. */
const undoneAt = (sale: PlainSale, at: number) => (sale.takes.length > 1 ? timeOf(at, 1, 5) : at + DAY_MS);

export function paddleStory(sale: PlainSale, { name, run, userId, now }: SaleContext): SaleStep[] {
  const at = now - sale.daysAgo * DAY_MS;
  const { minor } = sale;
  const { steps, add } = storyOf('paddle', name, at);
  const [transactionId, key, customer] = [`txn_${name}`, `sub_${name}`, `ctm_${name}`];
  const user = named(sale.user, userId);
  const linkedUser = named(sale.linkedUser, userId);
  const code = codeOf(sale.code, run);
  const freeCode = codeOf(sale.freeCode, run);
  const freeUser = named(sale.freeUser, userId);
  const price = { tax: amountsOf(sale.price, minor).tax ?? 0, productId: productOf(sale.price.product) };
  // Paddle states both, always. The samples have a fee of 5 percent.
  const parts = {
    tax: { minor: price.tax },
    fee: { minor: Math.round(minor / 20) },
    product: price.productId,
  };
  const states = (ref: string) => statementOf({ ref, source: 'paddle', minor }, parts);
  if (sale.again !== null) {
    const paid = {
      transactionId: `txn_${name}_again`,
      subscriptionId: key,
      customerId: customer,
      amount: minor,
      ...price,
    };
    const payer = named(sale.again.user, userId);
    const when = at + sale.again.hours * HOUR_MS;
    add(
      (ids) => paddleTransaction({ ...ids, ...paid, userId: payer }),
      {
        states: states(paid.transactionId),
        payment: {
          ref: paid.transactionId,
          store: 'paddle',
          minor,
          currency: 'usd',
          at: when - 1_000,
          users: listed(payer),
          keys: [key],
          customers: [customer],
        },
      },
      when,
    );
  }
  if (freeCode !== null) {
    const began = beganAt(sale, at);
    const trial = { transactionId: `txn_${name}_free`, subscriptionId: key, customerId: customer, amount: 0 };
    add(
      (ids) =>
        withFields(paddleTransaction({ ...ids, ...trial, userId: freeUser }), ['data'], {
          discount_id: freeCode,
        }),
      { began: { key, code: freeCode, at: began - 1_000, users: listed(freeUser) } },
      began,
    );
  }
  add(
    (ids) =>
      withFields(
        paddleTransaction({
          ...ids,
          transactionId,
          subscriptionId: key,
          customerId: customer,
          amount: minor,
          userId: user,
          ...price,
        }),
        ['data'],
        code === null ? {} : { discount_id: code },
      ),
    {
      codes: listed(code).map((one) => ({ ref: transactionId, code: one })),
      states: states(transactionId),
      payment: {
        ref: transactionId,
        store: 'paddle',
        minor,
        currency: 'usd',
        // The sample was captured a second before its event.
        at: at - 1_000,
        users: listed(user),
        keys: [key],
        customers: [customer],
      },
    },
  );
  if (linkedUser !== null) {
    add((ids) => paddleSubscription({ ...ids, subscriptionId: key, userId: linkedUser }), {
      names: [{ key, user: linkedUser }],
    });
  }
  for (const [n, take] of sale.takes.entries()) {
    const action = take.kind === 'dispute' ? 'chargeback' : 'refund';
    const adjustmentId = `adj_${name}_${n}`;
    const amount = shareOf(minor, take.percent);
    const adjustment = (k: number, status: string) =>
      add(
        (ids) => paddleAdjustment({ ...ids, adjustmentId, transactionId, action, status, amount }),
        {
          take: {
            id: adjustmentId,
            ref: transactionId,
            minor: amount,
            at: timeOf(at, n, k),
            isEnd: status === 'reversed',
            isBack: status === 'reversed',
            group: `${action} ${name}`,
          },
        },
        timeOf(at, n, k),
      );
    adjustment(0, 'approved');
    if (take.isBack) adjustment(1, 'reversed');
  }
  if (sale.undo) {
    const reverse = {
      adjustmentId: `adj_${name}_undo`,
      transactionId,
      action: 'chargeback_reverse',
      amount: minor,
    };
    const when = undoneAt(sale, at);
    add(
      (ids) => paddleAdjustment({ ...ids, ...reverse }),
      { undo: { group: `chargeback ${name}`, at: when } },
      when,
    );
  }
  return steps;
}

export function revenuecatStory(sale: PlainSale, { name, run, userId, now }: SaleContext): SaleStep[] {
  const at = now - sale.daysAgo * DAY_MS;
  const { minor } = sale;
  const { steps, add } = storyOf('revenuecat', name, at);
  const transactionId = `rc-${name}`;
  const user = named(sale.user, userId);
  const anonymous = `$RCAnonymousID:${name}`;
  const key = `rc-sub-${name}`;
  const { tax, fee, product } = sale.price;
  const share = (ppm: number | null) => (ppm === null ? null : ppm / 1_000_000);
  const price = { tax_percentage: share(tax), commission_percentage: share(fee) };
  const bought = {
    userId: user ?? anonymous,
    transactionId,
    originalTransactionId: key,
    purchasedAt: at,
    productId: productOf(product),
  };
  const component = (ppm: number | null) => (ppm === null ? null : { ppm });
  const parts = { tax: component(tax), fee: component(fee), product: bought.productId };
  const states = (ref: string) => statementOf({ ref, source: 'revenuecat', minor }, parts);
  const group = `refund ${name}`;
  const code = codeOf(sale.code, run);
  const purchase = {
    ...bought,
    type: 'INITIAL_PURCHASE',
    usd: minor / 100,
    extra: { ...price, ...(code === null ? {} : { offer_code: code }) },
  };
  const freeCode = codeOf(sale.freeCode, run);
  const freeUser = named(sale.freeUser, userId);
  if (sale.again !== null) {
    const ref = `${transactionId}-again`;
    const payer = named(sale.again.user, userId);
    const phone = `${anonymous}-2`;
    const when = at + sale.again.hours * HOUR_MS;
    const paid = { ...bought, userId: payer ?? phone, transactionId: ref, purchasedAt: when };
    add(
      (ids) => revenuecatEvent({ ...ids, ...paid, type: 'RENEWAL', usd: minor / 100, extra: price }),
      {
        states: states(ref),
        payment: {
          ref,
          store: 'app_store',
          minor,
          currency: 'usd',
          at: when,
          users: listed(payer),
          keys: payer === null ? [phone, keyOf(key)] : [keyOf(key)],
          customers: [],
        },
      },
      when,
    );
  }
  if (freeCode !== null) {
    const began = beganAt(sale, at);
    const trial = {
      ...purchase,
      userId: freeUser ?? anonymous,
      transactionId: key,
      purchasedAt: began,
      usd: 0,
    };
    const extra = { offer_code: freeCode, period_type: 'TRIAL' };
    add(
      (ids) => revenuecatEvent({ ...ids, ...trial, extra }),
      {
        began: {
          key: keyOf(key),
          code: freeCode,
          at: began,
          users: listed(freeUser),
          ...(freeUser === null ? { anonymous } : {}),
        },
      },
      began,
    );
  }
  add((ids) => revenuecatEvent({ ...ids, ...purchase }), {
    codes: listed(code).map((one) => ({ ref: transactionId, code: one })),
    states: states(transactionId),
    payment: {
      ref: transactionId,
      store: 'app_store',
      minor,
      currency: 'usd',
      at,
      users: listed(user),
      keys: user === null ? [anonymous, keyOf(key)] : [keyOf(key)],
      customers: [],
    },
  });
  for (const [n, take] of sale.takes.entries()) {
    const cents = shareOf(minor, take.percent);
    const when = timeOf(at, n, 0);
    const id = `rc-${name}-${n}`;
    add(
      (ids) => revenuecatRefund({ ...ids, ...bought, usd: cents / 100 }),
      { take: { id, ref: transactionId, minor: cents, at: when, isEnd: false, isBack: false, group } },
      when,
    );
  }
  if (sale.undo) {
    const when = undoneAt(sale, at);
    add(
      (ids) => revenuecatEvent({ ...ids, ...bought, type: 'REFUND_REVERSED', usd: minor / 100 }),
      { undo: { group, at: when } },
      when,
    );
  }
  return steps;
}
