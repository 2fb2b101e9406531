/**
 * Started by the tests as a process of its own, to be killed: takes the data folder it is given, starts what it is
 * told to and says where that is.
 */
import { prepareDataDir } from '../../src/embedded/data-dir.ts';
import { startEmbeddedPostgres } from '../../src/embedded/postgres.ts';

const [dataDir = '', what = ''] = process.argv.slice(2);
await prepareDataDir(dataDir);
const started =
  what === 'postgres' ? (await startEmbeddedPostgres({ dataDir, durable: true })).url : 'nothing';
process.stdout.write(`${JSON.stringify({ pid: process.pid, started })}\n`);
setInterval(() => undefined, 60_000);
