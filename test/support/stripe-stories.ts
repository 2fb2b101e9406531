import { DAY_MS, HOUR_MS } from '../../src/domain/time.ts';
import { amountsOf, codeOf, productOf, statementOf } from './money-sales.ts';
import type { PlainSale, SaleContext, SaleStep, SplitSale } from './money-sales.ts';
import {
  stripeCharge,
  stripeCheckoutSession,
  stripeInvoicePaid,
  stripeInvoicePaymentPaid,
  stripeEvent,
  stripePaymentIntent,
  stripeSubscription,
  withFields,
} from './provider-fixtures.ts';
import type { Payload } from './provider-fixtures.ts';
import { beganAt } from './store-stories.ts';
import { addTake, Story } from './stripe-story.ts';

// The events of Stripe's sales, with what each states in the words of Stripe's documentation.

/** Adds the promotion codes of a purchase. */
const withCodes = (body: Payload, codes: readonly string[]): Payload =>
  codes.length === 0
    ? body
    : withFields(body, ['data', 'object'], {
        discounts: codes.map((code) => ({ promotion_code: code })),
      });

/** Adds the tax of an invoice, as it is stated since API version 2025-03-31 or before. */
const withTax = (body: Payload, tax: number | null, isLegacy = false): Payload =>
  tax === null
    ? body
    : withFields(body, ['data', 'object'], isLegacy ? { tax } : { total_taxes: [{ amount: tax }] });

const listed = (one: string | null | undefined) => (one == null ? [] : [one]);

/** The events of a payment under the references that it may have: its invoice, session, payment intent and charge. */
export function plainStory(sale: PlainSale, { name, run, userId, now }: SaleContext): SaleStep[] {
  const at = now - sale.daysAgo * DAY_MS;
  const account = sale.account === 'own' ? null : `acct_${name}`;
  const story = new Story(name, at, account);
  const [user, otherUser, linkedUser, signedUpUser] = [
    sale.user,
    sale.otherUser,
    sale.linkedUser,
    sale.signedUpUser,
  ].map((n) => (n == null ? null : userId(n)));
  const { minor, currency } = sale;
  const [invoiceId, intentId, chargeId, key] = [`in_${name}`, `pi_${name}`, `ch_${name}`, `sub_${name}`];
  const customer = `cus_${sale.isCompany ? `company_${run}` : name}`;
  const money = { amount: minor, currency };
  const payment = (
    ref: string,
    users: readonly string[],
    keys: readonly string[] = [],
    customers: readonly string[] = [],
  ) => ({ ref, store: 'stripe' as const, minor, currency, at, users, keys, customers });
  const { tax } = amountsOf(sale.price, minor);
  const productId = productOf(sale.price.product);
  const states = (ref: string, product: string | null) =>
    statementOf(
      { ref, source: 'stripe', minor },
      { tax: tax === null ? null : { minor: tax }, fee: null, product },
    );
  const codes = (sale.hasBothCodes ? [0, 1] : [sale.code]).flatMap((one) => listed(codeOf(one, run)));
  const sessionCodes = listed(codeOf(sale.sessionCode, run));
  const freeCode = codeOf(sale.freeCode, run);
  const placeOf = (stage: number) => (sale.hasPartsFirst ? { stage } : {});
  if (freeCode !== null) {
    const began = beganAt(sale, at);
    const discount = { promotion_code: freeCode, subscription: key, start: began / 1_000 };
    story.add((ids) => stripeEvent('customer.discount.created', { id: `di_${name}`, ...discount }, ids), {
      began: { key, code: freeCode, at: began, users: [] },
    });
  }
  if (sale.again !== null) {
    const ref = `in_${name}_again`;
    const payer = sale.again.user === null ? null : userId(sale.again.user);
    const when = at + sale.again.hours * HOUR_MS;
    story.add(
      (ids) =>
        withTax(
          stripeInvoicePaid({
            ...ids,
            ...money,
            invoiceId: ref,
            subscriptionId: key,
            customerId: customer,
            userId: payer,
            productId,
          }),
          tax,
        ),
      {
        states: states(ref, productId),
        payment: { ...payment(ref, listed(payer), [key], [customer]), at: when },
      },
      { at: when, ...placeOf(2) },
    );
  }
  if (sale.invoice !== 'none') {
    const isLegacy = sale.invoice === 'legacy';
    story.add(
      (ids) =>
        withCodes(
          withTax(
            stripeInvoicePaid({
              ...ids,
              ...money,
              invoiceId,
              subscriptionId: key,
              customerId: customer,
              userId: user ?? null,
              productId,
              ...(isLegacy ? { legacy: { chargeId, paymentIntentId: intentId } } : {}),
            }),
            tax,
            isLegacy,
          ),
          codes,
        ),
      {
        states: states(invoiceId, productId),
        codes: codes.map((code) => ({ ref: invoiceId, code })),
        payment: payment(invoiceId, listed(user), [key], [customer]),
        same: isLegacy
          ? [
              [invoiceId, intentId],
              [invoiceId, chargeId],
            ]
          : [],
      },
      placeOf(1),
    );
  }
  if (sale.session !== 'none') {
    const namesInvoice = sale.session === 'with invoice';
    const ref = namesInvoice ? invoiceId : intentId;
    story.add(
      (ids) =>
        withCodes(
          withFields(
            stripeCheckoutSession({
              ...ids,
              ...money,
              userId: otherUser ?? null,
              customerId: sale.isCompany ? customer : null,
              paymentIntentId: intentId,
              invoiceId: namesInvoice ? invoiceId : null,
            }),
            ['data', 'object'],
            { total_details: { amount_tax: tax } },
          ),
          sessionCodes,
        ),
      {
        codes: sessionCodes.map((code) => ({ ref, code })),
        states: states(ref, null),
        payment: payment(ref, listed(otherUser), [], sale.isCompany ? [customer] : []),
        same: namesInvoice ? [[invoiceId, intentId]] : [],
      },
    );
  }
  if (sale.intent) {
    story.add(
      (ids) =>
        stripePaymentIntent({ ...ids, ...money, userId: user ?? null, paymentIntentId: intentId, chargeId }),
      { ...(user == null ? {} : { payment: payment(intentId, [user]) }), same: [[intentId, chargeId]] },
    );
  }
  if (sale.tie) {
    story.add((ids) => stripeInvoicePaymentPaid({ ...ids, ...money, invoiceId, paymentIntentId: intentId }), {
      same: [[invoiceId, intentId]],
    });
  }
  for (const [n, part] of sale.parts.entries()) {
    const names = { paymentIntentId: `${intentId}_${n}`, chargeId: `${chargeId}_${n}` };
    const amount = Math.max(1, Math.floor((minor * part.percent) / 100));
    const payer = part.user === null ? null : userId(part.user);
    story.add(
      (ids) => stripePaymentIntent({ ...ids, ...names, amount, currency, userId: payer }),
      {
        ...(payer === null ? {} : { payment: { ...payment(names.paymentIntentId, [payer]), minor: amount } }),
        same: [[names.paymentIntentId, names.chargeId]],
      },
      placeOf(0),
    );
    const tie = { invoiceId, paymentIntentId: names.paymentIntentId, amount, currency };
    if (part.isTied) {
      story.add(
        (ids) => stripeInvoicePaymentPaid({ ...ids, ...tie, id: `inpay_${name}_${n}` }),
        {
          same: [[invoiceId, names.paymentIntentId]],
        },
        placeOf(0),
      );
    }
  }
  if (sale.charge) {
    story.add((ids) => stripeCharge({ ...ids, ...money, chargeId, paymentIntentId: intentId }), {
      same: [[intentId, chargeId]],
    });
  }
  if (linkedUser != null) {
    story.add(
      (ids) => stripeSubscription({ ...ids, subscriptionId: key, customerId: customer, userId: linkedUser }),
      { names: [{ key, user: linkedUser }] },
    );
  }
  if (signedUpUser != null) {
    story.add(
      (ids) =>
        stripeCheckoutSession({
          ...ids,
          mode: 'subscription',
          userId: signedUpUser,
          subscriptionId: key,
          customerId: customer,
        }),
      { names: [key, customer].map((one) => ({ key: one, user: signedUpUser })) },
    );
  }
  const taken = { name, minor, currency, at, invoiceId, intentId, chargeId };
  const { steps } = story;
  const before = steps.length;
  for (const [n, take] of sale.takes.entries()) addTake(story, take, { ...taken, n });
  return account === null ? steps : withAccount(sale, account, steps, before);
}

/** Events of a connected account count while it is listed. Refunds and disputes of what is stored count always. */
function withAccount(
  { account: kind }: PlainSale,
  account: string,
  steps: readonly SaleStep[],
  takesFrom: number,
): SaleStep[] {
  if (kind === 'never listed') {
    return steps.map((step) =>
      step.do === 'event' ? { ...step, report: { eventId: step.report.eventId } } : step,
    );
  }
  return [
    { do: 'accounts', account, isListed: true, stage: 0 },
    ...steps.map((step, n) => (n < takesFrom ? { ...step, stage: 1 } : { ...step, stage: 1 + (n % 2) * 2 })),
    { do: 'accounts', account, isListed: false, stage: 2 },
  ];
}

/** The events of an invoice that is paid in parts: one earning, on what was paid in all. */
export function splitStory(sale: SplitSale, { name, userId, now }: SaleContext): SaleStep[] {
  const at = now - sale.daysAgo * DAY_MS;
  const story = new Story(name, at);
  const user = userId(sale.user);
  const { currency, parts, late } = sale;
  const [invoiceId, key] = [`in_${name}`, `sub_${name}`];
  const minor = parts.reduce((sum, part) => sum + part, 0);
  /** The last part is the one that arrives late. */
  const placeOf = (what: 'invoice' | 'part' | 'tie', n = parts.length - 1) =>
    late === null ? {} : { stage: late === what && n === parts.length - 1 ? 1 : 0 };
  const payment = (
    ref: string,
    amount: number,
    users: readonly string[],
    share: 'part' | 'whole',
    keys: readonly string[] = [],
  ) => ({
    payment: {
      ref,
      store: 'stripe' as const,
      minor: amount,
      currency,
      at,
      users,
      keys,
      customers: [],
      share,
    },
  });
  if (!sale.isOpen) {
    story.add(
      (ids) =>
        stripeInvoicePaid({
          ...ids,
          invoiceId,
          amount: minor,
          currency,
          userId: sale.invoiceNames ? user : null,
          subscriptionId: key,
          customerId: `cus_${name}`,
        }),
      payment(invoiceId, minor, sale.invoiceNames ? [user] : [], 'whole', [key]),
      placeOf('invoice'),
    );
  }
  if (sale.isLinked) {
    story.add(
      (ids) => stripeSubscription({ ...ids, subscriptionId: key, customerId: `cus_${name}`, userId: user }),
      { names: [{ key, user }] },
    );
  }
  for (const [n, amount] of parts.entries()) {
    const [intentId, chargeId] = [`pi_${name}_${n}`, `ch_${name}_${n}`];
    const names = sale.partsName[n] === true;
    const money = { amount, currency };
    story.add(
      (ids) =>
        stripePaymentIntent({
          ...ids,
          ...money,
          userId: names ? user : null,
          paymentIntentId: intentId,
          chargeId,
        }),
      { ...(names ? payment(intentId, amount, [user], 'part') : {}), same: [[intentId, chargeId]] },
      placeOf('part', n),
    );
    story.add(
      (ids) => stripeInvoicePaymentPaid({ ...ids, ...money, invoiceId, paymentIntentId: intentId }),
      { same: [[invoiceId, intentId]] },
      placeOf('tie', n),
    );
  }
  for (const [n, { take, part }] of sale.takes.entries()) {
    const of = part % parts.length;
    const [intentId, chargeId] = [`pi_${name}_${of}`, `ch_${name}_${of}`];
    addTake(story, take, { name, n, minor: parts[of] ?? 1, currency, at, invoiceId, intentId, chargeId });
  }
  return story.steps;
}
