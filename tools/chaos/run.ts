import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { loadavg, tmpdir } from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { closeConnections } from './answers.ts';
import { checkAll, payTheRest, settle } from './checks.ts';
import { injectFaults } from './faults.ts';
import type { TriedFault } from './faults.ts';
import { createTenant, Load } from './load.ts';
import { FAULT_KINDS, makePlan, PROCESSES } from './plan.ts';
import type { FaultKind } from './plan.ts';
import { Random } from './random.ts';
import { startStack } from './stack.ts';

/*
 * `npm run chaos -- [--minutes N] [--seed S] [--users-per-second N] [--faults KIND,KIND]`: runs the service, Postgres and
 * the production Temporal server as real processes, sends the events of all providers, and breaks one thing after another
 * meanwhile. The seed decides all of it. At the end nothing may be lost, doubled or different from a separate model.
 */

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '2' },
    seed: { type: 'string', default: String(Date.now() % 100_000) },
    'users-per-second': { type: 'string', default: '3' },
    faults: { type: 'string', default: FAULT_KINDS.join(',') },
    keep: { type: 'boolean', default: false },
  },
});
const SETTLE_LIMIT_MS = 180_000;
const PROGRESS_MS = 5_000;

const startedAt = Date.now();
const say = (line: string) =>
  void process.stderr.write(`${((Date.now() - startedAt) / 1_000).toFixed(0).padStart(4)} s  ${line}\n`);

const faults = values.faults.split(',').filter((name): name is FaultKind => {
  if ((FAULT_KINDS as readonly string[]).includes(name)) return true;
  if (name !== '') throw new Error(`there is no fault "${name}"; the faults are ${FAULT_KINDS.join(', ')}`);
  return false;
});
const plan = makePlan({
  seed: values.seed,
  lastsMs: Number(values.minutes) * 60_000,
  perSecond: Number(values['users-per-second']),
  faults,
});
const facts = plan.stories.flatMap((story) => story.facts);
say(
  `seed ${plan.seed}: ${plan.stories.length} users, ${facts.length} facts, ${plan.exports.length} times several exports, ` +
    `${plan.faults.length} faults; plan ${plan.digest}`,
);

/** Runs the plan. Returns what is wrong at the end. */
async function main(folder: string): Promise<string[]> {
  let phase = 'starts';
  const stack = await startStack({
    folder,
    processes: PROCESSES,
    random: new Random(plan.seed).part('proxies'),
    say,
  });
  let progress: NodeJS.Timeout | undefined;
  try {
    const tenant = await createTenant(stack, plan, folder);
    // Stripe states whole seconds.
    const epoch = Math.floor(Date.now() / 1_000) * 1_000;
    const load = new Load(stack, tenant, epoch);
    progress = setInterval(() => {
      const unavailable = [...load.answers.counts]
        .filter(([name]) => name.endsWith(' 503'))
        .reduce((sum, [, n]) => sum + n, 0);
      say(
        `${phase}: ${load.answers.bad.length} problems, ${load.accepted} of ${facts.length} facts, ${load.waiting} wait, ${load.payouts.length} exports, ` +
          `${load.retries} retries, ${unavailable} times 503, load average ${loadavg()[0]?.toFixed(1)}`,
      );
    }, PROGRESS_MS);

    phase = 'calm';
    const [tried] = await Promise.all([
      injectFaults(stack, plan, (kind) => {
        phase = kind ?? 'calm';
      }),
      load.play(plan),
    ]);
    phase = 'settles';
    const one = { plan, epoch, stack, tenant, load, folder };
    const first = await settle(one, SETTLE_LIMIT_MS);
    for (const problem of load.answers.bad.slice(0, 5)) say(problem);
    say(`every fact was accepted; nothing was left to do after ${(first.tookMs / 1_000).toFixed(1)} s`);
    phase = 'closes';
    await load.play({ stories: plan.closing, exports: [] });
    const second = await settle(one, SETTLE_LIMIT_MS);
    await payTheRest(one);
    const third = await settle(one, SETTLE_LIMIT_MS);
    phase = 'is checked';
    const problems = [first, second, third].flatMap(({ left }) =>
      Object.entries(left).map(
        ([what, n]) => `not finished ${SETTLE_LIMIT_MS / 1_000} s after the last fault: ${n} ${what}`,
      ),
    );
    problems.push(...(await checkAll(one)));
    say(`${tried.length} of ${plan.faults.length} planned faults were tried`);
    tellFaults(tried);
    say(
      `${load.copies} copies, ${load.retries} retries, ${load.payouts.length} exports; ${load.answers.lines()}`,
    );
    const proxies = Object.entries(stack.proxies).map(([name, proxy]) => `${name} ${proxy.broken()}`);
    say(`connections and answers that the proxies broke: ${proxies.join(', ')}`);
    return problems;
  } finally {
    clearInterval(progress);
    closeConnections();
    await stack.stop();
  }
}

/** Prints how often each fault was tried, and how long the recovery took. */
function tellFaults(tried: readonly TriedFault[]): void {
  for (const kind of FAULT_KINDS) {
    const mine = tried.filter((fault) => fault.kind === kind);
    if (mine.length === 0) continue;
    const seconds = mine.reduce((sum, { lastsMs }) => sum + lastsMs, 0) / 1_000;
    const repaired = Math.max(...mine.map(({ repairedInMs }) => repairedInMs)) / 1_000;
    say(
      `${kind}: ${mine.length} times, ${seconds.toFixed(0)} s in all; up again within ${repaired.toFixed(1)} s`,
    );
  }
}

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
