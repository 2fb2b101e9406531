import { connect, createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';

export interface CuttableProxy {
  readonly url: string;
  /** Ends all connections and refuses new ones, until `restore`. */
  readonly cut: () => void;
  readonly restore: () => void;
  readonly close: () => Promise<void>;
}

/** Starts a TCP proxy in front of a database, which tests use to make the database unreachable. */
export async function startProxy(targetUrl: string): Promise<CuttableProxy> {
  const target = new URL(targetUrl);
  const sockets = new Set<Socket>();
  let isCut = false;
  const server = createServer((incoming) => {
    if (isCut) {
      incoming.destroy();
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
      one.pipe(other);
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
    restore: () => {
      isCut = false;
    },
    close: async () => {
      cut();
      await new Promise((resolve) => {
        server.close(resolve);
      });
    },
  };
}
