import { chmod, mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { runTool, say } from '../run-tool.ts';
import { buildTemporalServer } from '../temporal-server.ts';
import { checkConnections, checkPassedOn } from './balancer.ts';
import { sayLogs } from './haproxy.ts';
import type { Stops } from './haproxy.ts';
import { checkBooks } from './books.ts';
import { agent } from './http.ts';
import { builtImage, filesOfTheImage, start } from './image.ts';
import { startLoad } from './load.ts';
import { migrate, startServers } from './servers.ts';
import { createKey, requirePrograms, startService } from './service.ts';
import { tellStory } from './story.ts';

/*
 * `npm run test:production-stack -- [--clients N] [--image NAME]`: runs the topology of docker-compose.yml without containers, with the
 * same scripts, environments and configuration files: Postgres with its roles, the production Temporal server, migrations,
 * two service processes, and HAProxy. The processes run in the image NAME that buildah has (root only), or from the files that the
 * image would have. Tells one story through the balancer, then restarts every process in turn under load. Fails when anything is
 * lost, doubled, or answered with a 5xx other than 503 with Retry-After.
 * Needs psql and haproxy (apt-get install postgresql-client haproxy).
 */

const { values: flags } = parseArgs({
  options: { clients: { type: 'string', default: '6' }, image: { type: 'string' } },
});

requirePrograms();
await buildTemporalServer(say);
const folder = await mkdtemp(path.join(tmpdir(), 'tributary-stack-'));
await chmod(folder, 0o755);
const stops: Stops = [];

async function main(): Promise<void> {
  const image = await (flags.image === undefined
    ? filesOfTheImage(path.join(folder, 'image'))
    : builtImage(flags.image));
  stops.push(image.close);
  say(image.description);
  const { variables, temporalAddress } = await startServers(folder, stops);
  await migrate(image, variables);

  const service = await startService({
    image,
    variables,
    temporalAddress,
    addresses: ['127.0.0.2', '127.0.0.3'],
    folder,
    stops,
  });
  await checkConnections(service.balancerPort);
  await checkPassedOn({ variables, logFile: path.join(folder, 'echo-balancer.log'), stops });
  const shop = await tellStory(service.base, await createKey(service));
  if ((await start(image, ['touch', 'written'], {}).ended) === 0 && process.getuid?.() === 0)
    throw new Error('a process of the image can write a file');

  const endLoad = startLoad(shop, Number(flags.clients));
  await sleep(1_000);
  await service.processes.restartInTurn(service.port);
  await checkBooks(variables, shop, await endLoad(), stops);
}

stops.push(async () => {
  agent.destroy();
});
await runTool(main, {
  stops,
  folder,
  onFailure: async () => await sayLogs(folder, ['temporal.log', 'balancer.log']),
});
