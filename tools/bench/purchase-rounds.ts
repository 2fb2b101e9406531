import { ratio, report } from './report.ts';
import { sendPurchases } from './stack.ts';
import type { ProcessorTime, Stack, Subject } from './stack.ts';
import { median, percentile } from './support.ts';

/*
 * Signed purchases to subjects in turn: one in flight, then sixteen. Neighbours in a round are compared.
 */

const ROUNDS = Number(process.env['BENCH_ROUNDS'] ?? 5);
const ONE_BY_ONE = Number(process.env['BENCH_ONE_BY_ONE'] ?? 150);
const SECONDS = Number(process.env['BENCH_SECONDS'] ?? 6);
const WARM_UP = Number(process.env['BENCH_WARM_UP'] ?? 300);
export const USERS = Number(process.env['BENCH_USERS'] ?? 200);
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

type Compare = (
  path: string,
  subjects: readonly [Subject, Subject],
  figure: 'p50Ms' | 'perSecond',
  limit: { readonly atMost: number } | { readonly atLeast: number },
) => void;

/** Sends purchases to subjects in turn, prints what each took, and returns a function that reports the ratio of two of them. */
export async function runRounds(
  stack: Stack,
  subjects: readonly Subject[],
  databases: readonly string[],
): Promise<Compare> {
  for (const subject of subjects) await sendPurchases([subject], IN_FLIGHT, (sent) => sent >= WARM_UP);
  for (const url of databases) await stack.analyze(url);
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

  return (path, [one, other], figure, limit) => {
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
}
