import { spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { projectRoot } from '../src/config/project-root.ts';
import {
  buildTemporalServer,
  startTemporalWithPostgres,
  TEMPORAL_SERVER_VERSION,
} from './temporal-server.ts';

/** The paths of the tests that `npm test` leaves out. */
const OPERATION = /(^|\/)(operation|embedded)\b/;

const say = (line: string) => void process.stderr.write(`${line}\n`);

/**
 * `npm run test:production-temporal -- [PATH]`: runs the stories, or the tests of a path, on the production Temporal server with
 * Postgres, with the settings of docker-compose.yml. Builds the server once. Each run has new databases.
 */
await buildTemporalServer(say);
const dataDir = await mkdtemp(path.join(tmpdir(), 'tributary-temporal-'));
const { server, postgres } = await startTemporalWithPostgres(dataDir, { durable: false, say });
let status = 1;
try {
  say(`Temporal ${TEMPORAL_SERVER_VERSION} on Postgres is up at ${server.address}`);
  const chosen = process.argv.slice(2);
  const script = chosen.some((file) => OPERATION.test(file)) ? 'test:operation' : 'test';
  const tests = spawn('npm', ['run', script, '--', ...(chosen.length === 0 ? ['test/e2e'] : chosen)], {
    cwd: projectRoot,
    env: { ...process.env, TEST_TEMPORAL_ADDRESS: server.address },
    stdio: 'inherit',
  });
  status = await new Promise<number>((resolve) => {
    tests.once('exit', (code) => resolve(code ?? 1));
  });
} finally {
  await server.stop();
  await postgres.stop();
  await rm(dataDir, { recursive: true, force: true });
}
process.exit(status);
