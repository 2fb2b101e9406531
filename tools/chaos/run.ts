import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { availableParallelism, loadavg, tmpdir } from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { closeConnections } from './answers.ts';
import { checkAll, describeRuns, endAlerts, payTheRest, settle } from './checks.ts';
import type { Run } from './checks.ts';
import { startBusyProcesses } from './busy.ts';
import { FAULT_KINDS, kindsOfRun } from './fault-kinds.ts';
import type { FaultKind } from './fault-kinds.ts';
import { injectFaults } from './faults.ts';
import { startListeners, subscribe } from './listeners.ts';
import { createTenant, Load } from './load.ts';
import { checkLogs } from './logs.ts';
import { foundersOf } from './payout-runs.ts';
import { makePlan, PROCESSES, RUN_APPS } from './plan.ts';
import { Probes } from './probes.ts';
import { Random } from './random.ts';
import { faultProblems, faultTable } from './report.ts';
import { Silences } from './silences.ts';
import { startStack } from './stack.ts';

/*
 * `npm run chaos -- [--minutes N] [--seed S] [--users-per-second N] [--faults KIND,KIND] [--load] [--recovery-seconds N]`:
 * runs the service, Postgres and the production Temporal server as real processes, sends the events of all providers, and
 * breaks one thing after another meanwhile. The seed decides all of it. While a fault lasts, the service must say what is
 * wrong; after it, each process must be back within 10 s. At the end nothing may be lost, doubled or different from a
 * separate model. A run of five minutes or more tries all kinds of faults, a shorter one those that need nothing besides.
 * `--load` keeps all processors busy with other work.
 */

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '2' },
    seed: { type: 'string', default: String(Date.now() % 100_000) },
    'users-per-second': { type: 'string', default: '3' },
    faults: { type: 'string' },
    load: { type: 'boolean', default: false },
    'recovery-seconds': { type: 'string', default: '10' },
    keep: { type: 'boolean', default: false },
  },
});
const SETTLE_LIMIT_MS = 180_000;
/** A mail that met a fault three times waits two minutes for its fourth attempt. */
const MESSAGES_LIMIT_MS = 300_000;
const PROGRESS_MS = 5_000;
/** How many wrong answers are printed, when they arrive. */
const PRINTED_PROBLEMS = 20;

const startedAt = Date.now();
const say = (line: string) =>
  void process.stderr.write(`${((Date.now() - startedAt) / 1_000).toFixed(0).padStart(4)} s  ${line}\n`);

const lastsMs = Number(values.minutes) * 60_000;
const named = values.faults?.split(',').filter((name): name is FaultKind => {
  if ((FAULT_KINDS as readonly string[]).includes(name)) return true;
  if (name !== '') throw new Error(`there is no fault "${name}"; the faults are ${FAULT_KINDS.join(', ')}`);
  return false;
});
const plan = makePlan({
  seed: values.seed,
  lastsMs,
  perSecond: Number(values['users-per-second']),
  faults: named ?? kindsOfRun(lastsMs),
});
const facts = plan.stories.flatMap((story) => story.facts);
say(
  `seed ${plan.seed}: ${plan.stories.length} users, ${facts.length} facts, ${plan.exports.length} times several exports, ` +
    `${plan.faults.length} faults; plan ${plan.digest}`,
);

/** Runs the plan. Returns what is wrong at the end. */
async function main(folder: string): Promise<string[]> {
  let phase = 'starts';
  const listeners = await startListeners();
  const stack = await startStack({
    folder,
    processes: PROCESSES,
    random: new Random(plan.seed).part('proxies'),
    // One process writes all that it can.
    environments: [{}, { LOG_LEVEL: 'debug' }],
    // The receivers are on this machine.
    environment: { WEBHOOK_TARGETS: 'any', RATE_LIMIT_REPORTS: '0' },
    mailPort: listeners.mail.port,
    hasDisk: plan.faults.some(({ kind }) => kind === 'disk full'),
    say,
  });
  let progress: NodeJS.Timeout | undefined;
  let printedProblems = 0;
  let probes: Probes | undefined;
  const endLoad = startBusyProcesses(values.load ? availableParallelism() : 0);
  try {
    const tenant = await createTenant(stack, plan, folder);
    // Stripe states whole seconds.
    const epoch = Math.floor(Date.now() / 1_000) * 1_000;
    const load = new Load(stack, tenant, epoch);
    const random = new Random(plan.seed);
    const founders = foundersOf(stack, load, random, RUN_APPS);
    const silences = new Silences(stack, load, random.part('silences'));
    progress = setInterval(() => {
      for (; printedProblems < Math.min(load.answers.bad.length, PRINTED_PROBLEMS); printedProblems += 1) {
        say(load.answers.bad[printedProblems] ?? '');
      }
      const unavailable = [...load.answers.counts]
        .filter(([name]) => name.endsWith(' 503'))
        .reduce((sum, [, n]) => sum + n, 0);
      say(
        `${phase}: ${load.answers.bad.length} problems, ${load.accepted} of ${facts.length} facts, ${load.waiting} wait, ${load.payouts.length} exports, ` +
          `${founders.reduce((sum, { runs }) => sum + runs.length, 0)} runs, ${listeners.mail.received.length} mails, ${silences.ended.length} alerts closed, ` +
          `${load.retries} retries, ${unavailable} times 503, load average ${loadavg()[0]?.toFixed(1)}`,
      );
    }, PROGRESS_MS);

    probes = new Probes(stack, load);
    await probes.complete();
    await subscribe(load, listeners);
    await Promise.all([...founders, silences].map(async (each) => await each.setUp()));
    load.begin();
    const until = Date.now() + lastsMs;
    phase = 'calm';
    const [{ tried, untried }] = await Promise.all([
      injectFaults({ stack, load, folder }, probes, plan, (kind) => {
        phase = kind ?? 'calm';
      }),
      load.play(plan),
      ...[...founders, silences].map(async (each) => await each.play(until)),
    ]);
    phase = 'settles';
    const noise = load.noise === undefined ? [] : [load.noise];
    await Promise.all([load.rest(), probes.complete(), load.play({ stories: noise, exports: [] })]);
    const stories = [...plan.stories, ...plan.closing, ...noise, probes.story, silences.story];
    const one: Run = {
      plan,
      stories,
      epoch,
      stack,
      tenant,
      load,
      founders,
      silences,
      listeners,
      refused: [],
      folder,
    };
    const first = await settle(one, SETTLE_LIMIT_MS);
    say(`every fact was accepted; nothing was left to do after ${(first.tookMs / 1_000).toFixed(1)} s`);
    phase = 'closes';
    await load.play({ stories: plan.closing, exports: [] });
    const second = await settle(one, SETTLE_LIMIT_MS);
    await Promise.all(founders.map(async (founder) => await founder.finish()));
    await payTheRest(one);
    one.refused = await endAlerts(one);
    const third = await settle(one, MESSAGES_LIMIT_MS, true);
    say(await describeRuns(one));
    phase = 'is checked';
    const problems = [first, second, third].flatMap(({ left }) =>
      Object.entries(left).map(
        ([what, n]) => `not finished ${SETTLE_LIMIT_MS / 1_000} s after the last fault: ${n} ${what}`,
      ),
    );
    problems.push(...(await checkAll(one)), ...(await checkLogs(folder)));
    say(`${tried.length} of ${plan.faults.length} planned faults were tried`);
    for (const [kind, reason] of untried) say(`NOT TRIED on this machine: ${kind}: ${reason}`);
    for (const line of faultTable(tried)) say(line);
    problems.push(...faultProblems(tried, Number(values['recovery-seconds']) * 1_000));
    say(
      `${load.copies} copies, ${load.retries} retries, ${load.payouts.length} exports; ${load.answers.lines()}`,
    );
    const proxies = Object.entries(stack.proxies).map(([name, proxy]) => `${name} ${proxy.broken()}`);
    say(`connections and answers that the proxies broke: ${proxies.join(', ')}`);
    return problems;
  } finally {
    clearInterval(progress);
    probes?.close();
    closeConnections();
    await endLoad();
    await stack.stop();
    await listeners.close();
  }
}

for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1));
const folder = await mkdtemp(path.join(tmpdir(), 'tributary-chaos-'));
await chmod(folder, 0o755);
let problems: string[];
try {
  problems = await main(folder);
} catch (error) {
  problems = [error instanceof Error ? (error.stack ?? error.message) : String(error)];
}
if (problems.length > 0) {
  say(`seed ${plan.seed} FAILED, logs and data are in ${folder}:\n${problems.join('\n')}`);
} else {
  if (!values.keep) await rm(folder, { recursive: true, force: true });
  say(`seed ${plan.seed} passed: nothing was lost or doubled, and the ledger equals the model to the cent.`);
}
process.exit(problems.length > 0 ? 1 : 0);
