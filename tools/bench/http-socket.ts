import { once } from 'node:events';
import { connect } from 'node:net';
import type { Socket } from 'node:net';

async function open(port: number): Promise<Socket> {
  const socket = connect(port, '127.0.0.1');
  socket.setNoDelay(true);
  await once(socket, 'connect');
  // Fails the request in flight. Without one, nobody listens.
  socket.once('end', () => socket.destroy(new Error('the service closed the connection')));
  socket.on('error', () => {});
  return socket;
}

/**
 * An HTTP connection that is kept open and sends one request at a time. The client of Node costs more than the service. A request
 * fails when the service closes the connection meanwhile; one that was closed while it was idle, as on a machine that stalls, is opened again.
 */
export class HttpSocket {
  readonly #port: number;
  #socket: Socket;

  private constructor(port: number, socket: Socket) {
    this.#port = port;
    this.#socket = socket;
  }

  static async open(port: number): Promise<HttpSocket> {
    return new HttpSocket(port, await open(port));
  }

  /** Posts JSON. Returns the status and the body of the response, which needs a Content-Length. */
  async post(
    path: string,
    body: string,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<{ status: number; body: string }> {
    const content = { 'content-type': 'application/json', 'content-length': String(Buffer.byteLength(body)) };
    return await this.#send(`POST ${path}`, { ...content, ...headers }, body);
  }

  /** Sends a GET. Returns as `post`. */
  async get(
    path: string,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<{ status: number; body: string }> {
    return await this.#send(`GET ${path}`, headers);
  }

  async #send(
    target: string,
    headers: Readonly<Record<string, string>>,
    body = '',
  ): Promise<{ status: number; body: string }> {
    if (this.#socket.destroyed) this.#socket = await open(this.#port);
    const lines = Object.entries({ host: 'localhost', ...headers }).map(
      ([name, value]) => `${name}: ${value}\r\n`,
    );
    this.#socket.write(`${target} HTTP/1.1\r\n${lines.join('')}\r\n${body}`);
    let text = '';
    for (;;) {
      text += String((await once(this.#socket, 'data'))[0]);
      const [head, length] = /^[^]*?content-length: (\d+)[^]*?\r\n\r\n/i.exec(text) ?? [];
      if (head !== undefined && Buffer.byteLength(text) >= Buffer.byteLength(head) + Number(length))
        return { status: Number(text.slice(9, 12)), body: text.slice(head.length) };
    }
  }

  close(): void {
    this.#socket.destroy();
  }
}
