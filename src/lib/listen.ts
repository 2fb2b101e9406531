import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { StartupError } from '../config/startup-error.ts';

/** Returns the address of a server that listens on a host and a port. */
export function addressOf(host: string, port: number): string {
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}`;
}

/** Returns the address at which this machine reaches that server: the wildcard hosts become the loopback address. */
export function localAddressOf(host: string, port: number): string {
  return addressOf(host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host, port);
}

/** Makes a server listen and returns its address. Throws `StartupError` when the port is in use or not permitted. */
export async function listen(
  server: Server,
  host: string,
  port: number,
  variable: 'PORT' | 'METRICS_PORT',
): Promise<string> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      reject(
        new StartupError(
          error.code === 'EADDRINUSE'
            ? `Port ${port} is in use: stop the process that listens there, or set ${variable} to another port.`
            : `Can't listen on ${host}:${port} (${error.message}): check HOST and ${variable}.`,
        ),
      );
    });
    server.listen(port, host, resolve);
  });
  const { port: listening } = server.address() as AddressInfo;
  return addressOf(host, listening);
}
