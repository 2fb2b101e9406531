import { execFileSync } from 'node:child_process';
import path from 'node:path';
import { tryListen } from '../../src/embedded/processes.ts';
import { eventually } from '../../test/support/eventually.ts';
import { say } from '../run-tool.ts';
import { startBalancer } from './balancer.ts';
import type { Stops } from './haproxy.ts';
import { isReady } from './http.ts';
import { output } from './image.ts';
import type { Image } from './image.ts';
import { ServiceProcesses } from './processes.ts';
import { environmentHere } from './servers.ts';
import type { StackVariables } from './servers.ts';

/** Ends this process with the command that installs what is missing of psql and haproxy. */
export function requirePrograms(): void {
  for (const program of ['psql', 'haproxy']) {
    try {
      execFileSync('which', [program], { env: { PATH: `${process.env['PATH']}:/usr/sbin` } });
    } catch {
      say(`${program} is missing: apt-get install postgresql-client haproxy`);
      process.exit(1);
    }
  }
}

/** The service behind its balancer. */
export interface Service {
  readonly processes: ServiceProcesses;
  /** The port of each process at its address. */
  readonly port: number;
  readonly balancerPort: number;
  /** The address of the balancer. */
  readonly base: string;
  /** Runs a command of the command line in the image. Returns what it prints. */
  readonly admin: (...args: string[]) => Promise<string>;
}

/** Starts a process of the service at each address, and HAProxy in front of them. */
export async function startService({
  image,
  variables,
  temporalAddress,
  addresses,
  folder,
  stops,
}: {
  readonly image: Image;
  readonly variables: StackVariables;
  readonly temporalAddress: string;
  /** Loopback addresses, one for each process. */
  readonly addresses: readonly string[];
  /** Receives the log of the balancer. */
  readonly folder: string;
  readonly stops: Stops;
}): Promise<Service> {
  const [port, metricsPort] = [await tryListen(0), await tryListen(0)];
  const environment = {
    NODE_ENV: 'production',
    ...environmentHere('tributary', variables),
    TEMPORAL_ADDRESS: temporalAddress,
    PORT: String(port),
    METRICS_PORT: String(metricsPort),
  };
  const processes = new ServiceProcesses(image, environment);
  for (const host of addresses) processes.launch(host);
  stops.push(async () => {
    await Promise.all(addresses.map(async (host) => await processes.stop(host)));
  });
  const balancerPort = await startBalancer({
    hosts: () => processes.addresses,
    servicePort: port,
    variables,
    logFile: path.join(folder, 'balancer.log'),
    stops,
  });
  const base = `http://127.0.0.1:${balancerPort}`;
  await eventually('the service is ready behind the balancer', async () => await isReady(base), 60_000).catch(
    (error: unknown) => {
      throw new Error(processes.errors(), { cause: error });
    },
  );
  say(`${addresses.length} service processes are ready behind HAProxy at ${base}`);
  const admin = async (...args: string[]) => {
    return await output(image, ['node', 'dist/src/cli/main.js', ...args], environment);
  };
  return { processes, port, balancerPort, base, admin };
}

/** Creates an account. Returns a key of it with all permissions. */
export async function createKey({ admin }: Service): Promise<string> {
  const create = async (...args: string[]) =>
    JSON.parse(await admin(...args, '--json')) as Record<string, string>;
  const { id = '' } = await create('accounts', 'create', '--name', 'Example');
  const permissions = 'read,write,setup,payout';
  const { key = '' } = await create('keys', 'create', '--account', id, '--permissions', permissions);
  return key;
}
