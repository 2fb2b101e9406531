import { ratio, report } from './report.ts';
import { sendPurchases, startStack } from './stack.ts';
import type { ProcessorTime, Stack, Subject } from './stack.ts';
import { median, percentile } from './support.ts';

/**
 * `npm run bench -- webhook`: signed purchases that earn, sent to the service and to what it is compared with, in turns, on one
 * Postgres and one Temporal server.
 */
const ROUNDS = Number(process.env['BENCH_ROUNDS'] ?? 5);
const ONE_BY_ONE = Number(process.env['BENCH_ONE_BY_ONE'] ?? 150);
const SECONDS = Number(process.env['BENCH_SECONDS'] ?? 6);
const WARM_UP = Number(process.env['BENCH_WARM_UP'] ?? 300);
const USERS = Number(process.env['BENCH_USERS'] ?? 200);
const IN_FLIGHT = 16;

interface Figures {
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** Purchases per second with 16 in flight, counted until the work behind the answers is done. */
  readonly perSecond: number;
  /** Processor time per purchase with 16 in flight. */
  readonly cpuMs: ProcessorTime;
  readonly pending: number;
}

async function measure(stack: Stack, subject: Subject): Promise<Figures> {
  await subject.settled();
  const single = await sendPurchases([subject], 1, (sent) => sent >= ONE_BY_ONE);
  const sorted = single.times.toSorted((a, b) => a - b);
  await subject.settled();
  const before = stack.processorTime(subject);
  const begin = performance.now();
  const many = await sendPurchases([subject], IN_FLIGHT, () => performance.now() - begin > SECONDS * 1000);
  await subject.settled();
  const seconds = (performance.now() - begin) / 1000;
  const after = stack.processorTime(subject);
  const count = many.times.length;
  return {
    p50Ms: percentile(sorted, 0.5),
    p99Ms: percentile(sorted, 0.99),
    perSecond: count / seconds,
    cpuMs: {
      node: (after.node - before.node) / count,
      temporal: (after.temporal - before.temporal) / count,
      postgres: (after.postgres - before.postgres) / count,
    },
    pending: single.pending + many.pending,
  };
}

const ms = (value: number) => `${value.toFixed(1)} ms`;
const rate = (value: number) => `${value.toFixed(0)}/s`;

function describe(name: string, { p50Ms, p99Ms, perSecond, cpuMs, pending }: Figures): string {
  return (
    `${name}: p50 ${ms(p50Ms)}, p99 ${ms(p99Ms)}; ${IN_FLIGHT} in flight: ${rate(perSecond)}, processor time per purchase: ` +
    `Node ${ms(cpuMs.node)}, Temporal ${ms(cpuMs.temporal)}, Postgres ${ms(cpuMs.postgres)}; ${pending} answers without a commission`
  );
}

async function run(stack: Stack): Promise<void> {
  const databases = {
    tributary: await stack.createDatabase('with_timers'),
    sweep: await stack.createDatabase('with_sweep'),
    oneCreator: await stack.createDatabase('one_creator'),
    policy: await stack.createDatabase('with_policy'),
  };
  const shared = { creators: USERS, users: USERS };
  const tributary = await stack.startTributary({
    name: 'Tributary',
    databaseUrl: databases.tributary,
    ...shared,
  });
  const sweep = await stack.startTributary({
    name: 'Tributary with HOLD_TIMERS=sweep',
    databaseUrl: databases.sweep,
    environment: { HOLD_TIMERS: 'sweep' },
    ...shared,
  });
  const oneCreator = await stack.startTributary({
    name: 'Tributary, all users of one creator',
    databaseUrl: databases.oneCreator,
    ...shared,
    creators: 1,
  });
  const policy = await stack.startTributary({
    name: 'Tributary, an app with a policy',
    databaseUrl: databases.policy,
    ...shared,
    hasPolicy: true,
  });
  const dbos = await stack.startDbos(tributary.users);
  const six = await stack.startTemporal('six', tributary.users);
  const bare = await stack.startTemporal('bare', tributary.users);

  const subjects = [policy, tributary, sweep, oneCreator, dbos, six, bare];
  for (const subject of subjects) await sendPurchases([subject], IN_FLIGHT, (sent) => sent >= WARM_UP);
  for (const url of Object.values(databases)) await stack.analyze(url);
  const rounds = new Map<Subject, Figures[]>(subjects.map((subject) => [subject, []]));
  for (let round = 1; round <= ROUNDS; round += 1) {
    for (const [subject, all] of rounds) {
      const figures = await measure(stack, subject);
      all.push(figures);
      process.stderr.write(`round ${round} of ${ROUNDS}: ${describe(subject.name, figures)}\n`);
    }
  }

  /** Returns the median of a figure over the rounds. */
  const of = (subject: Subject, figure: (figures: Figures) => number) =>
    median((rounds.get(subject) ?? []).map(figure));
  for (const subject of subjects) {
    const medians: Figures = {
      p50Ms: of(subject, ({ p50Ms }) => p50Ms),
      p99Ms: of(subject, ({ p99Ms }) => p99Ms),
      perSecond: of(subject, ({ perSecond }) => perSecond),
      cpuMs: {
        node: of(subject, ({ cpuMs }) => cpuMs.node),
        temporal: of(subject, ({ cpuMs }) => cpuMs.temporal),
        postgres: of(subject, ({ cpuMs }) => cpuMs.postgres),
      },
      pending: of(subject, ({ pending }) => pending),
    };
    process.stdout.write(`${describe(subject.name, medians)}\n`);
  }

  /** Reports the median of the ratios of two subjects. Each round compares neighbours in time. */
  const compare = (
    path: string,
    [one, other]: readonly [Subject, Subject],
    figure: 'p50Ms' | 'perSecond',
    limit: { readonly atMost: number } | { readonly atLeast: number },
  ) => {
    const others = rounds.get(other) ?? [];
    const ratios = (rounds.get(one) ?? []).map(
      (figures, round) => figures[figure] / (others[round]?.[figure] ?? Number.NaN),
    );
    const value = median(ratios);
    const text = figure === 'p50Ms' ? ms : rate;
    report({
      path,
      comparedWith: other.name,
      measured: `${text(of(one, (figures) => figures[figure]))} against ${text(of(other, (figures) => figures[figure]))}: ${ratio(value)}`,
      target: 'atMost' in limit ? `at most ${limit.atMost}` : `at least ${limit.atLeast}`,
      isReached: 'atMost' in limit ? value <= limit.atMost : value >= limit.atLeast,
    });
  };
  compare('webhook, 1 in flight, p50', [tributary, dbos], 'p50Ms', { atMost: 0.8 });
  compare('webhook, 1 in flight, p50', [tributary, six], 'p50Ms', { atMost: 0.1 });
  compare('webhook, 16 in flight, with its hold timers', [tributary, bare], 'perSecond', { atLeast: 0.9 });
  compare('webhook, 16 in flight, with its hold timers', [tributary, dbos], 'perSecond', { atLeast: 0.7 });
  compare('webhook, 16 in flight, `HOLD_TIMERS=sweep`', [sweep, dbos], 'perSecond', { atLeast: 0.9 });
  compare('webhooks of one creator, 16 in flight', [oneCreator, tributary], 'perSecond', { atLeast: 0.9 });
  compare('webhook of an app with a policy, 1 in flight, p50', [policy, tributary], 'p50Ms', { atMost: 1.1 });
  compare('webhook of an app with a policy, 16 in flight', [policy, tributary], 'perSecond', {
    atLeast: 0.9,
  });
}

const stack = await startStack();
try {
  await run(stack);
} finally {
  await stack.stop();
}
