import { createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';

type Script = (socket: Socket) => void;

const once =
  (text: string): Script =>
  (socket) =>
    void socket.write(text);

/** Writes `first`, then `part` for as long as the other side reads. */
const flood =
  (first: string, part: string): Script =>
  (socket) => {
    const block = part.repeat(200);
    const write = () => {
      while (!socket.destroyed && socket.write(block));
    };
    socket.write(first);
    socket.on('drain', write);
    write();
  };

/** Writes `first`, then `part` every few milliseconds. */
const trickle =
  (first: string, part: string): Script =>
  (socket) => {
    socket.write(first);
    const timer = setInterval(() => socket.write(part), 5);
    socket.on('close', () => clearInterval(timer));
  };

const SWITCH = 'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n';
const OK = 'HTTP/1.1 200 OK\r\n';
const CHUNKED = `${OK}Transfer-Encoding: chunked\r\n\r\n`;

/** Answers of a server that does what no server should, by what they are. */
export const HOSTILE_ANSWERS: Readonly<Record<string, Script>> = {
  'a switch to another protocol': once(SWITCH),
  'a switch to another protocol, and the end': (socket) => void socket.end(SWITCH),
  'a switch to another protocol without a name': once('HTTP/1.1 101 Switching Protocols\r\n\r\n'),
  'a switch to another protocol, and bytes without an end': flood(SWITCH, 'x'),
  '100 Continue without an end': flood('', 'HTTP/1.1 100 Continue\r\n\r\n'),
  '103 Early Hints without an end': flood('', 'HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n'),
  '100 Continue, slowly': trickle('', 'HTTP/1.1 100 Continue\r\n\r\n'),
  'headers without an end': flood(OK, 'a: b\r\n'),
  'headers, slowly': trickle(OK, 'a: b\r\n'),
  'a header without an end': flood(`${OK}a: `, 'a'),
  'a status without an end': flood('HTTP/1.1 200 ', 'a'),
  'no HTTP': flood('', 'garbage'),
  'a body without an end': flood(`${OK}\r\n`, 'a'),
  'a body, slowly': trickle(`${OK}\r\n`, 'a'),
  'a chunk whose extension has no end': flood(`${CHUNKED}1;`, 'a'),
  'trailers without an end': flood(`${CHUNKED}0\r\n`, 'a: b\r\n'),
  'redirects in a circle': (socket) =>
    void socket.end(
      'HTTP/1.1 302 Found\r\nLocation: /again\r\nContent-Length: 0\r\nConnection: close\r\n\r\n',
    ),
  'a reset': (socket) => void socket.resetAndDestroy(),
  'a reset in the body': (socket) => {
    socket.write(`${OK}Content-Length: 100\r\n\r\nhalf`, () => socket.resetAndDestroy());
  },
  'an end': (socket) => void socket.end(),
  'an end in the headers': (socket) => void socket.end(`${OK}Content-Le`),
  'a response, and bytes without an end': flood('HTTP/1.1 204 No Content\r\n\r\n', OK),
  nothing: () => {},
};

/** A server that answers each connection with a script after the first bytes of it. */
export interface ScriptedServer {
  readonly port: number;
  /** Connections that are open and have had a request. Node's client opens another one after a failure, for the next request. */
  readonly answering: () => number;
  readonly close: () => Promise<void>;
}

export async function serveScript(script: Script): Promise<ScriptedServer> {
  const sockets = new Set<Socket>();
  const asked = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => {});
    socket.on('close', () => {
      sockets.delete(socket);
      asked.delete(socket);
    });
    socket.once('data', () => {
      asked.add(socket);
      script(socket);
    });
    socket.resume();
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  return {
    port: (server.address() as AddressInfo).port,
    answering: () => asked.size,
    close: async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => {
        server.close(resolve);
      });
    },
  };
}
