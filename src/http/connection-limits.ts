import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { addressSite } from '../domain/addresses.ts';

/** How many connections a process has at a time. */
export interface ConnectionLimits {
  readonly connections: number;
  /** The part of an address, or of the /56 of an IPv6 address. */
  readonly connectionsPerAddress: number;
}

/** A request, and its response. */
interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
}

/** The connections of an address, or of all addresses. */
class Connections {
  /** Those without the complete head of a request, the one that has waited longest first. */
  readonly waiting = new Set<Socket>();
  /** Those with one, the oldest first. */
  readonly busy = new Map<Socket, Exchange>();

  get count(): number {
    return this.waiting.size + this.busy.size;
  }

  delete(socket: Socket): void {
    this.waiting.delete(socket);
    this.busy.delete(socket);
  }

  /** Returns the connection besides `newest` that has kept the service waiting longest, or `newest` if the service works on all. */
  longestWaiting(newest: Socket): Socket {
    for (const socket of this.waiting) if (socket !== newest) return socket;
    for (const [socket, { request, response }] of this.busy) {
      // A body that does not arrive, or a response that nobody reads.
      if (!request.complete || response.writableEnded) return socket;
    }
    return newest;
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
  const sites = new Map<string, Connections>();
  const siteNames = new WeakMap<Socket, string>();
  const groupsOf = (socket: Socket): readonly Connections[] => {
    const site = sites.get(siteNames.get(socket) ?? '');
    return site === undefined ? [] : [all, site];
  };
  const forget = (socket: Socket) => {
    for (const group of groupsOf(socket)) group.delete(socket);
    const name = siteNames.get(socket) ?? '';
    if (sites.get(name)?.count === 0) sites.delete(name);
  };
  const keepWithin = (group: Connections, limit: number, newest: Socket) => {
    if (group.count <= limit) return;
    const socket = group.longestWaiting(newest);
    forget(socket);
    socket.destroy();
  };

  server.on('connection', (socket: Socket) => {
    const { remoteAddress = '' } = socket;
    const name = addressSite(remoteAddress) ?? remoteAddress;
    const site = sites.get(name) ?? new Connections();
    sites.set(name, site);
    siteNames.set(socket, name);
    for (const group of [all, site]) group.waiting.add(socket);
    socket.once('close', () => forget(socket));
    keepWithin(site, connectionsPerAddress, socket);
    keepWithin(all, connections, socket);
  });

  server.on('request', (request, response) => {
    const { socket } = request;
    for (const group of groupsOf(socket)) {
      group.waiting.delete(socket);
      group.busy.set(socket, { request, response });
    }
    response.once('close', () => {
      if (socket.destroyed) return;
      for (const group of groupsOf(socket)) {
        group.busy.delete(socket);
        group.waiting.add(socket);
      }
    });
  });
}
