import type { Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { addressSite } from '../domain/addresses.ts';

/** How many connections a process has at a time. */
export interface ConnectionLimits {
  readonly connections: number;
  /** The part of an address, or of the /56 of an IPv6 address. */
  readonly connectionsPerAddress: number;
}

/**
 * An open connection, and what it works on. The sets below hold connections, which live long, and no requests: what a set or map of V8
 * has outgrown keeps its members alive until the next full collection, so nearly every request would survive the short ones.
 */
class Connection {
  readonly socket: Socket;
  readonly site: Site;
  /** Of the request that it works on; null without one. */
  response: ServerResponse | null = null;

  constructor(socket: Socket, site: Site) {
    this.socket = socket;
    this.site = site;
  }

  /** Whether it waits for its client: for a body that does not arrive, or for the reader of a response. */
  get waitsForClient(): boolean {
    return this.response !== null && (!this.response.req.complete || this.response.writableEnded);
  }
}

/** The connections of an address, or of all addresses. */
class Connections {
  /** Those without the complete head of a request, the one that has waited longest first. */
  readonly waiting = new Set<Connection>();
  /** Those with one, the oldest first. */
  readonly busy = new Set<Connection>();

  get count(): number {
    return this.waiting.size + this.busy.size;
  }

  delete(connection: Connection): void {
    this.waiting.delete(connection);
    this.busy.delete(connection);
  }

  /** Returns the connection besides `newest` that has kept the service waiting longest, or `newest` if the service works on all. */
  longestWaiting(newest: Connection): Connection {
    for (const connection of this.waiting) if (connection !== newest) return connection;
    for (const connection of this.busy) if (connection.waitsForClient) return connection;
    return newest;
  }
}

/** The connections of an address, or of the /56 of an IPv6 address. */
class Site extends Connections {
  readonly name: string;

  constructor(name: string) {
    super();
    this.name = name;
  }
}

/**
 * Limits the connections of a server. Beyond a limit, the connection closes that has kept the service waiting longest, first of
 * all for a head: so connections with half a request, or none, lock nobody out. If the service works on all, the new one closes.
 */
export function limitConnections(
  server: Server,
  { connections, connectionsPerAddress }: ConnectionLimits,
): void {
  const all = new Connections();
  const sites = new Map<string, Site>();
  const open = new WeakMap<Socket, Connection>();
  const forget = (connection: Connection) => {
    const { socket, site } = connection;
    open.delete(socket);
    for (const group of [all, site]) group.delete(connection);
    if (site.count === 0 && sites.get(site.name) === site) sites.delete(site.name);
  };
  const keepWithin = (group: Connections, limit: number, newest: Connection) => {
    if (group.count <= limit) return;
    const connection = group.longestWaiting(newest);
    forget(connection);
    connection.socket.destroy();
  };

  server.on('connection', (socket: Socket) => {
    const { remoteAddress = '' } = socket;
    const name = addressSite(remoteAddress) ?? remoteAddress;
    const site = sites.get(name) ?? new Site(name);
    sites.set(name, site);
    const connection = new Connection(socket, site);
    open.set(socket, connection);
    for (const group of [all, site]) group.waiting.add(connection);
    socket.once('close', () => forget(connection));
    keepWithin(site, connectionsPerAddress, connection);
    keepWithin(all, connections, connection);
  });

  server.on('request', (request, response) => {
    const connection = open.get(request.socket);
    if (connection === undefined) return;
    const groups = [all, connection.site];
    connection.response = response;
    for (const group of groups) {
      group.waiting.delete(connection);
      group.busy.add(connection);
    }
    response.once('close', () => {
      connection.response = null;
      if (!open.has(connection.socket)) return;
      for (const group of groups) {
        group.busy.delete(connection);
        group.waiting.add(connection);
      }
    });
  });
}
