import type { PlannedFault } from '../plan.ts';
import type { FaultyProxy, ProxyMode } from '../proxy.ts';
import type { Stack } from '../stack.ts';
import { between } from './fault.ts';
import type { Fault } from './fault.ts';

/** Lets a proxy treat what passes in another way for a while. */
const onWire =
  (
    name: keyof Stack['proxies'],
    mode: (planned: PlannedFault) => ProxyMode,
    whenMended?: (stack: Stack) => Promise<void>,
  ): Fault =>
  async ({ stack }, planned) => {
    const proxy: FaultyProxy = stack.proxies[name];
    proxy.set(mode(planned));
    return async () => {
      // Connections of a silent time never speak again.
      proxy.set({ kind: 'forward' });
      await whenMended?.(stack);
    };
  };

export const WIRE_FAULTS = {
  'database cut': onWire('database', () => ({ kind: 'cut' })),
  'database silent': onWire('database', () => ({ kind: 'silent' })),
  'database slow': onWire('database', (planned) => ({ kind: 'slow', delayMs: between(20, 150, planned) })),
  'statements cut': onWire('database', (planned) => ({ kind: 'drop', share: between(1, 8, planned) / 100 })),
  'answers swallowed': onWire('database', (planned) => ({
    kind: 'swallow',
    share: between(1, 8, planned) / 100,
    delayMs: between(0, 1_500, planned),
  })),
  'Temporal cut': onWire('temporal', () => ({ kind: 'cut' })),
  'Temporal silent': onWire('temporal', () => ({ kind: 'silent' })),
  'Temporal slow': onWire('temporal', (planned) => ({ kind: 'slow', delayMs: between(20, 200, planned) })),
  'mail server cut': onWire('mail', () => ({ kind: 'cut' })),
  'Temporal without database': onWire(
    'temporalDatabase',
    () => ({ kind: 'cut' }),
    async ({ temporal }) => {
      await temporal.revive();
    },
  ),
} as const satisfies Readonly<Record<string, Fault>>;
