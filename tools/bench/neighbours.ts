import { setTimeout as sleep } from 'node:timers/promises';
import { startNoise } from './noise.ts';
import type { Noise, NoiseFigures } from './noise.ts';
import { ratio, report } from './report.ts';
import { sendPurchases, startStack } from './stack.ts';
import type { Stack, TributarySubject } from './stack.ts';
import { createBenchApp, median, percentile } from './support.ts';

/**
 * `npm run bench -- neighbours`: webhooks of a quiet app, which has one in flight, without and with a noisy app that has more than a
 * hundred times as many calls in flight and sends the next one whenever one is answered or refused. The limits of admission are those of an
 * installation; the limits of calls per minute are off, so that they do not help.
 */
const ROUNDS = Number(process.env['BENCH_ROUNDS'] ?? 5);
const SECONDS = Number(process.env['BENCH_SECONDS'] ?? 10);
/** Users of each app. */
const USERS = Number(process.env['BENCH_USERS'] ?? 40);
/** As many as a process works on and lets wait: 32 webhooks, and four times as many. */
const NOISY_IN_FLIGHT = Number(process.env['BENCH_NOISY_IN_FLIGHT'] ?? 160);
/** `BENCH_NOISES=webhooks,clicks,calls of its SDK` chooses some. */
const KINDS = (process.env['BENCH_NOISES'] ?? '').split(',').filter((kind) => kind !== '');
/** How much slower the slowest percent of the quiet app's webhooks may become. */
const MOST_RATIO = 2;
/** Until then the noise has all the places that it gets, ms. */
const FILL_MS = Math.min(1_500, SECONDS * 1_000);
/** The pause behind a noise, for calls that are still in progress, ms. */
const SETTLE_MS = Math.min(2_000, SECONDS * 1_000);

interface Figures {
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly pending: number;
}

interface Round {
  readonly alone: Figures;
  readonly beside: Figures;
  readonly noise: NoiseFigures;
}

/** Sends purchases of the quiet app one after the other. Throws when one is refused. */
async function quiet(subject: TributarySubject, seconds = SECONDS): Promise<Figures> {
  const endsAt = performance.now() + seconds * 1_000;
  const { times, pending } = await sendPurchases([subject], 1, () => performance.now() > endsAt);
  const sorted = times.toSorted((a, b) => a - b);
  return { p50Ms: percentile(sorted, 0.5), p99Ms: percentile(sorted, 0.99), pending };
}

async function measure(subject: TributarySubject, noise: Noise): Promise<Round> {
  const alone = await quiet(subject);
  const { stop } = await startNoise(noise);
  await sleep(FILL_MS);
  const beside = await quiet(subject);
  const figures = await stop();
  await subject.settled();
  await sleep(SETTLE_MS);
  return { alone, beside, noise: figures };
}

function reportRounds(kind: string, rounds: readonly Round[]): void {
  const of = (value: (round: Round) => number) => median(rounds.map(value));
  const times = of(({ alone, beside }) => beside.p99Ms / alone.p99Ms);
  const p50Times = of(({ alone, beside }) => beside.p50Ms / alone.p50Ms);
  const p50 = `p50 ${of(({ beside }) => beside.p50Ms).toFixed(0)} against ${of(({ alone }) => alone.p50Ms).toFixed(0)} ms: ${ratio(p50Times)}`;
  const noise = `${of(({ noise: one }) => one.answeredPerSecond).toFixed(0)}/s of the other are answered and ${of(({ noise: one }) => one.refusedPerSecond).toFixed(0)}/s refused`;
  const pending = rounds.reduce((sum, { beside }) => sum + beside.pending, 0);
  report({
    path: `webhooks of an app, 1 in flight, beside ${NOISY_IN_FLIGHT} ${kind} in flight of another app, p99`,
    comparedWith: 'without the other app',
    measured: `${of(({ beside }) => beside.p99Ms).toFixed(0)} ms against ${of(({ alone }) => alone.p99Ms).toFixed(0)} ms: ${ratio(times)}; ${p50}; ${noise}; ${pending} pending`,
    target: `at most ${MOST_RATIO}`,
    isReached: times <= MOST_RATIO,
  });
}

async function run(stack: Stack): Promise<void> {
  const databaseUrl = await stack.createDatabase('neighbours');
  const subject = await stack.startTributary({ name: 'quiet app', databaseUrl, creators: 2, users: USERS });
  const noisy = await createBenchApp(subject.base, subject.key, { creators: 2, users: USERS });
  await stack.analyze(databaseUrl);
  const to = { port: subject.port, inFlight: NOISY_IN_FLIGHT };
  const headers = { authorization: `Bearer ${noisy.sdkKey}` };
  const slug = noisy.slugs[0];
  const all: Readonly<Record<string, Noise>> = {
    webhooks: {
      ...to,
      path: `/webhooks/stripe/${noisy.appId}`,
      calls: { kind: 'purchases', secret: noisy.stripeSecret, users: noisy.users },
    },
    clicks: {
      ...to,
      path: '/clicks',
      calls: { kind: 'json', fields: { customerAppId: noisy.appId, slug, claimToken: '#uuid' } },
    },
    'calls of its SDK': {
      ...to,
      path: '/sdk/install',
      calls: {
        kind: 'json',
        fields: { deviceId: 'noisy-#uuid', affiliateCode: slug, firstOpenAt: Date.now() },
        headers,
      },
    },
  };
  const noises = Object.fromEntries(
    Object.entries(all).filter(([kind]) => KINDS.length === 0 || KINDS.includes(kind)),
  );
  await quiet(subject, Math.min(SECONDS, 3));
  const rounds = Object.keys(noises).map((): Round[] => []);
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const [nth, noise] of Object.values(noises).entries())
      rounds[nth]?.push(await measure(subject, noise));
  }
  for (const [nth, kind] of Object.keys(noises).entries()) reportRounds(kind, rounds[nth] ?? []);
}

const stack = await startStack();
try {
  await run(stack);
} finally {
  await stack.stop();
}
