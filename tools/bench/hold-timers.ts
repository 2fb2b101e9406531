import { mkdtemp, readdir, readFile, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Client, Connection } from '@temporalio/client';
import { pino } from 'pino';
import { openBackends } from '../../src/backends.ts';
import { readConfig } from '../../src/config/config.ts';
import { newId } from '../../src/db/new-id.ts';
import { DAY_MS } from '../../src/domain/time.ts';
import { createWorkflowStarter } from '../../temporal/workflow-starter.ts';
import { processesWith, processorTimeMs } from './processor-time.ts';
import { report } from './report.ts';

/**
 * `npm run bench -- hold-timers`: what open hold timers cost the built-in Temporal server: processor time, memory and disk for
 * each, as the service starts them.
 */
const TIMERS = Number(process.env['BENCH_TIMERS'] ?? 100_000);
const KIB = 1024;
/** How long the server may take for the work that follows the last start. */
const SETTLE_MS = Number(process.env['BENCH_SETTLE_MS'] ?? 10_000);

const dataDir = await mkdtemp(path.join(tmpdir(), 'tributary-bench-'));
const backends = await openBackends(
  readConfig({ LOG_LEVEL: 'error', DATA_DIR: dataDir, RATES_URL: 'off' }),
  () => {},
);
const connection = await Connection.connect({ address: backends.temporal.connection.address ?? '' });
const client = new Client({ connection });
const servers = processesWith(path.join(dataDir, 'temporal'));

interface Use {
  readonly cpuMs: number;
  readonly memoryKib: number;
  readonly diskKib: number;
}
async function measure(): Promise<Use> {
  let [cpuMs, memoryKib] = [0, 0];
  for (const pid of servers) {
    cpuMs += processorTimeMs(pid);
    const status = await readFile(`/proc/${pid}/status`, 'utf8');
    memoryKib += Number(/VmRSS:\s+(\d+)/.exec(status)?.[1] ?? 0);
  }
  const files = (await readdir(dataDir)).filter((name) => name.startsWith('temporal'));
  const sizes = await Promise.all(files.map(async (name) => (await stat(path.join(dataDir, name))).size));
  return { cpuMs, memoryKib, diskKib: sizes.reduce((sum, size) => sum + size, 0) / KIB };
}

const starter = createWorkflowStarter({
  client: () => client,
  taskQueue: 'bench',
  hasWorker: false,
  logger: pino({ level: 'silent' }),
});
const startTimers = async (count: number) => {
  const dueAt = Date.now() + 30 * DAY_MS;
  starter.startHolds(
    Array.from({ length: count }, () => ({
      commissionId: newId('commission'),
      appId: newId('app'),
      eventId: newId('event'),
      dueAt,
    })),
  );
  await starter.drain(3_600_000);
};

const before = await measure();
const begin = performance.now();
await startTimers(TIMERS);
const seconds = (performance.now() - begin) / 1000;
await sleep(SETTLE_MS);
const after = await measure();
/** Returns how many timers are open. The list of the server is a little behind. */
const countOpen = async () => {
  const { count } = await client.workflowService.countWorkflowExecutions({
    namespace: 'default',
    query: `WorkflowType = 'hold' and ExecutionStatus = 'Running'`,
  });
  return Number(count);
};
const giveUpAt = Date.now() + 30_000;
while ((await countOpen()) !== TIMERS) {
  if (Date.now() > giveUpAt) throw new Error(`${await countOpen()} timers are open instead of ${TIMERS}`);
  await sleep(100);
}
const each = (figure: keyof Use) => ((after[figure] - before[figure]) / TIMERS).toFixed(1);
report({
  path: `${TIMERS} open hold timers`,
  comparedWith: '',
  measured:
    `${(TIMERS / seconds).toFixed(0)} starts/s, two at a time; each ${each('cpuMs')} ms of the Temporal server, ` +
    `${((after.memoryKib - before.memoryKib) / TIMERS).toFixed(1)} KiB of its memory (${(after.memoryKib / KIB).toFixed(0)} MiB in all) and ${each('diskKib')} KiB of its disk`,
  target: '',
  isReached: null,
});
await connection.close();
await backends.stop();
await rm(dataDir, { recursive: true, force: true });
process.exit(0);
