import { DAY_MS } from '../domain/time.ts';

/** The most callers that are remembered. The one that was accepted longest ago is forgotten first. */
const MAX_CALLERS = 10_000;

/** Callers that were accepted within a day. Only an accepted one is added, so a flood cannot fill the memory. */
export interface KnownCallers {
  readonly add: (caller: string, now: number) => void;
  readonly has: (caller: string, now: number) => boolean;
  readonly forget: (caller: string) => void;
  /** The look-ups in progress of callers that are not remembered, at most one for each. */
  readonly lookUps: Map<string, Promise<unknown>>;
}

/** Creates the memory of a process. */
export function createKnownCallers(): KnownCallers {
  const acceptedAt = new Map<string, number>();
  return {
    add: (caller, now) => {
      acceptedAt.delete(caller);
      acceptedAt.set(caller, now);
      if (acceptedAt.size <= MAX_CALLERS) return;
      // Only beyond the limit: a walk begins with all that were deleted.
      const [oldest] = acceptedAt.keys();
      if (oldest !== undefined) acceptedAt.delete(oldest);
    },
    has: (caller, now) => now - (acceptedAt.get(caller) ?? Number.NEGATIVE_INFINITY) < DAY_MS,
    forget: (caller) => void acceptedAt.delete(caller),
    lookUps: new Map(),
  };
}
