import { DAY_MS } from '../domain/time.ts';

/** The most senders that are remembered. The one whose last delivery is the oldest is forgotten first. */
const MAX_SENDERS = 10_000;

/**
 * The addresses from which an app received a verified webhook within a day. Only a valid signature adds one, so a flood
 * cannot fill the memory.
 */
export interface KnownSenders {
  readonly add: (sender: string, now: number) => void;
  readonly has: (sender: string, now: number) => boolean;
}

/** Creates the memory of a process. */
export function createKnownSenders(): KnownSenders {
  const lastDeliveries = new Map<string, number>();
  return {
    add: (sender, now) => {
      lastDeliveries.delete(sender);
      lastDeliveries.set(sender, now);
      const [oldest] = lastDeliveries.keys();
      if (lastDeliveries.size > MAX_SENDERS && oldest !== undefined) lastDeliveries.delete(oldest);
    },
    has: (sender, now) => now - (lastDeliveries.get(sender) ?? Number.NEGATIVE_INFINITY) < DAY_MS,
  };
}
