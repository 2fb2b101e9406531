import type { Load } from '../load.ts';
import type { PlannedFault } from '../plan.ts';
import type { ServiceProcess } from '../service-process.ts';
import type { Stack } from '../stack.ts';

/** What a fault can reach. */
export interface Surroundings {
  readonly stack: Stack;
  readonly load: Load;
  /** The folder of the run. */
  readonly folder: string;
}

/**
 * Breaks something, and returns how to end the fault. That ends when the surroundings of the service are as before; a
 * process that was started may still be on its way.
 */
export type Fault = (around: Surroundings, planned: PlannedFault) => Promise<() => Promise<void>>;

/** This machine lacks a program or a right that the fault needs. */
export class CannotBeTried extends Error {
  override readonly name = 'CannotBeTried';
}

/** Returns the process that a fault of one process concerns. */
export function processOf(
  { processes }: Pick<Stack, 'processes'>,
  { process: n }: PlannedFault,
): ServiceProcess {
  const one = processes[n % processes.length];
  if (one === undefined) throw new Error('the stack has no process');
  return one;
}

/** Returns a number between both ends, by the strength of the fault. */
export const between = (least: number, most: number, { strength }: PlannedFault): number =>
  Math.round(least + (most - least) * strength);
