import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import * as fc from 'fast-check';
import type { Activities } from '../../activities/index.ts';
import { DAY_MS } from '../../src/domain/time.ts';
import type { BindingId } from '../../src/domain/ids.ts';
import { newAffiliate, newApp } from '../support/api.ts';
import { startProcessingApi } from '../support/processing-api.ts';
import type { TestApi, TestApp } from '../support/api.ts';
import { expectConsistentLedger } from '../support/consistent-ledger.ts';
import { payOut } from '../support/ledger.ts';
import { MoneyModel } from '../support/money-model.ts';
import type { Books, Currency, Report } from '../support/money-model.ts';
import {
  bodyOf,
  fakeSecret,
  paddleAdjustment,
  paddleSubscription,
  paddleTransaction,
  PROOFS,
  revenuecatEvent,
  revenuecatRefund,
  stripeCharge,
  stripeCheckoutSession,
  stripeDispute,
  stripeInvoicePaid,
  stripeInvoicePaymentPaid,
  stripePaymentIntent,
  stripeRefund,
  stripeSubscription,
} from '../support/provider-fixtures.ts';
import type { Payload } from '../support/provider-fixtures.ts';
import { cases, isLong } from '../support/rounds.ts';

// Random sequences of facts, delivered to the service and to a small model. Both must have the same books, to the cent.
// Everything but Temporal is real. `MONEY_MODEL_MINUTES=60 npm test -- test/e2e/money-model.test.ts` tries random ones for an hour.
// A failure of `npm test` ends at once; `MONEY_MODEL_SEED=1` reduces its sequence to a small one.

const PROVIDERS = ['stripe', 'paddle', 'revenuecat'] as const;
type ProviderOfModel = (typeof PROVIDERS)[number];

const WINDOW_DAYS = 60;
const APP_RATE_BPS = 2_000;

let api: TestApi;
let activities: Activities;
let app: TestApp;
const secrets: Record<string, string> = {};
let toHeal: BindingId[] = [];

beforeAll(async () => {
  ({ api, activities } = await startProcessingApi({ onBinding: (id) => void toHeal.push(id) }));
  const settings = {
    commissionRateBps: APP_RATE_BPS,
    attributionWindowDays: WINDOW_DAYS,
    holdPeriodDays: 30,
  };
  app = await newApp(api, undefined, settings);
  for (const provider of PROVIDERS) {
    const secret = fakeSecret(provider);
    const put = await api.call<{ secret?: string }>('PUT', `/apps/${app.appId}/webhooks/${provider}/secret`, {
      key: app.key,
      body: { environment: 'production', ...(secret === null ? {} : { secret }) },
    });
    secrets[provider] = secret ?? put.body.secret ?? '';
  }
  await api.sql`
    insert into exchange_rates (currency, day, units, worth_usd, source)
    select currency, current_date - n, units, 1.05 + n / 1000.0, 'ecb'
      from generate_series(0, 120) n, (values ('EUR', 1), ('JPY', 162.34)) t (currency, units)`;
});
afterAll(async () => {
  await api.close();
});

/** Days since the epoch, and the rates of `beforeAll`: a euro is worth 1.05 dollars and a thousandth more per day ago. */
const dayOf = (at: number) => Math.floor(at / DAY_MS);

function toUsd(minor: bigint, currency: Currency, at: number): readonly [bigint, bigint] {
  const worth = BigInt(1_050 + dayOf(Date.now()) - dayOf(at));
  switch (currency) {
    case 'usd':
      return [minor, 1n];
    case 'eur':
      return [minor * worth, 1_000n];
    case 'jpy':
      return [minor * 100n * worth * 100n, 16_234n * 1_000n];
  }
}

type Step =
  | {
      readonly do: 'install';
      readonly user: number;
      readonly device: number;
      readonly creator: number;
      readonly daysAgo: number;
    }
  | { readonly do: 'identify'; readonly user: number; readonly device: number }
  | { readonly do: 'rate'; readonly creator: number; readonly rateBps: number | null }
  | { readonly do: 'pause'; readonly creator: number; readonly isPaused: boolean }
  | { readonly do: 'pay'; readonly creator: number }
  | {
      readonly do: 'event';
      readonly provider: ProviderOfModel;
      readonly body: Payload;
      readonly report: Report;
    };

const anyUser = fc.nat(2);
const maybeUser = fc.option(anyUser, { freq: 3 });
const anyCreator = fc.nat(1);
/** Small amounts at these rates lead to every fraction of a cent, and often to half a cent. */
const anyMinor = fc.oneof(fc.integer({ min: 1, max: 99 }), fc.integer({ min: 100, max: 90_000 }));
const anyRateBps = fc.constantFrom(0, 1, 333, 1_250, 1_250, 3_333, 5_000, 5_000, 10_000);

const anyTake = fc.record({
  kind: fc.constantFrom('refund', 'refund', 'dispute', 'dispute', 'outside'),
  percent: fc.integer({ min: 1, max: 130 }),
  names: fc.constantFrom('intent', 'charge', 'both'),
  story: fc.constantFrom('stays', 'ends', 'back', 'back then again', 'again then back', 'twice'),
});

const anyPlainSale = fc.record({
  provider: fc.constantFrom<ProviderOfModel>('stripe', 'stripe', 'stripe', 'paddle', 'revenuecat'),
  minor: anyMinor,
  currency: fc.constantFrom<Currency>('usd', 'eur', 'jpy', 'jpy'),
  daysAgo: fc.oneof(fc.integer({ min: 31, max: WINDOW_DAYS - 2 }), fc.integer({ min: 31, max: 95 })),
  user: maybeUser,
  otherUser: maybeUser,
  linkedUser: maybeUser,
  invoice: fc.constantFrom('none', 'plain', 'legacy'),
  session: fc.constantFrom('none', 'alone', 'with invoice'),
  intent: fc.boolean(),
  tie: fc.boolean(),
  charge: fc.boolean(),
  takes: fc.array(anyTake, { maxLength: 3 }),
  undo: fc.boolean(),
});
/** A payment that two references attribute to two creators until an event ties them. */
const anyDoubleSale = fc
  .record({
    sale: anyPlainSale,
    take: anyTake,
    users: fc.constantFrom([0, 1], [1, 0], [2, 0], [0, 2], [1, 1]),
  })
  .map(({ sale, take, users: [user = 0, otherUser = 1] }) => ({
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
const anySale = fc.oneof(anyPlainSale, anyDoubleSale);
type Sale = typeof anySale extends fc.Arbitrary<infer T> ? T : never;

const anyInstall = fc.record({
  user: anyUser,
  device: fc.nat(1),
  creator: anyCreator,
  daysAgo: fc.integer({ min: 25, max: 100 }),
});
type Install = typeof anyInstall extends fc.Arbitrary<infer T> ? T : never;
/** One install per user, of two creators. */
const installOfEach = fc
  .record({ last: anyCreator, daysAgo: fc.integer({ min: 25, max: 100 }) })
  .map(({ last, daysAgo }) => [0, 1, last].map((creator, user) => ({ user, device: 0, creator, daysAgo })));

const anyTerms = fc.record({
  rateBps: anyRateBps,
  isPaused: fc.constantFrom(false, false, false, true),
});

const anyWorld = fc.record({
  sales: fc.array(anySale, { minLength: 2, maxLength: 4 }),
  installs: fc.oneof<fc.Arbitrary<Install[]>[]>(
    fc.array(anyInstall, { minLength: 1, maxLength: 5 }),
    installOfEach,
    fc.tuple(installOfEach, fc.array(anyInstall, { maxLength: 2 })).map((both) => both.flat()),
  ),
  firstTerms: fc.tuple(anyTerms, anyTerms),
  rates: fc.array(fc.record({ creator: anyCreator, rateBps: fc.option(anyRateBps) }), { maxLength: 2 }),
  pauses: fc.array(fc.record({ creator: anyCreator, isPaused: fc.boolean() }), { maxLength: 2 }),
  pays: fc.array(anyCreator, { maxLength: 3 }),
  repeats: fc.array(fc.nat(), { maxLength: 3 }),
  order: fc.constantFrom<Order>('any', 'users first', 'ties last', 'users last'),
  keys: fc.array(fc.nat(), { minLength: 80, maxLength: 80 }),
});
/** Whether users are known before or after the payments, and whether references are tied after them. Else any order. */
type Order = 'any' | 'users first' | 'ties last' | 'users last';
type World = typeof anyWorld extends fc.Arbitrary<infer T> ? T : never;

/** The events of a sale, named after `name`, with what each states in the words of its provider's documentation. */
function eventsOf(sale: Sale, name: string, userId: (user: number) => string): Step[] {
  const steps: Step[] = [];
  const now = Math.floor(Date.now() / 1000) * 1000;
  const at = now - sale.daysAgo * DAY_MS;
  const [user, otherUser, linkedUser] = [sale.user, sale.otherUser, sale.linkedUser].map((n) =>
    n === null ? null : userId(n),
  );
  let events = 0;
  const add = (
    provider: ProviderOfModel,
    build: (ids: { eventId: string; occurredAt: number }) => Payload,
    report: Omit<Report, 'eventId'>,
    occurredAt = at,
  ) => {
    const eventId = `evt_${name}_${(events += 1)}`;
    steps.push({
      do: 'event',
      provider,
      body: build({ eventId, occurredAt }),
      report: { ...report, eventId },
    });
  };
  const listed = (one: string | null | undefined) => (one == null ? [] : [one]);
  const takeTimes = sale.takes.map((_, n) => (k: number) => at + (1 + n * 10 + k) * 3_600_000);
  const share = (percent: number) => Math.max(1, Math.floor((sale.minor * percent) / 100));

  if (sale.provider === 'stripe') {
    const { minor, currency } = sale;
    const [invoiceId, intentId, chargeId, key] = [`in_${name}`, `pi_${name}`, `ch_${name}`, `sub_${name}`];
    const money = { amount: minor, currency };
    const payment = (ref: string, users: readonly string[], keys: readonly string[] = []) => ({
      ref,
      minor,
      currency,
      at,
      users,
      keys,
    });
    if (sale.invoice !== 'none') {
      const isLegacy = sale.invoice === 'legacy';
      add(
        'stripe',
        (ids) =>
          stripeInvoicePaid({
            ...ids,
            ...money,
            invoiceId,
            subscriptionId: key,
            customerId: `cus_${name}`,
            userId: user ?? null,
            ...(isLegacy ? { legacy: { chargeId, paymentIntentId: intentId } } : {}),
          }),
        {
          payment: payment(invoiceId, listed(user), [key, `cus_${name}`]),
          same: isLegacy
            ? [
                [invoiceId, intentId],
                [invoiceId, chargeId],
              ]
            : [],
        },
      );
    }
    if (sale.session !== 'none') {
      const namesInvoice = sale.session === 'with invoice';
      add(
        'stripe',
        (ids) =>
          stripeCheckoutSession({
            ...ids,
            ...money,
            userId: otherUser ?? null,
            customerId: null,
            paymentIntentId: intentId,
            invoiceId: namesInvoice ? invoiceId : null,
          }),
        {
          payment: payment(namesInvoice ? invoiceId : intentId, listed(otherUser)),
          same: namesInvoice ? [[invoiceId, intentId]] : [],
        },
      );
    }
    if (sale.intent) {
      add(
        'stripe',
        (ids) =>
          stripePaymentIntent({
            ...ids,
            ...money,
            userId: user ?? null,
            paymentIntentId: intentId,
            chargeId,
          }),
        {
          ...(user == null ? {} : { payment: payment(intentId, [user]) }),
          same: [[intentId, chargeId]],
        },
      );
    }
    if (sale.tie) {
      add(
        'stripe',
        (ids) => stripeInvoicePaymentPaid({ ...ids, ...money, invoiceId, paymentIntentId: intentId }),
        { same: [[invoiceId, intentId]] },
      );
    }
    if (sale.charge) {
      add('stripe', (ids) => stripeCharge({ ...ids, ...money, chargeId, paymentIntentId: intentId }), {
        same: [[intentId, chargeId]],
      });
    }
    if (linkedUser != null) {
      add(
        'stripe',
        (ids) =>
          stripeSubscription({ ...ids, subscriptionId: key, customerId: `cus_${name}`, userId: linkedUser }),
        { names: { key, user: linkedUser } },
      );
    }
    for (const [n, take] of sale.takes.entries()) {
      const time = takeTimes[n] ?? (() => at);
      const cents = share(take.percent);
      const id = `${take.kind}_${name}_${n}`;
      const names = {
        paymentIntentId: take.names === 'charge' ? null : intentId,
        chargeId: take.names === 'intent' ? null : chargeId,
      };
      const state = (k: number, isEnd: boolean, isBack: boolean) => ({
        take: {
          id,
          ref: take.kind === 'outside' ? invoiceId : take.names === 'charge' ? chargeId : intentId,
          minor: cents,
          at: time(k),
          isEnd,
          isBack,
          group: `${take.kind} ${name}`,
        },
      });
      if (take.kind === 'outside') {
        add(
          'stripe',
          (ids) =>
            stripeInvoicePaymentPaid({
              ...ids,
              id,
              invoiceId,
              paymentRecordId: `pr_${id}`,
              amount: cents,
              currency,
            }),
          state(0, false, false),
          time(0),
        );
      } else if (take.kind === 'refund') {
        const refund = (k: number, status: string) =>
          add(
            'stripe',
            (ids) => stripeRefund({ ...ids, ...names, id, amount: cents, currency, status }),
            state(k, status !== 'succeeded', status !== 'succeeded'),
            time(k),
          );
        refund(0, 'succeeded');
        if (take.story.includes('back')) refund(1, 'failed');
      } else {
        const dispute = (k: number, type: string, status: string) =>
          add(
            'stripe',
            (ids) =>
              stripeDispute({
                ...ids,
                ...names,
                id,
                amount: cents,
                currency,
                type: `charge.dispute.${type}`,
                status,
              }),
            state(k, type !== 'created', status === 'won'),
            time(k),
          );
        dispute(0, 'created', 'needs_response');
        const ends = {
          stays: [],
          ends: ['lost'],
          back: ['won'],
          'back then again': ['won', 'lost'],
          'again then back': ['lost', 'won'],
          twice: ['withdrawn', 'won', 'lost'],
        };
        for (const [k, end] of ends[take.story].entries()) {
          const type = end === 'won' && take.percent % 2 === 0 ? 'funds_reinstated' : 'closed';
          if (end === 'withdrawn') dispute(k + 1, 'funds_withdrawn', 'needs_response');
          else dispute(k + 1, type, end);
        }
      }
    }
    return steps;
  }

  const { minor } = sale;
  if (sale.provider === 'paddle') {
    const [transactionId, key] = [`txn_${name}`, `sub_${name}`];
    add(
      'paddle',
      (ids) =>
        paddleTransaction({
          ...ids,
          transactionId,
          subscriptionId: key,
          amount: minor,
          userId: user ?? null,
        }),
      { payment: { ref: transactionId, minor, currency: 'usd', at, users: listed(user), keys: [key] } },
    );
    if (linkedUser != null) {
      add('paddle', (ids) => paddleSubscription({ ...ids, subscriptionId: key, userId: linkedUser }), {
        names: { key, user: linkedUser },
      });
    }
    for (const [n, take] of sale.takes.entries()) {
      const time = takeTimes[n] ?? (() => at);
      const action = take.kind === 'dispute' ? 'chargeback' : 'refund';
      const id = `adj_${name}_${n}`;
      const adjustment = (k: number, status: string) =>
        add(
          'paddle',
          (ids) =>
            paddleAdjustment({
              ...ids,
              adjustmentId: id,
              transactionId,
              action,
              status,
              amount: share(take.percent),
            }),
          {
            take: {
              id,
              ref: transactionId,
              minor: share(take.percent),
              at: time(k),
              isEnd: status === 'reversed',
              isBack: status === 'reversed',
              group: `${action} ${name}`,
            },
          },
          time(k),
        );
      adjustment(0, 'approved');
      if (take.story.includes('back')) adjustment(1, 'reversed');
    }
    if (sale.undo) {
      const undoneAt = takeTimes[1]?.(5) ?? at + DAY_MS;
      add(
        'paddle',
        (ids) =>
          paddleAdjustment({
            ...ids,
            adjustmentId: `adj_${name}_undo`,
            transactionId,
            action: 'chargeback_reverse',
            amount: minor,
          }),
        { undo: { group: `chargeback ${name}`, at: undoneAt } },
        undoneAt,
      );
    }
    return steps;
  }

  const transactionId = `rc-${name}`;
  const userIds = { userId: user ?? `$RCAnonymousID:${name}` };
  const bought = { ...userIds, transactionId, purchasedAt: at };
  add(
    'revenuecat',
    (ids) => revenuecatEvent({ ...ids, ...bought, type: 'INITIAL_PURCHASE', usd: minor / 100 }),
    {
      payment: { ref: transactionId, minor, currency: 'usd', at, users: listed(user), keys: [] },
    },
  );
  for (const [n, take] of sale.takes.entries()) {
    const time = takeTimes[n]?.(0) ?? at;
    const cents = share(take.percent);
    const group = `refund ${name}`;
    add(
      'revenuecat',
      (ids) => revenuecatRefund({ ...ids, ...bought, usd: cents / 100 }),
      {
        take: {
          id: `rc-${name}-${n}`,
          ref: transactionId,
          minor: cents,
          at: time,
          isEnd: false,
          isBack: false,
          group,
        },
      },
      time,
    );
  }
  if (sale.undo) {
    const undoneAt = takeTimes[1]?.(5) ?? at + DAY_MS;
    add(
      'revenuecat',
      (ids) => revenuecatEvent({ ...ids, ...bought, type: 'REFUND_REVERSED', usd: minor / 100 }),
      { undo: { group: `refund ${name}`, at: undoneAt } },
      undoneAt,
    );
  }
  return steps;
}

/** All steps of a world in its order. */
function stepsOf(world: World, run: string): Step[] {
  const userId = (user: number) => `user-${run}-${user}`;
  const events = world.sales.flatMap((sale, n) => eventsOf(sale, `${run}${n}`, userId));
  const repeated = events.length === 0 ? [] : world.repeats.flatMap((n) => events[n % events.length] ?? []);
  const steps: Step[] = [
    ...world.installs.flatMap((install): Step[] => [
      { do: 'install', ...install },
      { do: 'identify', user: install.user, device: install.device },
    ]),
    ...events,
    ...repeated,
    ...world.rates.map((rate): Step => ({ do: 'rate', ...rate })),
    ...world.pauses.map((pause): Step => ({ do: 'pause', ...pause })),
    ...world.pays.map((creator): Step => ({ do: 'pay', creator })),
  ];
  const keyed = steps.map((step, n) => {
    const key = world.keys[n % world.keys.length] ?? 0;
    return { step, key, n, part: partOf(step, world.order, key) };
  });
  const inOrder = keyed.toSorted((a, b) => a.part - b.part || a.key - b.key || a.n - b.n);
  return [
    ...world.firstTerms.flatMap(({ rateBps, isPaused }, creator): Step[] => [
      { do: 'rate', creator, rateBps },
      ...(isPaused ? [{ do: 'pause' as const, creator, isPaused }] : []),
    ]),
    ...inOrder.map(({ step }) => step),
    { do: 'pay', creator: 0 },
    { do: 'pay', creator: 1 },
  ];
}

/** Returns the part of the sequence that a step belongs to. */
function partOf(step: Step, order: Order, key: number): number {
  if (order === 'any') return 0;
  if (step.do === 'install' || step.do === 'identify') return order === 'users last' ? 2 : 0;
  if (order !== 'ties last' || step.do !== 'event' || step.report.payment !== undefined) return 1;
  return step.report.take !== undefined && key % 2 === 0 ? 1 : 2;
}

/** Has everything that waits evaluated: heals of new bindings, and marked payments. */
async function settle(): Promise<void> {
  for (let id = toHeal.shift(); id !== undefined; id = toHeal.shift()) {
    let after: string | null = null;
    do after = await activities.healPage(id, after);
    while (after !== null);
  }
  let after: string | null = null;
  do after = (await activities.convertPage(after)).next;
  while (after !== null);
}

async function play(world: World): Promise<void> {
  const name = randomUUID().slice(0, 8);
  const creators = [await newAffiliate(api, app), await newAffiliate(api, app)];
  const model = new MoneyModel({ windowMs: WINDOW_DAYS * DAY_MS, toUsd });
  const terms = creators.map(() => ({ rateBps: APP_RATE_BPS, isPaused: false }));
  creators.forEach((creator, n) => model.setCreator(creator, terms[n] ?? { rateBps: 0, isPaused: true }));
  const now = Date.now();
  const change = async (n: number, body: object, term: Partial<{ rateBps: number; isPaused: boolean }>) => {
    const path = `/apps/${app.appId}/affiliates/${creators[n]}`;
    expect((await api.call('PATCH', path, { key: app.key, body })).status).toBe(200);
    terms[n] = { rateBps: APP_RATE_BPS, isPaused: false, ...terms[n], ...term };
    model.setCreator(creators[n] ?? '', terms[n]);
  };
  for (const step of stepsOf(world, name)) {
    api.clock.now = Date.now();
    switch (step.do) {
      case 'install': {
        const device = `device-${name}-${step.user}-${step.device}`;
        const creator = creators[step.creator] ?? '';
        // Half a day beside every payment.
        const at = now - step.daysAgo * DAY_MS - DAY_MS / 2;
        const body = { deviceId: device, affiliateCode: creator, firstOpenAt: at };
        expect((await api.call('POST', '/sdk/install', { key: app.sdkKey, body })).status).toBe(200);
        model.install(device, creator, at);
        break;
      }
      case 'identify': {
        const device = `device-${name}-${step.user}-${step.device}`;
        const user = `user-${name}-${step.user}`;
        const body = { deviceId: device, customerUserId: user, identifiedAt: now };
        await api.call('POST', '/sdk/identify', { key: app.sdkKey, body });
        model.identify(device, user);
        break;
      }
      case 'rate':
        await change(
          step.creator,
          { defaultCommissionRateBps: step.rateBps },
          { rateBps: step.rateBps ?? APP_RATE_BPS },
        );
        break;
      case 'pause':
        await change(
          step.creator,
          { status: step.isPaused ? 'paused' : 'active' },
          { isPaused: step.isPaused },
        );
        break;
      case 'pay': {
        const creator = creators[step.creator] ?? '';
        await payOut(api, app, creator);
        model.pay(creator);
        break;
      }
      case 'event': {
        const body = bodyOf(step.body);
        const headers = PROOFS[step.provider](body, secrets[step.provider] ?? '');
        const path = `/webhooks/${step.provider}/${app.appId}`;
        expect((await api.call('POST', path, { body: body.toString(), headers })).status).toBe(200);
        model.report(step.report);
        break;
      }
    }
    await settle();
  }
  expect(await booksOf(model.refs)).toEqual(
    Object.fromEntries(model.refs.map((ref) => [ref, model.booksOf(ref)])),
  );
  for (const creator of creators) {
    const sums = await api.sql.one<{ net: number; paid: number }>`
      select coalesce((select sum(amount_cents)::bigint from commissions where affiliate_id = ${creator}), 0) as net,
             coalesce((select sum(total_cents)::bigint from payouts where affiliate_id = ${creator}), 0) as paid`;
    expect(sums).toEqual({ net: model.netOf(creator), paid: model.paidTo(creator) });
  }
}

/** The books of the service under these references. */
async function booksOf(refs: readonly string[]): Promise<Record<string, Books>> {
  const rows = await api.sql<Books & { ref: string }>`
    select p.ref, t.affiliate_id as creator, p.earned_cents as earned,
           coalesce((select sum(c.amount_cents)::bigint from commissions c where c.payment_id = p.id), 0) as net,
           coalesce((select sum(v.amount_cents)::bigint from revenue_entries v where v.payment_id = p.id), 0) as revenue
      from payments p
      left join bindings b on b.id = p.binding_id
      left join attributions t on t.id = b.attribution_id
     where p.app_id = ${app.appId} and p.ref = any(${[...refs]}::text[])`;
  return Object.fromEntries(rows.map(({ ref, ...books }) => [ref, books]));
}

// @promise money-model
test('any sequence of payments, aliases, refunds, disputes, late users and payouts has the books of a separate model', async () => {
  const minutes = process.env['MONEY_MODEL_MINUTES'];
  const seed = process.env['MONEY_MODEL_SEED'];
  let sequences = 0;
  const property = fc.asyncProperty(anyWorld, async (world) => {
    sequences += 1;
    await play(world);
  });
  await fc.assert(property, {
    ...(minutes === undefined
      ? cases(8, 150)
      : { numRuns: 1_000_000, interruptAfterTimeLimit: Number(minutes) * 60_000 }),
    ...(seed === undefined ? {} : { seed: Number(seed) }),
    endOnFailure: !isLong && minutes === undefined && seed === undefined,
  });
  if (minutes !== undefined) process.stderr.write(`${sequences} sequences had the books of the model\n`);
}, 100_000_000);

test('the ledger is consistent after all sequences', async () => {
  // Not the checks that need the sweep or the workflow of a payout.
  await expectConsistentLedger(api.sql, [
    'rollups_equal_facts',
    'payment_sums_equal_commissions',
    'one_earning_per_payment',
    'corrections_have_their_cause',
    'earnings_are_rate_of_base',
    'reversed_is_the_refunded_share',
    'adjustments_are_booked',
    'revenue_is_base_minus_refunds',
    'payouts_are_the_sum_of_their_items',
    'paid_once',
  ]);
}, 600_000);
