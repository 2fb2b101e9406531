import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { KINDS } from './fault-kinds.ts';
import type { FaultKind, Sign } from './fault-kinds.ts';
import { DATABASE_FAULTS } from './faults/database.ts';
import { CannotBeTried, processOf } from './faults/fault.ts';
import type { Fault, Surroundings } from './faults/fault.ts';
import { MID_WORK_FAULTS } from './faults/mid-work.ts';
import { POOLER_FAULTS } from './faults/pooler.ts';
import { PRESSURE_FAULTS } from './faults/pressure.ts';
import { PROCESS_FAULTS } from './faults/processes.ts';
import { SERVER_FAULTS } from './faults/servers.ts';
import { WIRE_FAULTS } from './faults/wire.ts';
import type { Plan, PlannedFault } from './plan.ts';
import type { Beat, Probes, Recovery } from './probes.ts';
import { Watch } from './watch.ts';

const FAULTS: Readonly<Record<FaultKind, Fault>> = {
  ...PROCESS_FAULTS,
  ...SERVER_FAULTS,
  ...DATABASE_FAULTS,
  ...WIRE_FAULTS,
  ...POOLER_FAULTS,
  ...PRESSURE_FAULTS,
  ...MID_WORK_FAULTS,
};

/** A fault that was tried. */
export interface TriedFault extends PlannedFault {
  /** Whether it lasted long enough that the service had to say something. */
  readonly wasAsked: boolean;
  /** What the service should have said meanwhile and did not. */
  readonly missing: readonly string[];
  readonly beats: readonly Beat[];
  /** When each process was ready, accepted a webhook and paid an export again. */
  readonly recoveries: readonly Recovery[];
  /** What the same calls took before the fault, ms. */
  readonly calm: readonly Recovery[];
}

/** The history of an export that took longer after a fault is kept, ms. */
const LATE_MS = 10_000;

/** What became of the planned faults. */
export interface TriedFaults {
  readonly tried: readonly TriedFault[];
  /** What this machine can't do, and why. */
  readonly untried: ReadonlyMap<FaultKind, string>;
}

async function tryFault(around: Surroundings, probes: Probes, planned: PlannedFault): Promise<TriedFault> {
  const { stack } = around;
  const says: Sign = KINDS[planned.kind].says;
  const affected = 'at' in says && says.at === 'one process' ? processOf(stack, planned) : undefined;
  const calm = await probes.recover(Date.now());
  const watch = new Watch(stack.processes);
  const beats = probes.beat(() => watch.isOver);
  const end = await FAULTS[planned.kind](around, planned).catch(async (error: unknown) => {
    await watch.end();
    throw error;
  });
  watch.begin();
  await sleep(planned.lastsMs);
  const seen = watch.end();
  await end();
  const endedAt = Date.now();
  const [recoveries] = await Promise.all([
    probes.recover(endedAt),
    ...stack.processes.map(async (one) => await one.whenReady()),
  ]);
  if (recoveries.some(({ exportMs }) => exportMs > LATE_MS)) {
    const file = path.join(
      around.folder,
      `payouts-after-${planned.kind.replaceAll(' ', '-')}-${endedAt}.json`,
    );
    await probes.keepHistory(file).catch(() => {});
  }
  const said = watch.compare({ ...(await seen), says, affected, beats: await beats });
  return { ...planned, ...said, beats: await beats, recoveries, calm };
}

/**
 * Injects the faults of a plan one after another, and waits for the recovery from each before the next. Calls `begun` with
 * each. On a slow machine each takes longer: those that could only begin after the end of the plan are left out.
 */
export async function injectFaults(
  around: Surroundings,
  probes: Probes,
  { faults, lastsMs }: Pick<Plan, 'faults' | 'lastsMs'>,
  begun: (kind: FaultKind | undefined) => void,
): Promise<TriedFaults> {
  const startedAt = Date.now();
  const tried: TriedFault[] = [];
  const untried = new Map<FaultKind, string>();
  for (const planned of faults) {
    await sleep(planned.pauseMs);
    if (Date.now() - startedAt > lastsMs) break;
    begun(planned.kind);
    try {
      tried.push(await tryFault(around, probes, planned));
    } catch (error) {
      if (!(error instanceof CannotBeTried)) throw error;
      untried.set(planned.kind, error.message);
    }
    begun(undefined);
  }
  return { tried, untried };
}
