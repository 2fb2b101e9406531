import { Agent } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { send } from '../answers.ts';
import { startBusyProcesses } from '../busy.ts';
import { duePayment, NOISY_APP } from '../plan.ts';
import type { Fact } from '../plan.ts';
import { between } from './fault.ts';
import type { Fault } from './fault.ts';

/** How many different payments a noisy tenant has. It sends them again and again. */
const NOISY_PAYMENTS = 50;
const PAUSE_AFTER_ERROR_MS = 50;

const noisyPayments = () =>
  Array.from({ length: NOISY_PAYMENTS }, (_, n): Fact => ({
    id: `noise ${n}`,
    sentAt: 0,
    after: [],
    copies: [],
    process: n,
    kind: 'event',
    event: duePayment('noise', `9900${n}`, 999),
    skewMs: 0,
  }));

/** Others use what the service needs. */
export const PRESSURE_FAULTS = {
  'processors starved': async (_, planned) => startBusyProcesses(between(24, 48, planned)),

  'noisy tenant': async ({ stack, load }, planned) => {
    // Webhooks of one app without a pause, also after a refusal, many times its share.
    const agent = new Agent({ keepAlive: true, maxSockets: 1_000 });
    const facts = noisyPayments();
    load.noise = { app: NOISY_APP, creator: 0, facts };
    const until = Date.now() + planned.lastsMs;
    const sendOn = async (n: number) => {
      const target = stack.processes[n % stack.processes.length];
      for (let turn = n; Date.now() < until; turn += 1) {
        const fact = facts[turn % facts.length];
        if (fact === undefined || target === undefined) return;
        const [route, options] = load.requestOf(fact, NOISY_APP);
        const answer = await send(target.base, 'POST', route, { ...options, agent }).catch(() => undefined);
        if (answer !== undefined) load.answers.answered('noise', answer);
        if (answer?.status !== 200) await sleep(PAUSE_AFTER_ERROR_MS);
      }
    };
    const many = between(100, 400, planned);
    const sent = Promise.all(Array.from({ length: many }, async (__, n) => await sendOn(n)));
    return async () => {
      await sent;
      agent.destroy();
    };
  },
} as const satisfies Readonly<Record<string, Fault>>;
