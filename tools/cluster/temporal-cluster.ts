import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { tryListen } from '../../src/embedded/processes.ts';
import { startHaproxy } from '../production-stack/haproxy.ts';
import type { Stops } from '../production-stack/haproxy.ts';
import { startTemporalServer } from '../temporal-server.ts';
import type { TemporalServer, TemporalServerSettings } from '../temporal-server.ts';

/** The settings that all nodes share. */
type NodeSettings = Omit<TemporalServerSettings, 'host' | 'ports' | 'logFile'>;

/** Nodes of one Temporal cluster, each with all four services, and a balancer of their frontends. */
export class TemporalCluster {
  /** The address of the balancer. */
  readonly address: string;
  readonly #settings: NodeSettings;
  readonly #folder: string;
  readonly #nodes: Map<string, TemporalServer>;

  private constructor(
    address: string,
    settings: NodeSettings,
    folder: string,
    nodes: Map<string, TemporalServer>,
  ) {
    this.address = address;
    this.#settings = settings;
    this.#folder = folder;
    this.#nodes = nodes;
  }

  /** Starts a node at each loopback address, and HAProxy in front of them. Logs are in `folder`. */
  static async start(
    hosts: readonly string[],
    settings: NodeSettings,
    folder: string,
    stops: Stops,
  ): Promise<TemporalCluster> {
    const nodes = new Map<string, TemporalServer>();
    stops.push(async () => {
      await Promise.all([...nodes.values()].map(async (node) => await node.stop()));
    });
    for (const host of hosts) {
      const [first] = nodes.values();
      const ports = first === undefined ? {} : { ports: first.ports };
      const logFile = path.join(folder, `temporal-${host}.log`);
      nodes.set(host, await startTemporalServer({ ...settings, ...ports, host, logFile }));
    }
    const addresses = [...nodes.values()].map(({ address }) => address);
    const address = await startFrontendBalancer(addresses, folder, stops);
    return new TemporalCluster(address, settings, folder, nodes);
  }

  get hosts(): string[] {
    return [...this.#nodes.keys()];
  }

  /** Ends a node as a machine that loses power. */
  async kill(host: string): Promise<void> {
    await this.#nodes.get(host)?.stop('SIGKILL');
  }

  /** Starts the nodes that have ended, as Compose does. Returns their hosts. */
  async revive(): Promise<string[]> {
    const ended = [...this.#nodes].filter(([, node]) => !node.isRunning());
    for (const [host, { ports }] of ended) {
      const logFile = path.join(this.#folder, `temporal-${host}.log`);
      this.#nodes.set(host, await startTemporalServer({ ...this.#settings, host, ports, logFile }));
    }
    return ended.map(([host]) => host);
  }
}

/** Starts HAProxy in front of the frontends. A connection to a node that is gone ends at once. Returns its address. */
async function startFrontendBalancer(
  addresses: readonly string[],
  folder: string,
  stops: Stops,
): Promise<string> {
  const address = `127.0.0.1:${await tryListen(0)}`;
  const servers = addresses.map((one, n) => `    server node-${n} ${one}`);
  const configuration = `
defaults
    mode tcp
    timeout connect 2s
    timeout client 1h
    timeout server 1h

listen frontends
    bind ${address}
    balance leastconn
    option redispatch 1
    default-server check inter 500ms fall 2 rise 1 on-marked-down shutdown-sessions
${servers.join('\n')}
`;
  const file = path.join(folder, 'frontends.cfg');
  await writeFile(file, configuration);
  await startHaproxy(file, {}, path.join(folder, 'frontends.log'), stops);
  return address;
}
