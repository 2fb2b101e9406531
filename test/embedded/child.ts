/**
 * A process that the tests start and kill. It claims the data folder of its first argument, starts Postgres when the
 * second says so, and prints the address.
 */
import { prepareDataDir } from '../../src/embedded/data-dir.ts';
import { startEmbeddedPostgres } from '../../src/embedded/postgres.ts';

const [dataDir = '', what = ''] = process.argv.slice(2);
await prepareDataDir(dataDir);
const started =
  what === 'postgres' ? (await startEmbeddedPostgres({ dataDir, durable: true })).ownerUrl : 'nothing';
process.stdout.write(`${JSON.stringify({ pid: process.pid, started })}\n`);
setInterval(() => undefined, 60_000);
