import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { cpus, loadavg, tmpdir, totalmem } from 'node:os';
import path from 'node:path';
import { projectRoot } from '../../src/config/project-root.ts';
import type { Row } from './report.ts';

/**
 * `npm run bench -- [--quick] [--write] [NAME…]`: runs the benchmarks one after another, each in processes of its own, and prints
 * one table. `--quick` runs each for about a second, three at a time, to show that it still works: its figures mean nothing. `--write`
 * replaces the rows of these benchmarks in docs/performance.md. The rows of one benchmark are always of one run.
 */
interface Benchmark {
  readonly what: string;
  /** What makes it run for about a second. */
  readonly quick: Readonly<Record<string, string>>;
}

/** A second of `purchase-rounds.ts`. */
const QUICK_ROUNDS = {
  BENCH_ROUNDS: '1',
  BENCH_ONE_BY_ONE: '3',
  BENCH_SECONDS: '0.2',
  BENCH_WARM_UP: '16',
  BENCH_USERS: '4',
};

const BENCHMARKS: Readonly<Record<string, Benchmark>> = {
  webhook: {
    what: 'signed purchases, next to DBOS, six activities and a bare Temporal shape',
    quick: QUICK_ROUNDS,
  },
  production: {
    what: 'signed purchases on the production Temporal server, next to a bare Temporal shape',
    quick: { ...QUICK_ROUNDS, BENCH_COUNTED: '16' },
  },
  processes: {
    what: 'two and four processes of the service on one database, next to one',
    quick: { BENCH_ROUNDS: '1', BENCH_SECONDS: '0.2', BENCH_WARM_UP: '16' },
  },
  steady: {
    what: 'purchases on a new database, next to the first of them',
    quick: { BENCH_MINUTES: '0.02', BENCH_WINDOWS: '2', BENCH_WARM_UP_MS: '0' },
  },
  'start-up': { what: 'how long a start and the demo take', quick: { BENCH_ROUNDS: '1' } },
  'delivery-sql': {
    what: 'the database part of a delivery, next to one hand-written statement',
    quick: { BENCH_ROUNDS: '1', BENCH_DELIVERIES: '20' },
  },
  clicks: {
    what: 'POST /clicks, next to an ordinary handler',
    quick: { BENCH_ROUNDS: '1', BENCH_SECONDS: '1' },
  },
  'sdk-calls': {
    what: 'POST /sdk/install and /sdk/identify, next to ordinary handlers',
    quick: { BENCH_ROUNDS: '1', BENCH_SECONDS: '0.5' },
  },
  reads: {
    what: 'reads of founders in a large database, next to a small one',
    quick: { BENCH_SMALL: '200', BENCH_CLICKS: '1000', BENCH_COMMISSIONS: '500', BENCH_CALLS: '3' },
  },
  'hold-timers': {
    what: 'what open hold timers cost the Temporal server',
    quick: { BENCH_TIMERS: '100', BENCH_SETTLE_MS: '0' },
  },
  export: {
    what: 'paying due commissions, next to a bare update',
    quick: { BENCH_ROUNDS: '1', BENCH_ROWS: '500' },
  },
  'payouts-scale': {
    what: 'repeated exports while webhooks arrive',
    quick: { SCALE_ROWS: '500', SCALE_IN_FLIGHT: '1' },
  },
  reconcile: { what: 'exports of a provider, compared with a ledger', quick: { BENCH_ROWS: '500' } },
  erasure: { what: 'the erasure of a person beside purchases', quick: { BENCH_ROWS: '500' } },
  'hot-creator': {
    what: 'purchases of one creator beside clicks on its link',
    quick: { BENCH_SECONDS: '1' },
  },
  neighbours: {
    what: 'webhooks of an app beside another app that sends a hundred times as much',
    quick: { BENCH_ROUNDS: '1', BENCH_SECONDS: '0.5', BENCH_USERS: '4', BENCH_NOISES: 'clicks' },
  },
  background: {
    what: 'requests beside due hold timers, folding and heals',
    quick: { BENCH_SCALE: '0.01', BENCH_PARTS: 'holds' },
  },
  'worst-requests': {
    what: 'the worst request of each route without a key',
    quick: { BENCH_REQUESTS: '2', BENCH_ROUTES: '/clicks|/webhooks' },
  },
};

/** Returns how a benchmark is started. One that uses the support of the tests is not compiled by the build. */
const programOf = (name: string) =>
  name === 'background'
    ? ['--import', 'tsx', path.join(projectRoot, `tools/bench/${name}.ts`)]
    : [path.join(projectRoot, `dist/tools/bench/${name}.js`)];

const PEERS = path.join(projectRoot, 'tools/bench/peers');
const PAGE = path.join(projectRoot, 'docs/performance.md');
const [BEGIN, END] = ['<!-- table of npm run bench -->', '<!-- end of the table -->'];

const args = process.argv.slice(2);
const isQuick = args.includes('--quick');
const names = args.filter((argument) => !argument.startsWith('--'));
if (isQuick && args.includes('--write')) throw new Error('--quick measures nothing that could be written');
const unknown = names.filter((name) => !Object.hasOwn(BENCHMARKS, name));
if (unknown.length > 0) {
  throw new Error(
    `unknown benchmark ${unknown.join(', ')}: choose from ${Object.keys(BENCHMARKS).join(', ')}`,
  );
}
const chosen = names.length > 0 ? names : Object.keys(BENCHMARKS);

if (chosen.includes('webhook') && !existsSync(path.join(PEERS, 'node_modules'))) {
  process.stderr.write('Installing what the webhook benchmark is compared with, in tools/bench/peers\n');
  execFileSync('npm', ['ci', '--silent', '--prefix', PEERS], { stdio: 'inherit' });
}

const folder = await mkdtemp(path.join(tmpdir(), 'tributary-bench-'));
const machine =
  `${cpus().length} processors (${cpus()[0]?.model.trim()}), ` +
  `${(totalmem() / 2 ** 30).toFixed(0)} GiB, Node ${process.versions.node}`;
const run = `${new Date().toISOString().slice(0, 10)}, ${machine}`;

function lineOf(benchmark: string, row: string): string {
  const { path: what, comparedWith, measured, target, isReached } = JSON.parse(row) as Row;
  const verdict = isReached === null ? '' : isReached ? 'yes' : '**no**';
  return `| \`${benchmark}\` | ${what} | ${comparedWith} | ${measured} | ${target} | ${verdict} | ${run} |`;
}

const failed: string[] = [];
const linesOf = new Map<string, readonly string[]>();

async function runBenchmark(name: string): Promise<void> {
  const { what, quick } = BENCHMARKS[name] ?? { what: '', quick: {} };
  const begin = performance.now();
  const rowsFile = path.join(folder, name);
  writeFileSync(rowsFile, '');
  const title = `\n${name}: ${what} (load ${loadavg()[0]?.toFixed(1)})\n`;
  if (!isQuick) process.stdout.write(title);
  const child = spawn(process.execPath, ['--expose-gc', ...programOf(name)], {
    stdio: ['inherit', isQuick ? 'pipe' : 'inherit', isQuick ? 'pipe' : 'inherit'],
    env: { ...process.env, ...(isQuick ? { BENCH_QUICK: '1', ...quick } : {}), BENCH_ROWS_FILE: rowsFile },
  });
  // Beside others, the output of each is one piece.
  const output: Buffer[] = [];
  for (const stream of [child.stdout, child.stderr])
    stream?.on('data', (bytes: Buffer) => output.push(bytes));
  const [status] = (await once(child, 'close')) as [number | null];
  if (status !== 0) failed.push(name);
  const rows = readFileSync(rowsFile, 'utf8').split('\n').filter(Boolean);
  linesOf.set(
    name,
    rows.map((row) => lineOf(name, row)),
  );
  if (isQuick) process.stdout.write(title + Buffer.concat(output).toString());
  process.stdout.write(`${name} took ${((performance.now() - begin) / 1000).toFixed(0)} s\n`);
}

/** Benchmarks at a time. Quick ones mean nothing, and spend half of their time waiting. */
const LANES = isQuick ? 3 : 1;
// The last ones take the longest.
const waiting = isQuick ? chosen.toReversed() : [...chosen];
const runLane = async () => {
  for (let name = waiting.shift(); name !== undefined; name = waiting.shift()) await runBenchmark(name);
};
await Promise.all(Array.from({ length: LANES }, runLane));
const lines = chosen.flatMap((name) => linesOf.get(name) ?? []);
await rm(folder, { recursive: true, force: true });

const HEAD =
  '| Benchmark | Path | Compared with, in the same run | Measured | To reach | Reached | Run |\n|---|---|---|---|---|---|---|';
process.stdout.write(`\n${[HEAD, ...lines].join('\n')}\n`);

/** Returns the benchmark of a line of the table, or null for another line. */
const benchmarkOf = (line: string): string | null => /^\| `([a-z-]+)` \|/.exec(line)?.[1] ?? null;

/** Puts the lines of this run into the page, in the order of the benchmarks. Those of benchmarks that did not run or failed stay. */
function writePage(): void {
  const page = readFileSync(PAGE, 'utf8');
  const [begin, end] = [page.indexOf(BEGIN), page.indexOf(END)];
  if (begin < 0 || end < 0) throw new Error(`${PAGE} has no place for the table`);
  const before = page.slice(begin, end).split('\n');
  const ordered = Object.keys(BENCHMARKS).flatMap((name) => {
    const isNew = chosen.includes(name) && !failed.includes(name);
    return (isNew ? lines : before).filter((line) => benchmarkOf(line) === name);
  });
  const table = [HEAD, ...ordered].join('\n');
  writeFileSync(PAGE, `${page.slice(0, begin + BEGIN.length)}\n${table}\n${page.slice(end)}`);
}

if (args.includes('--write')) writePage();
if (failed.length > 0) {
  process.stdout.write(`failed: ${failed.join(', ')}\n`);
  process.exitCode = 1;
}
