import { connect, createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import { Transform } from 'node:stream';
import type { TransformCallback } from 'node:stream';

/** Passes chunks on after a while, in their order. */
class Delay extends Transform {
  readonly #delayMs: () => number;

  constructor(delayMs: () => number) {
    super();
    this.#delayMs = delayMs;
  }

  override _transform(chunk: Buffer, _: BufferEncoding, done: TransformCallback): void {
    const ms = this.#delayMs();
    if (ms === 0) done(null, chunk);
    else setTimeout(() => done(null, chunk), ms);
  }
}

export interface CuttableProxy {
  readonly url: string;
  /** Ends all connections and refuses new ones, until `restore`. */
  readonly cut: () => void;
  /** Resets the connections of the service, and accepts new ones. */
  readonly reset: () => void;
  /** Accepts connections and forwards nothing, until `restore`. Connections of that time stay silent for ever. */
  readonly silence: () => void;
  readonly restore: () => void;
  /** Delays everything by so many ms, in each direction. */
  readonly delay: (ms: number) => void;
  /** How many connections of the service are open. */
  readonly accepted: () => number;
  /** How many connections of the service were opened in all. */
  readonly opened: () => number;
  /** How many of these were open when the proxy fell silent. */
  readonly silenced: () => number;
  readonly close: () => Promise<void>;
}

/** Starts a TCP proxy in front of a database, which tests use to make the database unreachable. */
export async function startProxy(targetUrl: string): Promise<CuttableProxy> {
  const target = new URL(targetUrl);
  const sockets = new Set<Socket>();
  let isCut = false;
  let isSilent = false;
  let delayMs = 0;
  const accepted = new Set<Socket>();
  let opened = 0;
  let openBefore = new Set<Socket>();
  const mute = (socket: Socket) => {
    socket.unpipe();
    socket.resume();
  };
  const server = createServer((incoming) => {
    if (isCut) {
      incoming.destroy();
      return;
    }
    accepted.add(incoming);
    opened += 1;
    incoming.on('close', () => accepted.delete(incoming));
    if (isSilent) {
      sockets.add(incoming);
      incoming.on('error', () => incoming.destroy());
      incoming.on('close', () => sockets.delete(incoming));
      incoming.resume();
      return;
    }
    const outgoing = connect(Number(target.port), target.hostname);
    for (const [one, other] of [
      [incoming, outgoing],
      [outgoing, incoming],
    ] as const) {
      sockets.add(one);
      one.on('error', () => other.destroy());
      one.on('close', () => {
        sockets.delete(one);
        other.destroy();
      });
      one.pipe(new Delay(() => delayMs)).pipe(other);
    }
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  const url = new URL(targetUrl);
  url.hostname = '127.0.0.1';
  url.port = String((server.address() as AddressInfo).port);
  const cut = () => {
    isCut = true;
    for (const socket of sockets) socket.destroy();
  };
  return {
    url: url.toString(),
    cut,
    reset: () => {
      for (const socket of accepted) socket.resetAndDestroy();
    },
    silence: () => {
      isSilent = true;
      openBefore = new Set(accepted);
      for (const socket of sockets) mute(socket);
    },
    accepted: () => accepted.size,
    opened: () => opened,
    silenced: () => [...openBefore].filter((socket) => accepted.has(socket)).length,
    delay: (ms) => {
      delayMs = ms;
    },
    restore: () => {
      delayMs = 0;
      isCut = false;
      isSilent = false;
    },
    close: async () => {
      cut();
      await new Promise((resolve) => {
        server.close(resolve);
      });
    },
  };
}
