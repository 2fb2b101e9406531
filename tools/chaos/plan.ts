import { createHash } from 'node:crypto';
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../src/domain/time.ts';
import { PROVIDER_NAMES } from '../../src/providers/index.ts';
import type { Currency } from '../../test/support/money-facts.ts';
import type { PlannedEvent, Shape } from './events.ts';
import { KINDS } from './fault-kinds.ts';
import type { FaultKind } from './fault-kinds.ts';
import { Random } from './random.ts';

/* What a run does, all of it decided by the seed before the first request. Times are ms after the start of the run. */

export const HOLD_DAYS = 30;
export const WINDOW_DAYS = 60;

/** What a creator earns, in basis points. A paused one earns nothing. */
export interface PlannedCreator {
  readonly slug: string;
  readonly rateBps: number;
  readonly isPaused: boolean;
}

/** One request that must be accepted at last, however often it is sent. */
export type Fact = {
  /** Unique in the run. */
  readonly id: string;
  readonly sentAt: number;
  /** Facts of the story that must be accepted before. */
  readonly after: readonly string[];
  /** Times at which copies are sent, ms after the first. */
  readonly copies: readonly number[];
  /** Which process is asked first. */
  readonly process: number;
} & (
  | { readonly kind: 'click'; readonly slug: string; readonly token: string; readonly at: number }
  | {
      readonly kind: 'install';
      readonly device: string;
      /** The click that led to it, or null for a code that was entered. */
      readonly token: string | null;
      readonly slug: string;
      readonly at: number;
    }
  | { readonly kind: 'identify'; readonly device: string; readonly user: string }
  | {
      readonly kind: 'event';
      readonly event: PlannedEvent;
      /** How far the provider's clock is from the true time when it signs, ms. */
      readonly skewMs: number;
    }
  | { readonly kind: 'forged'; readonly event: PlannedEvent }
);

/** The facts around one user, which no other story touches. */
export interface Story {
  readonly app: number;
  /** The creator that the first touch leads to. */
  readonly creator: number;
  readonly facts: readonly Fact[];
}

/** Several calls that ask for one creator's payout at the same moment. */
export interface PlannedExport {
  readonly sentAt: number;
  readonly app: number;
  readonly creator: number;
  readonly keys: readonly string[];
}

export interface PlannedFault {
  /** The calm time before it, for the recovery from the one before. */
  readonly pauseMs: number;
  readonly lastsMs: number;
  readonly kind: FaultKind;
  /** Which process, for faults of one. */
  readonly process: number;
  /** How strong, for faults that have a strength; 0 to 1. */
  readonly strength: number;
}

export interface Plan {
  readonly seed: string;
  readonly lastsMs: number;
  /** The creators of each app. */
  readonly apps: readonly (readonly PlannedCreator[])[];
  readonly stories: readonly Story[];
  /** One large purchase for each creator after the faults, so that nobody ends with more paid than earned. */
  readonly closing: readonly Story[];
  readonly exports: readonly PlannedExport[];
  readonly faults: readonly PlannedFault[];
  /** Equal for equal plans. */
  readonly digest: string;
}

export const PROCESSES = 2;
const APPS = 2;
/** The app of the probes, which has one creator. */
export const PROBED_APP = APPS;
/** The app that sends many times its share. */
export const NOISY_APP = APPS + 1;
/** The app that pays many creators bonuses, and whose providers fall silent. */
export const BONUS_APP = APPS + 2;
/** The apps that pay by payout runs, too. */
export const RUN_APPS: readonly number[] = [...Array.from({ length: APPS }, (_, n) => n), BONUS_APP];
const BONUS_CREATORS = 16;
const CREATORS_PER_APP = 5;

/** The creators of an app that pays by runs. */
export const creatorsOfRuns = (app: number): readonly [number, ...number[]] => [
  0,
  ...Array.from({ length: (app === BONUS_APP ? BONUS_CREATORS : CREATORS_PER_APP) - 1 }, (_, n) => n + 1),
];
const EXPORT_EVERY_MS = 3_000;
/** No fault in the last seconds. */
const CALM_END_MS = 5_000;

/** How far the clock that signs may be from the true time: Stripe and Svix allow five minutes, Paddle five seconds. */
const SIGNING_CLOCKS: Readonly<Record<PlannedEvent['provider'], readonly number[]>> = {
  revenuecat: [],
  adapty: [],
  superwall: [-200_000, 200_000],
  stripe: [-200_000, 200_000],
  paddle: [3_000],
};

function planCreators(random: Random): PlannedCreator[] {
  return Array.from({ length: CREATORS_PER_APP }, (_, n) => ({
    slug: `creator-${n}`,
    rateBps: random.pick([333, 1_250, 2_000, 3_333, 5_000]),
    // The last one earns nothing.
    isPaused: n === CREATORS_PER_APP - 1,
  }));
}

/** Plans one user: touches, install, identify in any order with the payments, and what becomes of the payments. */
function planStory(random: Random, name: string, startsAt: number, lastsMs: number): Story {
  const app = random.int(0, APPS - 1);
  const creator = random.int(0, CREATORS_PER_APP - 1);
  const slug = `creator-${creator}`;
  const user = `user-${name}`;
  const facts: Fact[] = [];
  const spread = () => startsAt + random.int(0, Math.max(0, Math.min(25_000, lastsMs - startsAt)));
  const add = (id: string, over: { after?: readonly string[]; sentAt?: number } = {}) => ({
    id: `${name}/${id}`,
    sentAt: over.sentAt ?? spread(),
    after: (over.after ?? []).map((other) => `${name}/${other}`),
    copies: random.chance(0.3)
      ? Array.from({ length: random.int(1, 2) }, () => random.pick([0, 0, 40, 3_000, 20_000]))
      : [],
    process: random.int(0, PROCESSES - 1),
  });
  const uuid = () =>
    createHash('sha256')
      .update(`${name}/${random.next()}`)
      .digest('hex')
      .slice(0, 32)
      .replace(/^(.{8})(.{4}).(.{3}).(.{3})(.{12})$/, '$1-$2-4$3-8$4-$5');

  // --- The user ---
  // The clock of the store is behind that of the phone: the payment seems older than the touch that led to it.
  const isSkewed = random.chance(0.1);
  const touchedAt = -random.int(46, 55) * DAY_MS;
  const device = `device-${name}`;
  const isKnown = random.chance(0.9);
  const isIdentifyFirst = isSkewed || random.chance(0.4);
  const token = random.chance(0.6) ? uuid() : null;
  if (token !== null)
    facts.push({ ...add('click', { sentAt: startsAt }), kind: 'click', slug, token, at: touchedAt });
  facts.push({
    ...add('install', { sentAt: startsAt, after: token === null ? [] : ['click'] }),
    kind: 'install',
    device,
    token,
    slug,
    at: touchedAt + (token === null ? 0 : random.pick([0, 1_000, 5 * MINUTE_MS])),
  });
  if (random.chance(0.15))
    // A second creator comes too late.
    facts.push({
      ...add('second install', { after: ['install'] }),
      kind: 'install',
      device,
      token: null,
      slug: `creator-${(creator + 1) % CREATORS_PER_APP}`,
      at: touchedAt + HOUR_MS,
    });
  if (isKnown)
    facts.push({
      ...add('identify', { after: ['install'], ...(isIdentifyFirst ? { sentAt: startsAt } : {}) }),
      kind: 'identify',
      device,
      user,
    });
  const first = isIdentifyFirst && isKnown ? ['identify'] : [];

  // --- The payments ---
  const sales = random.pick([1, 1, 2, 3]);
  for (let n = 0; n < sales; n += 1) {
    const provider = random.pick(
      PROVIDER_NAMES as unknown as [PlannedEvent['provider'], ...PlannedEvent['provider'][]],
    );
    const sale = `${name.replaceAll(/\D/g, '')}000${n}`;
    const currency: Currency = provider === 'stripe' ? random.pick(['usd', 'usd', 'eur', 'jpy']) : 'usd';
    const minor = random.chance(0.3) ? random.int(1, 99) : random.int(100, 90_000);
    const at = random.pick([
      // Due long ago; due while the run lasts; not due.
      () => -random.int(31 * DAY_MS, 45 * DAY_MS),
      () => -random.int(31 * DAY_MS, 45 * DAY_MS),
      () => -HOLD_DAYS * DAY_MS + random.int(0, lastsMs),
      () => -random.int(DAY_MS, 20 * DAY_MS),
    ])();
    const sale0 = {
      provider,
      sale,
      minor,
      currency,
      // An event of Paddle does not say that it is of the sandbox.
      isSandbox: random.chance(0.05) && provider !== 'paddle',
      takeId: '',
      at: isSkewed ? touchedAt - 1_000 * random.int(1, 7_200) : Math.floor(at / 1_000) * 1_000,
    };
    let events = 0;
    const addEvent = (shape: Shape, over: Partial<PlannedEvent> = {}, after: readonly string[] = first) => {
      const id = `sale ${n} event ${(events += 1)}`;
      const eventId = `evt_${sale}_${events}`;
      const takeId = over.takeId ?? eventId;
      facts.push({
        ...add(id, { after }),
        kind: 'event',
        event: { ...sale0, shape, eventId, user, ...over, takeId },
        skewMs: random.pick([0, 0, ...SIGNING_CLOCKS[provider]]),
      });
    };
    const hasKeys = provider === 'stripe' || provider === 'paddle';
    // Only the subscription names the user.
    const isNamedByKey = hasKeys && !isSkewed && random.chance(0.2);
    addEvent('purchase', isNamedByKey ? { user: null } : {});
    if (isNamedByKey || (hasKeys && random.chance(0.2))) addEvent('subscription');
    if (provider === 'stripe' && !isSkewed && random.chance(0.3)) addEvent('session');
    const takes = random.pick([0, 0, 1, 1, 2]);
    for (let k = 0; k < takes; k += 1) {
      const part = provider === 'adapty' ? 100 : random.pick([100, 100, 40, 130]);
      const amount = Math.max(1, Math.floor((minor * part) / 100));
      const takeAt = sale0.at + (1 + k * 5) * HOUR_MS;
      const isDispute = (provider === 'stripe' || provider === 'paddle') && random.chance(0.4);
      if (!hasKeys) {
        addEvent('refund', { minor: amount, at: takeAt });
        continue;
      }
      const takeId = `${isDispute ? 'du' : 're'}_${sale}_${k}`;
      const take = { takeId, minor: amount };
      addEvent(isDispute ? 'dispute' : 'refund', { ...take, at: takeAt });
      if (random.chance(0.5))
        addEvent(isDispute ? 'dispute won' : 'refund failed', { ...take, at: takeAt + HOUR_MS });
      if (isDispute && provider === 'stripe' && random.chance(0.3))
        addEvent('dispute lost', { ...take, at: takeAt + 2 * HOUR_MS });
    }
    if (random.chance(0.05))
      facts.push({
        ...add(`forged ${n}`),
        kind: 'forged',
        event: { ...sale0, shape: 'purchase', eventId: `evt_${sale}_forged`, user },
      });
  }
  return { app, creator, facts };
}

/** Plans a user whom a creator has led to the app before the payments. */
export function planKnownUser(name: string, app: number, creator: number): readonly Fact[] {
  const common = { sentAt: 0, copies: [], process: creator };
  const [device, user, slug] = [`device-${name}`, `user-${name}`, `creator-${creator}`];
  return [
    { ...common, id: 'install', after: [], kind: 'install', device, token: null, slug, at: -50 * DAY_MS },
    { ...common, id: 'identify', after: ['install'], kind: 'identify', device, user },
  ];
}

/** Returns a payment of a known user that is due at once. */
export function duePayment(name: string, sale: string, minor: number): PlannedEvent {
  return {
    provider: 'revenuecat',
    shape: 'purchase',
    eventId: `evt_${sale}`,
    sale,
    user: `user-${name}`,
    minor,
    currency: 'usd',
    at: -40 * DAY_MS,
    takeId: '',
    isSandbox: false,
  };
}

function planClosing(app: number, creator: number): Story {
  const name = `closing-${app}-${creator}`;
  const event = duePayment(name, `77${app}${creator}`, 90_000_000);
  const common = { sentAt: 0, copies: [], process: creator, skewMs: 0 };
  const facts = planKnownUser(name, app, creator);
  return {
    app,
    creator,
    facts: [...facts, { ...common, id: 'event', after: ['identify'], kind: 'event', event }],
  };
}

function planExports(random: Random, lastsMs: number): PlannedExport[] {
  return Array.from({ length: Math.floor(lastsMs / EXPORT_EVERY_MS) }, (_, n) => ({
    sentAt: n * EXPORT_EVERY_MS + random.int(0, EXPORT_EVERY_MS),
    app: random.int(0, APPS - 1),
    creator: random.int(0, CREATORS_PER_APP - 1),
    keys: Array.from({ length: random.int(1, 4) }, (__, k) => `export-${n}-${k}`),
  }));
}

/** Plans one fault after another, with pauses. Every kind comes up before one comes up again. */
function planFaults(random: Random, lastsMs: number, kinds: readonly FaultKind[]): PlannedFault[] {
  const faults: PlannedFault[] = [];
  let deck: FaultKind[] = [];
  for (let at = 0; ;) {
    if (deck.length === 0) deck = random.shuffled(kinds);
    const kind = deck.pop();
    const [least, most] = kind === undefined ? [0, 0] : KINDS[kind].lastsMs;
    const fault = {
      pauseMs: random.int(2_000, 8_000),
      lastsMs: random.int(least, most),
      process: random.int(0, PROCESSES - 1),
      strength: random.next(),
    };
    at += fault.pauseMs + fault.lastsMs;
    if (kind === undefined || at > lastsMs - CALM_END_MS) return faults;
    faults.push({ ...fault, kind });
  }
}

/** Plans a run. `perSecond` is the number of new users. */
export function makePlan(settings: {
  readonly seed: string;
  readonly lastsMs: number;
  readonly perSecond: number;
  readonly faults: readonly FaultKind[];
}): Plan {
  const { seed, lastsMs, perSecond } = settings;
  const random = new Random(seed);
  const count = Math.floor((lastsMs / 1_000) * perSecond);
  const starts = random.part('starts');
  const plan = {
    seed,
    lastsMs,
    apps: [
      ...Array.from({ length: APPS }, (_, n) => planCreators(random.part(`app ${n}`))),
      ...[PROBED_APP, NOISY_APP].map(() => [{ slug: 'creator-0', rateBps: 2_000, isPaused: false }]),
      Array.from({ length: BONUS_CREATORS }, (_, n) => ({
        slug: `creator-${n}`,
        rateBps: 2_000,
        isPaused: false,
      })),
    ],
    stories: Array.from({ length: count }, (_, n) =>
      planStory(random.part(`story ${n}`), `s${n}`, starts.int(0, lastsMs), lastsMs),
    ),
    closing: Array.from({ length: APPS * CREATORS_PER_APP }, (_, n) =>
      planClosing(Math.floor(n / CREATORS_PER_APP), n % CREATORS_PER_APP),
    ),
    exports: planExports(random.part('exports'), lastsMs),
    faults: planFaults(random.part('faults'), lastsMs, settings.faults),
  };
  const digest = createHash('sha256').update(JSON.stringify(plan)).digest('hex').slice(0, 12);
  return { ...plan, digest };
}
