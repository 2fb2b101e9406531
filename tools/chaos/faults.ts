import { setTimeout as sleep } from 'node:timers/promises';
import type { FaultKind, Plan, PlannedFault } from './plan.ts';
import type { Stack } from './stack.ts';

/** Breaks something, and returns how to mend it. */
type Fault = (stack: Stack, planned: PlannedFault) => Promise<() => Promise<void>>;

const process = (stack: Stack, { process: n }: PlannedFault) => {
  const one = stack.processes[n % stack.processes.length];
  if (one === undefined) throw new Error('the stack has no process');
  return one;
};

export const FAULTS: Readonly<Record<FaultKind, Fault>> = {
  'service killed': async (stack, planned) => {
    const one = process(stack, planned);
    await one.end('SIGKILL');
    return async () => {
      await one.start();
      await one.whenReady();
    };
  },
};

/** A fault that was tried. */
export interface TriedFault extends PlannedFault {
  /** How long it took until everything was up again, ms. */
  readonly mendedInMs: number;
}

/** Injects the faults of a plan one after another, and mends each before the next. `begun` is told of each. */
export async function injectFaults(
  stack: Stack,
  { faults }: Pick<Plan, 'faults'>,
  begun: (kind: FaultKind | undefined) => void,
): Promise<TriedFault[]> {
  const startedAt = Date.now();
  const tried: TriedFault[] = [];
  for (const planned of faults) {
    await sleep(Math.max(0, startedAt + planned.startsAt - Date.now()));
    begun(planned.kind);
    const mend = await FAULTS[planned.kind](stack, planned);
    await sleep(planned.lastsMs);
    const mendedFrom = Date.now();
    await mend();
    begun(undefined);
    tried.push({ ...planned, mendedInMs: Date.now() - mendedFrom });
  }
  return tried;
}
