import { runRounds, USERS } from './purchase-rounds.ts';
import { startStack } from './stack.ts';
import type { Stack } from './stack.ts';

/**
 * `npm run bench -- webhook`: signed purchases that earn, sent to the service and to what it is compared with, in turns, on one
 * Postgres and one Temporal server.
 */
async function run(stack: Stack): Promise<void> {
  const databases = {
    tributary: await stack.createDatabase('with_timers'),
    sweep: await stack.createDatabase('with_sweep'),
    oneCreator: await stack.createDatabase('one_creator'),
    policy: await stack.createDatabase('with_policy'),
  };
  const shared = { creators: USERS, users: USERS };
  const tributary = await stack.startTributary({
    name: 'Tributary',
    databaseUrl: databases.tributary,
    ...shared,
  });
  const sweep = await stack.startTributary({
    name: 'Tributary with HOLD_TIMERS=sweep',
    databaseUrl: databases.sweep,
    environment: { HOLD_TIMERS: 'sweep' },
    ...shared,
  });
  const oneCreator = await stack.startTributary({
    name: 'Tributary, all users of one creator',
    databaseUrl: databases.oneCreator,
    ...shared,
    creators: 1,
  });
  const policy = await stack.startTributary({
    name: 'Tributary, an app with a policy',
    databaseUrl: databases.policy,
    ...shared,
    hasPolicy: true,
  });
  const dbos = await stack.startDbos(tributary.users);
  const six = await stack.startTemporal('six', tributary.users);
  const bare = await stack.startTemporal('bare', tributary.users);

  const subjects = [policy, tributary, bare, sweep, oneCreator, dbos, six];
  const compare = await runRounds(stack, subjects, Object.values(databases));
  compare('webhook, 1 in flight, p50', [tributary, dbos], 'p50Ms', { atMost: 0.8 });
  compare('webhook, 1 in flight, p50', [tributary, six], 'p50Ms', { atMost: 0.1 });
  compare('webhook, 1 in flight, p50', [tributary, bare], 'p50Ms', { atMost: 1.3 });
  compare('webhook, 16 in flight, with its hold timers', [tributary, bare], 'perSecond', { atLeast: 0.75 });
  compare('webhook, 16 in flight, with its hold timers', [tributary, dbos], 'perSecond', { atLeast: 0.7 });
  compare('webhook, 16 in flight, `HOLD_TIMERS=sweep`', [sweep, dbos], 'perSecond', { atLeast: 0.9 });
  compare('webhooks of one creator, 16 in flight', [oneCreator, tributary], 'perSecond', { atLeast: 0.9 });
  compare('webhook of an app with a policy, 1 in flight, p50', [policy, tributary], 'p50Ms', { atMost: 1.1 });
  compare('webhook of an app with a policy, 16 in flight', [policy, tributary], 'perSecond', {
    atLeast: 0.9,
  });
}

const stack = await startStack();
try {
  await run(stack);
} finally {
  await stack.stop();
}
