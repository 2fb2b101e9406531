import * as fc from 'fast-check';
import { customerStory } from './customer-stories.ts';
import { exportedStory } from './export-stories.ts';
import type { Policy, Rule, Store } from './money-policies.ts';
import { anyTarget, anyUser, ORGANIC, productOf, SALES, WINDOW_DAYS } from './money-sales.ts';
import type { Sale, SaleContext, SaleStep, Target, Theme } from './money-sales.ts';
import { isLong } from './rounds.ts';
import { paddleStory, revenuecatStory } from './store-stories.ts';
import { plainStory, splitStory } from './stripe-stories.ts';

// Random worlds: sales, creators, users and payouts, in an order of their own.

export type Step =
  | {
      readonly do: 'install';
      readonly user: number;
      readonly device: number;
      readonly creator: number;
      readonly daysAgo: number;
      readonly by: Touch;
    }
  /** On a device of the user `of`, by default of the user. */
  | { readonly do: 'identify'; readonly user: number; readonly device: number; readonly of?: number }
  | { readonly do: 'rate'; readonly creator: number; readonly rateBps: number | null }
  | { readonly do: 'pause'; readonly creator: number; readonly isPaused: boolean }
  | { readonly do: 'pay'; readonly creator: number }
  | { readonly do: 'enter'; readonly entry: number; readonly creator: number; readonly cents: number }
  | { readonly do: 'undo'; readonly entry: number }
  | ({ readonly do: 'policy' } & PolicyOfWorld)
  | { readonly do: 'give'; readonly target: Target; readonly creator: number; readonly daysAgo: number }
  /** From now on. Null: to nobody. */
  | { readonly do: 'give away'; readonly target: Target; readonly creator: number | null }
  | { readonly do: 'erase'; readonly user: number }
  | SaleStep;

/**
 * A policy of a creator, of the creator's group or of the app, which takes effect some days ago; a version of the last policy there; or
 * the end of it.
 */
export interface PolicyOfWorld {
  readonly creator: number;
  readonly daysAgo: number;
  readonly scope: 'affiliate' | 'group' | 'app';
  readonly what: 'policy' | 'version' | 'end';
  readonly terms: Policy;
}

/**
 * What leads to the creator: a click, a code that was entered `daysAgo` in an app that was opened before, or a code whose time
 * nobody states, which counts as entered when it arrives.
 */
export type Touch = 'click' | 'code' | 'code of now';

const anyCreator = fc.nat(1);
const anyTouch = fc.constantFrom<Touch>('click', 'click', 'code', 'code', 'code of now');
const anyRateBps = fc.constantFrom(0, 1, 333, 1_250, 1_250, 3_333, 5_000, 5_000, 10_000);

const anyInstall = fc.record({
  user: anyUser,
  device: fc.nat(1),
  creator: anyCreator,
  daysAgo: fc.integer({ min: 25, max: 100 }),
  by: anyTouch,
});
type Install = typeof anyInstall extends fc.Arbitrary<infer T> ? T : never;
/** One install per user, of two creators. */
const installOfEach = (daysAgo: fc.Arbitrary<number>, by: fc.Arbitrary<Touch>) =>
  fc
    .record({ last: anyCreator, daysAgo, by })
    .map(({ last, ...rest }) => [0, 1, last].map((creator, user) => ({ user, device: 0, creator, ...rest })));
const lateOrEarly = installOfEach(fc.integer({ min: 25, max: 100 }), anyTouch);

const anyInstalls = fc.oneof<fc.Arbitrary<Install[]>[]>(
  // Users belong to creators by codes alone, or because a founder said so.
  fc.constant([]),
  fc.array(anyInstall, { minLength: 1, maxLength: 5 }),
  lateOrEarly,
  fc.tuple(lateOrEarly, fc.array(anyInstall, { maxLength: 2 })).map((both) => both.flat()),
);
/** Every payer has an install from before the purchase, so what an export adds is attributed in any order. */
const earlyInstalls = installOfEach(
  fc.integer({ min: WINDOW_DAYS, max: 100 }),
  fc.constantFrom<Touch>('click', 'code'),
);
const mostlyEarlyInstalls = fc.oneof(earlyInstalls, earlyInstalls, anyInstalls);

const anyEntryCents = fc.oneof(fc.integer({ min: -5_000, max: -1 }), fc.integer({ min: 1, max: 5_000 }));

const anyEarns = fc.oneof(
  fc.record({ percentBps: anyRateBps }),
  fc.record({ flatCents: fc.integer({ min: 1, max: 2_000 }) }),
);
const FIRST = [{ firstPayments: 1 }, { firstPayments: 2 }, { firstMonths: 1 }, { firstMonths: 2 }] as const;
const anyRule: fc.Arbitrary<Rule> = fc
  .tuple(
    anyEarns,
    fc.constantFrom({}, {}, ...FIRST),
    fc.constantFrom(
      {},
      {},
      {},
      { products: [productOf(0)] },
      { products: [productOf(1), 'unknown'] },
      { stores: ['app_store' as const] },
      { stores: ['stripe' as const, 'paddle' as const] },
    ),
  )
  .map(([earns, ...conditions]) => Object.assign({ ...earns }, ...conditions) as Rule);
const anyStoreFee = fc
  .constantFrom<Store>('app_store', 'stripe', 'paddle')
  .chain((store) => fc.constantFrom(0, 250, 1_500, 10_000).map((bps) => ({ [store]: bps })));
const anyPolicy: fc.Arbitrary<Policy> = fc.record({
  base: fc.constantFrom('gross', 'net_of_tax', 'proceeds', 'proceeds'),
  assumed: fc.record(
    { taxBps: fc.constantFrom(0, 700, 1_900, 10_000), feeBps: anyStoreFee },
    { requiredKeys: [] },
  ),
  rules: fc.array(anyRule, { minLength: 1, maxLength: 3 }),
});
const anyPolicies: fc.Arbitrary<PolicyOfWorld[]> = fc.array(
  fc.record({
    creator: anyCreator,
    daysAgo: fc.integer({ min: 30, max: 100 }),
    scope: fc.constantFrom<PolicyOfWorld['scope']>('affiliate', 'group', 'app'),
    what: fc.constantFrom<PolicyOfWorld['what']>('policy', 'policy', 'version', 'end'),
    terms: anyPolicy,
  }),
  { maxLength: 4 },
);

/** Policies of both creators with these terms, from before all payments. */
const ofBoth = (terms: Policy): PolicyOfWorld[] =>
  [0, 1].map((creator) => ({ creator, daysAgo: 130, scope: 'affiliate', what: 'policy', terms }));
/** The first payments earn by another rule than later ones. */
const policiesOfFirst: fc.Arbitrary<PolicyOfWorld[]> = fc
  .record({
    base: fc.constantFrom<Policy['base']>('gross', 'net_of_tax', 'proceeds'),
    first: fc
      .tuple(anyEarns, fc.constantFrom(...FIRST, { firstPayments: 2 }))
      .map((rule) => Object.assign({}, ...rule) as Rule),
    rules: fc.array(anyRule, { maxLength: 2 }),
    others: anyPolicies,
  })
  .map(({ base, first, rules, others }) => [
    ...ofBoth({ base, assumed: {}, rules: [first, ...rules] }),
    ...others.slice(0, 1),
  ]);
const ASSUMED_FEES = { app_store: 1_500, stripe: 250, paddle: 500 } as const;
/** Every payment earns a share of what is left of its price. */
const policiesOfComponents: fc.Arbitrary<PolicyOfWorld[]> = fc
  .record({
    base: fc.constantFrom<Policy['base']>('net_of_tax', 'proceeds'),
    percentBps: fc.constantFrom(1_250, 3_333, 5_000),
    assumed: fc.constantFrom(
      {},
      { taxBps: 700, feeBps: ASSUMED_FEES },
      { taxBps: 1_900, feeBps: ASSUMED_FEES },
    ),
  })
  .map(({ base, percentBps, assumed }) => ofBoth({ base, assumed, rules: [{ percentBps }] }));

const anyTerms = fc.record({
  rateBps: fc.oneof(fc.constant(null), fc.constant(null), anyRateBps),
  isPaused: fc.constantFrom(false, false, false, true),
});

/**
 * Whether users are known before or after the payments, or before what arrives late; whether references are tied after them; and whether
 * founders speak before the payments of later moments. Else any order.
 */
type Order = 'any' | 'users first' | 'ties last' | 'users last' | 'users between' | 'founders between';
const ORDERS = ['any', 'users first', 'ties last', 'users last'] as const;

const anyUserTarget = fc.record({ user: anyUser });
interface GiveAway {
  readonly target: Target;
  readonly creator: number | null;
}
const anyGivesAway: fc.Arbitrary<GiveAway[]> = fc.array(
  fc.record({ target: anyTarget, creator: fc.constantFrom(0, 1, 0, 1, null) }),
  { minLength: 1, maxLength: 4 },
);
/** The phone belongs to one creator, a subscription to another one. */
const disagreement: typeof anyGivesAway = fc
  .record({ sale: fc.constantFrom(0, 0, 1), creator: anyCreator })
  .map(({ sale, creator }) => [
    { target: { phone: 0 }, creator },
    { target: { sale }, creator: 1 - creator },
  ]);

interface AboutTheme {
  /** What founders say: of users alone, from an instant on, or of customers, also from now on. */
  readonly target: fc.Arbitrary<Target>;
  readonly givesAway: typeof anyGivesAway;
  readonly installs: typeof anyInstalls;
  readonly policies: typeof anyPolicies;
  /** Users who are identified on a device of another one. */
  readonly sharers: typeof anySharers;
  readonly order: fc.Arbitrary<Order>;
}
const anySharers = fc.array(
  fc.record({ user: fc.constantFrom(0, 1, ORGANIC, ORGANIC, ORGANIC), of: fc.nat(1), device: fc.nat(1) }),
  { maxLength: 4 },
);
const ABOUT_ANY: AboutTheme = {
  target: anyUserTarget,
  givesAway: fc.constant([]),
  installs: anyInstalls,
  policies: anyPolicies,
  sharers: fc.constant([]),
  order: fc.constantFrom(...ORDERS),
};

/** Returns what worlds of a theme have other than the rest. */
function aboutTheme(theme: Theme): AboutTheme {
  switch (theme) {
    case 'exports that are fed back':
      return {
        ...ABOUT_ANY,
        installs: mostlyEarlyInstalls,
        // An export brings payments in an order of its own, which numbers them.
        policies: fc.constant([]),
      };
    case 'customers who are given away':
      return { ...ABOUT_ANY, target: anyTarget, givesAway: anyGivesAway };
    case 'customers who sign in late':
      return {
        ...ABOUT_ANY,
        target: anyTarget,
        givesAway: fc.oneof(anyGivesAway, disagreement),
        order: fc.oneof(fc.constantFrom(...ORDERS), {
          arbitrary: fc.constant('founders between'),
          weight: 3,
        }),
      };
    case 'invoices that are paid in parts':
    case 'invoices that are paid in many parts':
      return {
        ...ABOUT_ANY,
        installs: fc.oneof(anyInstalls, installOfEach(fc.integer({ min: 25, max: 50 }), anyTouch)),
        order: fc.constantFrom(...ORDERS, 'users between', 'users between'),
      };
    case 'payments that two providers report':
      return {
        ...ABOUT_ANY,
        installs: mostlyEarlyInstalls,
        policies: fc.oneof(anyPolicies, policiesOfComponents),
        // Only what was stated before a payment earns counts.
        order: fc.constantFrom(...ORDERS, 'users last', 'users last', 'users last'),
      };
    case 'purchases that are transferred':
      return {
        ...ABOUT_ANY,
        target: anyTarget,
        givesAway: fc.oneof(
          anyGivesAway.map(() => []),
          anyGivesAway,
        ),
        policies: fc.oneof(anyPolicies, { arbitrary: policiesOfFirst, weight: 3 }),
        sharers: anySharers,
        order: fc.constantFrom(...ORDERS, 'users first', 'users first'),
      };
    case 'customers who pay again':
      return {
        ...ABOUT_ANY,
        installs: mostlyEarlyInstalls,
        policies: policiesOfFirst,
        order: fc.constantFrom(...ORDERS, 'users first', 'users first'),
      };
    default:
      return ABOUT_ANY;
  }
}

/**
 * In every second world a user is erased. Several would have random names, whose order decides between two whom events name. None in the
 * many rounds of CI: a difference is looked into where it is played by hand (`MONEY_MODEL_MINUTES`).
 */
const anyErased: fc.Arbitrary<{ readonly user: number; readonly place: number } | null> = isLong
  ? fc.constant(null)
  : fc.option(fc.record({ user: anyUser, place: fc.nat() }), { freq: 1 });

/** Generates a world about a theme. */
export const worldAbout = (theme: Theme) =>
  fc
    .record({
      sales: SALES[theme] as fc.Arbitrary<Sale[]>,
      installs: aboutTheme(theme).installs,
      firstTerms: fc.tuple(anyTerms, anyTerms),
      rates: fc.array(fc.record({ creator: anyCreator, rateBps: fc.option(anyRateBps) }), { maxLength: 2 }),
      pauses: fc.array(fc.record({ creator: anyCreator, isPaused: fc.boolean() }), { maxLength: 2 }),
      pays: fc.array(anyCreator, { maxLength: 3 }),
      entries: fc.array(fc.record({ creator: anyCreator, cents: anyEntryCents }), { maxLength: 3 }),
      undos: fc.array(fc.nat(2), { maxLength: 2 }),
      policies: aboutTheme(theme).policies,
      sharers: aboutTheme(theme).sharers,
      gives: fc.array(
        fc.record({
          target: aboutTheme(theme).target,
          creator: anyCreator,
          daysAgo: fc.integer({ min: 20, max: 100 }),
        }),
        { maxLength: 2 },
      ),
      givesAway: aboutTheme(theme).givesAway,
      erased: anyErased,
      repeats: fc.array(fc.nat(), { maxLength: 3 }),
      order: aboutTheme(theme).order,
      keys: fc.array(fc.nat(), { minLength: 80, maxLength: 80 }),
    })
    // The rate of an invoice that is paid in parts is that of the day on which its earning is written, for each part.
    .map((world) =>
      world.sales.some(({ kind }) => kind === 'split')
        ? { ...world, rates: [], pauses: [], policies: [] }
        : world,
    );
export type World = ReturnType<typeof worldAbout> extends fc.Arbitrary<infer T> ? T : never;

function storyOf(sale: Sale, context: SaleContext): SaleStep[] {
  if (sale.kind === 'split') return splitStory(sale, context);
  if (sale.kind === 'exported') return exportedStory(sale, context);
  if (sale.kind === 'customer') return customerStory(sale, context);
  const story = { stripe: plainStory, paddle: paddleStory, revenuecat: revenuecatStory }[sale.provider];
  return story(sale, context);
}

/** Returns all steps of a world in its order. `run` is unique. */
export function stepsOf(world: World, run: string): Step[] {
  const userId = (user: number) => `user-${run}-${user}`;
  const now = Math.floor(Date.now() / 1000) * 1000;
  const stories = world.sales.map((sale, n) => storyOf(sale, { name: `${run}${n}`, run, userId, now }));
  const facts = stories.flatMap((steps, sale) => steps.map((step) => ({ step, sale })));
  const events = facts.filter(({ step }) => step.do === 'event' || step.do === 'event now');
  const repeats = world.repeats.flatMap((n) => events[n % Math.max(1, events.length)] ?? []);
  const others: readonly Step[] = [
    ...world.installs.flatMap((install): Step[] => [
      { do: 'install', ...install },
      { do: 'identify', user: install.user, device: install.device },
    ]),
    ...world.sharers.map((sharer): Step => ({ do: 'identify', ...sharer })),
    ...world.rates.map((rate): Step => ({ do: 'rate', ...rate })),
    ...world.pauses.map((pause): Step => ({ do: 'pause', ...pause })),
    ...world.pays.map((creator): Step => ({ do: 'pay', creator })),
    ...world.entries.map((entered, entry): Step => ({ do: 'enter', entry, ...entered })),
    ...world.undos.map((entry): Step => ({ do: 'undo', entry })),
    ...world.gives.map((give): Step => ({ do: 'give', ...give })),
    ...world.givesAway.map((give): Step => ({ do: 'give away', ...give })),
  ];
  const all: readonly Placed[] = [...others.map((step) => ({ step, sale: null })), ...facts, ...repeats];
  const keyed = all.map((placed, n) => {
    const key = world.keys[n % world.keys.length] ?? 0;
    return { ...placed, key, n, part: partOf(placed.step, world.order, key) };
  });
  const inOrder = keyed.toSorted((a, b) => a.part - b.part || a.key - b.key || a.n - b.n);
  return [
    ...world.firstTerms.flatMap(({ rateBps, isPaused }, creator): Step[] => [
      { do: 'rate', creator, rateBps },
      ...(isPaused ? [{ do: 'pause' as const, creator, isPaused }] : []),
    ]),
    ...world.policies.map((policy): Step => ({ do: 'policy', ...policy })),
    ...withErasure(byStage(inOrder), world.erased),
    { do: 'pay', creator: 0 },
    { do: 'pay', creator: 1 },
  ];
}

/** Adds the erasure of a user behind what apps and founders say of users: an erased one cannot be named again, other than by providers. */
function withErasure(steps: readonly Step[], erased: World['erased']): readonly Step[] {
  if (erased === null) return steps;
  const SAYS: readonly Step['do'][] = ['install', 'identify', 'give', 'give away'];
  const first = steps.findLastIndex((step) => SAYS.includes(step.do)) + 1;
  const place = first + (erased.place % (steps.length - first + 1));
  return steps.toSpliced(place, 0, { do: 'erase', user: erased.user });
}

interface Placed {
  readonly step: Step;
  /** The number of its sale. */
  readonly sale: number | null;
}

const stageOf = (step: Step) => ('stage' in step ? (step.stage ?? null) : null);

/** Exchanges the places of the staged steps of each sale, so that they have the order of their stages. */
function byStage(inOrder: readonly Placed[]): Step[] {
  const steps = inOrder.map(({ step }) => step);
  for (const sale of new Set(inOrder.flatMap((placed) => placed.sale ?? []))) {
    const places = inOrder.flatMap((placed, place) =>
      placed.sale === sale && stageOf(placed.step) !== null ? [place] : [],
    );
    const staged = places.flatMap((place) => inOrder[place]?.step ?? []);
    const sorted = staged.toSorted((a, b) => (stageOf(a) ?? 0) - (stageOf(b) ?? 0));
    for (const [n, place] of places.entries()) steps[place] = sorted[n] ?? { do: 'pay', creator: 0 };
  }
  return steps;
}

/** Returns the part of the sequence that a step belongs to. */
function partOf(step: Step, order: Order, key: number): number {
  if (order === 'any') return 0;
  if (order === 'users between') {
    if (step.do === 'install' || step.do === 'identify') return 1;
    return stageOf(step) === 1 ? 2 : 0;
  }
  if (order === 'founders between') {
    if (step.do === 'give' || step.do === 'give away') return 1;
    return step.do === 'moment' || step.do === 'event now' ? 2 : 0;
  }
  if (step.do === 'install' || step.do === 'identify') return order === 'users last' ? 2 : 0;
  if (order !== 'ties last' || step.do !== 'event' || step.report.payment !== undefined) return 1;
  return step.report.take !== undefined && key % 2 === 0 ? 1 : 2;
}
