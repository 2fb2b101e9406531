import { once } from 'node:events';
import { connect } from 'node:net';
import type { Socket } from 'node:net';

/** Opens a connection to a server at an address of this machine and sends a text. Responses are read only by `received`. */
export async function openConnection(
  url: string,
  text: string | Buffer,
  localAddress = '127.0.0.1',
): Promise<Socket> {
  const { hostname, port } = new URL(url);
  const socket = connect({ port: Number(port), host: hostname, localAddress });
  socket.on('error', () => {});
  await once(socket, 'connect');
  socket.write(text);
  return socket;
}

/** Returns everything that a connection receives until it ends. */
export async function received(socket: Socket): Promise<string> {
  let text = '';
  socket.on('data', (chunk) => (text += String(chunk)));
  if (!socket.closed) await new Promise((resolve) => socket.once('close', resolve));
  return text;
}

/** Returns what a connection receives until `text` is in it, or until the connection ends. */
export async function receivedUntil(socket: Socket, text: string): Promise<string> {
  let all = '';
  while (!all.includes(text)) {
    const [chunk] = (await Promise.race([once(socket, 'data'), once(socket, 'close')])) as [unknown];
    if (!Buffer.isBuffer(chunk)) return all;
    all += String(chunk);
  }
  return all;
}

/** Returns the bytes of a body in chunks of `size` bytes, with the final one. */
export function inChunks(body: Buffer, size: number): Buffer {
  const parts: Buffer[] = [];
  for (let at = 0; at < body.length; at += size) {
    const part = body.subarray(at, at + size);
    parts.push(Buffer.from(`${part.length.toString(16)}\r\n`), part, Buffer.from('\r\n'));
  }
  return Buffer.concat([...parts, Buffer.from('0\r\n\r\n')]);
}

/** Returns the head of a request. */
export function headOf(method: string, path: string, headers: Readonly<Record<string, string>> = {}): string {
  const lines = Object.entries({ host: 'localhost', ...headers }).map(
    ([name, value]) => `${name}: ${value}\r\n`,
  );
  return `${method} ${path} HTTP/1.1\r\n${lines.join('')}\r\n`;
}
