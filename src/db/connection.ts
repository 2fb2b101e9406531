import { connect as connectSocket } from 'node:net';
import type { Socket } from 'node:net';
import postgres from 'postgres';

/** A driver that has at most one connection. */
export type Client = postgres.Sql;

/** What the driver passes to its `socket` option. */
interface Destination {
  readonly host: readonly string[];
  readonly port: readonly number[];
  /** The path of a Unix socket. False without one. */
  readonly path: string | false;
}

/** Creates a driver with one connection, which opens its sockets with `openSocket`. It calls `onOpen` after each login. */
export type CreateClient = (openSocket: (destination: Destination) => Socket, onOpen: () => void) => Client;

/** The database did not respond within the limits of a statement. Whether the statement took effect is unknown. */
export class NoResponse extends Error {
  override readonly name = 'NoResponse';
}

/** The pool was closed. The statement was not sent. */
export class PoolClosed extends Error {
  override readonly name = 'PoolClosed';
}

/** A part of the pool: its statements have at most `max` connections at one time. */
export interface Share {
  readonly max: number;
  /** The part that it belongs to, whose connections it uses. Null for a part of the whole pool. */
  readonly of: Share | null;
  /** How many connections it has now. */
  inUse: number;
}

/** Returns a share and those that it belongs to. */
export function* withOuter(share: Share | null): Generator<Share> {
  for (let next = share; next !== null; next = next.of) yield next;
}

/** Whether a statement of a share may have one more connection. */
export function hasRoom(share: Share | null): boolean {
  // Without a generator: a dispatch asks for each statement that waits.
  for (let next = share; next !== null; next = next.of) if (next.inUse >= next.max) return false;
  return true;
}

export interface StatementLimits {
  /** When the caller gives up, `performance.now()` ms. The connection finishes the statement. */
  readonly giveUpAt: number;
  /** How long the connection may take to respond before it is discarded, ms. */
  readonly respondWithinMs: number;
  /** The part of the pool that the statement belongs to. Null for all of it. */
  readonly share: Share | null;
  /** Whether it gets the next free connection, before all that wait. False by default: a ping of the pool waits for none. */
  readonly isUrgent?: boolean;
}

/** How long `close` waits for statements in flight, ms. */
export const CLOSE_MS = 5_000;

export interface Statement extends StatementLimits {
  /** Pool time, ms (`Pool.#poolTime`). */
  readonly sentAt: number;
  /** Until when it must be answered, although its time limit may be later; pool time, ms. */
  answerBy: number;
  readonly fail: (error: Error) => void;
  /** Whether it only asks if the connection works. */
  readonly isPing?: boolean;
}

/** A connection of the pool. `statement` is the one in flight, undefined while the connection is idle. */
export class Connection {
  readonly client: Client;
  statement: Statement | undefined;
  /** The share that the statement in flight belongs to. */
  share: Share | null = null;
  /** When the last statement ended, pool time, ms. */
  usedAt = 0;
  readonly createdAt = performance.now();
  isDiscarded = false;
  /** Whether it has logged in. */
  isOpen = false;
  /** Resolves when the statement or transaction in flight has ended. */
  working: Promise<unknown> | undefined;
  /** Whether a transaction runs on it, which ends with its socket. */
  isHeld = false;
  readonly #sockets = new Set<Socket>();
  #attempts = 0;

  constructor(createClient: CreateClient, onOpen: () => void = () => {}) {
    this.client = createClient(
      (destination) => this.#open(destination),
      () => {
        this.isOpen = true;
        onOpen();
      },
    );
  }

  /**
   * Ends the connection at once, without waiting for the database. The driver alone would only close its side, and the
   * socket to a silent database would stay.
   */
  discard(): void {
    this.isDiscarded = true;
    const destroy = () => {
      for (const socket of this.#sockets) socket.destroy();
    };
    this.client.end({ timeout: 0 }).then(destroy, destroy);
  }

  /** Ends the connection after the statement in flight. */
  async end(): Promise<void> {
    await this.client.end({ timeout: CLOSE_MS / 1000 });
    this.discard();
  }

  #open({ host, port, path }: Destination): Socket {
    if (this.isDiscarded) throw new PoolClosed('the connection was discarded');
    if (this.isHeld) {
      // With several hosts, the driver would neither fail its statement nor try the next host.
      this.discard();
      throw new NoResponse('the connection of a transaction was lost');
    }
    // An address may list several hosts; each attempt takes the next one.
    const turn = this.#attempts % host.length;
    this.#attempts += 1;
    const hostname = host[turn] ?? 'localhost';
    const socket =
      path === false ? connectSocket({ host: hostname, port: port[turn] ?? 5432 }) : connectSocket({ path });
    socket.setNoDelay(true);
    this.#sockets.add(socket);
    socket.on('close', () => this.#sockets.delete(socket));
    // The driver reads the name for TLS here.
    return Object.assign(socket, { host: hostname });
  }
}

/**
 * Whether Postgres refused a statement and the connection goes on. After any other error the driver may lose a statement
 * that is sent on the same connection, so it gets none.
 */
export function isAnswer(error: unknown): boolean {
  return error instanceof postgres.PostgresError && error.severity === 'ERROR';
}
