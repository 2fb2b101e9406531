import { connect, createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Random } from './random.ts';

/** How a proxy treats what passes through it. */
export type ProxyMode =
  | { readonly kind: 'forward' }
  /** Ends all connections and refuses new ones. */
  | { readonly kind: 'cut' }
  /** Keeps connections open and forwards nothing: connections of this time never answer again. */
  | { readonly kind: 'silent' }
  /** Forwards every piece later by this time, in order. */
  | { readonly kind: 'slow'; readonly delayMs: number }
  /** Forwards half of that share of the requests and then ends the connection: the server sees part of a statement. */
  | { readonly kind: 'drop'; readonly share: number }
  /**
   * Of that share of Postgres's answers forwards nothing, and ends the connection after a while: the statement is
   * committed, and its sender does not know.
   */
  | { readonly kind: 'swallow'; readonly share: number; readonly delayMs: number };

export interface FaultyProxy {
  readonly port: number;
  readonly set: (mode: ProxyMode) => void;
  /** Leads new connections to another port for a while, or to its own target again. */
  readonly redirect: (target: (() => number) | null) => void;
  /** How many connections and answers this proxy has broken. */
  readonly broken: () => number;
  readonly close: () => void;
}

/** The end of Postgres's answer to a statement outside a transaction: the statement is committed. */
const READY = Buffer.from([0x5a, 0, 0, 0, 5, 0x49]);

/** Starts a TCP proxy in front of a server on this machine. `target` returns its port, which may change. */
export async function startFaultyProxy(target: () => number, random: Random): Promise<FaultyProxy> {
  let mode: ProxyMode = { kind: 'forward' };
  let broken = 0;
  let other: (() => number) | null = null;
  const sockets = new Set<Socket>();

  /** Forwards what one side sends to the other. A slow piece holds up those after it. */
  const relay = (from: Socket, to: Socket, isAnswer: boolean) => {
    let waiting: Promise<void> = Promise.resolve();
    let pending = 0;
    let isMute = false;
    const end = () => {
      broken += 1;
      from.destroy();
      to.destroy();
    };
    const write = (piece: Buffer) => {
      if (to.destroyed) return;
      if (to.write(piece)) return;
      from.pause();
      to.once('drain', () => from.resume());
    };
    const writeAt = async (dueAt: number, piece: Buffer, before: Promise<void>) => {
      await before;
      await sleep(Math.max(0, dueAt - Date.now()));
      pending -= 1;
      write(piece);
    };
    from.on('data', (piece: Buffer) => {
      if (isMute || mode.kind === 'silent') {
        if (!isMute) broken += 1;
        isMute = true;
        return;
      }
      if (mode.kind === 'drop' && !isAnswer && random.chance(mode.share)) {
        to.write(piece.subarray(0, Math.ceil(piece.length / 2)), end);
        isMute = true;
        return;
      }
      if (
        mode.kind === 'swallow' &&
        isAnswer &&
        piece.subarray(-6).equals(READY) &&
        random.chance(mode.share)
      ) {
        isMute = true;
        setTimeout(end, mode.delayMs).unref();
        return;
      }
      if (mode.kind !== 'slow' && pending === 0) {
        write(piece);
        return;
      }
      const dueAt = Date.now() + (mode.kind === 'slow' ? mode.delayMs : 0);
      pending += 1;
      waiting = writeAt(dueAt, piece, waiting);
    });
    from.on('error', () => to.destroy());
    from.on('close', () => {
      sockets.delete(from);
      to.destroy();
    });
  };

  const server = createServer({ noDelay: true }, (incoming) => {
    if (mode.kind === 'cut') {
      incoming.destroy();
      return;
    }
    const outgoing = connect({ host: '127.0.0.1', port: (other ?? target)(), noDelay: true });
    sockets.add(incoming).add(outgoing);
    relay(incoming, outgoing, false);
    relay(outgoing, incoming, true);
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  const endAll = () => {
    for (const socket of sockets) socket.destroy();
  };
  return {
    port: (server.address() as AddressInfo).port,
    set: (next) => {
      mode = next;
      if (next.kind !== 'cut') return;
      broken += sockets.size / 2;
      endAll();
    },
    redirect: (next) => {
      other = next;
    },
    broken: () => broken,
    close: () => {
      server.close();
      endAll();
    },
  };
}
