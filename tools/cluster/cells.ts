import { randomUUID } from 'node:crypto';
import { chmod, mkdir, mkdtemp, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { projectRoot } from '../../src/config/project-root.ts';
import { tryListen } from '../../src/embedded/processes.ts';
import { eventually } from '../../test/support/eventually.ts';
import { sayLogs, startHaproxy } from '../production-stack/haproxy.ts';
import type { Stops } from '../production-stack/haproxy.ts';
import { checkBooks } from '../production-stack/books.ts';
import { agent, send } from '../production-stack/http.ts';
import { filesOfTheImage, output } from '../production-stack/image.ts';
import type { Image } from '../production-stack/image.ts';
import { startLoad } from '../production-stack/load.ts';
import { environmentHere, migrate, startServers } from '../production-stack/servers.ts';
import type { StackVariables } from '../production-stack/servers.ts';
import { createKey, requirePrograms, startService } from '../production-stack/service.ts';
import type { Service } from '../production-stack/service.ts';
import { tellStory } from '../production-stack/story.ts';
import { runTool, say } from '../run-tool.ts';
import { buildTemporalServer } from '../temporal-server.ts';

/*
 * `npm run test:cells`: runs two cells, each with its own Postgres, production Temporal server, service process and balancer, behind
 * HAProxy with deploy/haproxy/cells.cfg and the maps that `tributary cells map` writes. Sends load for an app of each cell through that one
 * address. Fails when anything arrives at the other cell, or is lost or doubled. Needs psql and haproxy.
 */

const CELLS = ['cell-1', 'cell-2'] as const;
type CellName = (typeof CELLS)[number];
const LOAD_MS = 20_000;
const CLIENTS = 3;

requirePrograms();
await buildTemporalServer(say);
const folder = await mkdtemp(path.join(tmpdir(), 'tributary-cells-'));
await chmod(folder, 0o755);
const stops: Stops = [];

interface Cell {
  readonly name: CellName;
  readonly variables: StackVariables;
  readonly service: Service;
}

async function startCell(name: CellName, address: string, image: Image): Promise<Cell> {
  const home = path.join(folder, name);
  await mkdir(home);
  const over = { PUBLIC_URL: `https://${name}.example.com`, TRUST_PROXY: '2' };
  const { variables, temporalAddress } = await startServers(home, stops, over);
  await migrate(image, variables);
  const service = await startService({
    image,
    variables,
    temporalAddress,
    addresses: [address],
    folder: home,
    stops,
  });
  return { name, variables, service };
}

/** The router in front of the cells. */
interface Router {
  readonly base: string;
  /** Writes the map again from all cells, and has the router read it. */
  readonly refresh: () => Promise<void>;
}

async function startRouter(cells: readonly Cell[], image: Image): Promise<Router> {
  const mapFile = path.join(folder, 'cells.map');
  const writeMap = async () => {
    const parts = await Promise.all(
      cells.map(async ({ name, variables }) => {
        const command = ['node', 'dist/src/cli/main.js', 'cells', 'map', '--cell', name];
        const lines = await output(image, command, environmentHere('tributary', variables));
        return `${name}.example.com ${name}\n${lines}`;
      }),
    );
    await writeFile(mapFile, parts.join(''));
  };
  await writeMap();
  const port = await tryListen(0);
  const reload = await startHaproxy(
    path.join(projectRoot, 'deploy/haproxy/cells.cfg'),
    {
      LISTEN: `127.0.0.1:${port}`,
      CELL_MAP: mapFile,
      MAX_CONNECTIONS_PER_ADDRESS: '500',
      TRUSTED_PROXIES: '127.0.0.10',
      ...Object.fromEntries(
        cells.map(({ service }, n) => [`CELL_${n + 1}`, `127.0.0.1:${service.balancerPort}`]),
      ),
    },
    path.join(folder, 'router.log'),
    stops,
  );
  const base = `http://127.0.0.1:${port}`;
  const refresh = async () => {
    await writeMap();
    reload();
    await sleep(1_000);
  };
  return { base, refresh };
}

async function main(): Promise<void> {
  const image = await filesOfTheImage(path.join(folder, 'image'));
  const cells = [
    await startCell('cell-1', '127.0.0.31', image),
    await startCell('cell-2', '127.0.0.32', image),
  ];
  const keys = await Promise.all(cells.map(async ({ service }) => await createKey(service)));
  const { base, refresh } = await startRouter(cells, image);
  await eventually('the router answers', async () => {
    const headers = { authorization: `Bearer ${keys[0]}` };
    return await send(base, 'GET', '/apps', { headers }).then(
      ({ status }) => status === 200,
      () => false,
    );
  });
  say(`Two cells answer behind one router at ${base}`);

  const unknown = await send(base, 'POST', `/webhooks/stripe/app_${'0'.repeat(26)}`, { body: {} });
  if (unknown.status !== 503 || unknown.retryAfter === undefined)
    throw new Error(`an app that no map has is answered with ${unknown.status}: a provider would give up`);
  for (const [n, { name }] of cells.entries()) {
    const page = await send(base, 'GET', '/healthz', { headers: { host: `${name}.example.com` } });
    if (page.status !== 200) throw new Error(`the host of ${name} is answered with ${page.status}`);
    const other = await send(base, 'GET', '/apps', { headers: { authorization: `Bearer ${keys[1 - n]}` } });
    if (other.status !== 200) throw new Error(`a key of the other cell is answered with ${other.status}`);
  }

  const shops = await Promise.all(keys.map(async (key) => await tellStory(base, key, refresh)));
  const loads = shops.map((shop) => startLoad(shop, CLIENTS));
  await sleep(LOAD_MS / 2);
  await refresh();
  await sleep(LOAD_MS / 2);
  const results = await Promise.all(loads.map(async (end) => await end()));
  for (const [n, { name, variables, service }] of cells.entries()) {
    const [shop, result] = [shops[n], results[n]];
    if (shop === undefined || result === undefined) throw new Error(`no load for ${name}`);
    say(`${name}:`);
    await checkBooks(variables, shop, result, stops);
    const followed = await send(
      base,
      'GET',
      `/l/${await subdomainOf(service.base, shop.appId, shop.key)}/spring`,
    );
    if (followed.status !== 302) throw new Error(`a link of ${name} is answered with ${followed.status}`);
  }
  // A cell alone does not know the app of the other: nothing has been stored in both.
  for (const [n, { service }] of cells.entries()) {
    const foreign = shops[1 - n];
    const answer = await send(service.base, 'POST', '/clicks', {
      body: { customerAppId: foreign?.appId, slug: 'spring', claimToken: randomUUID() },
    });
    if (answer.status !== 404)
      throw new Error(`a cell knows the app of the other: ${answer.status} ${answer.text}`);
  }
}

/** Returns the link subdomain of an app. */
async function subdomainOf(base: string, appId: string, key: string): Promise<string> {
  const { text } = await send(base, 'GET', `/apps/${appId}`, { headers: { authorization: `Bearer ${key}` } });
  return (JSON.parse(text) as { linkSubdomain: string }).linkSubdomain;
}

stops.push(async () => {
  agent.destroy();
});
await runTool(main, {
  stops,
  folder,
  onFailure: async () => await sayLogs(folder, ['router.log', 'cell-1/balancer.log', 'cell-2/balancer.log']),
});
