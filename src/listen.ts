import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { StartupError } from './config/startup-error.ts';

/** The address of what listens on a host and a port. */
export function addressOf(host: string, port: number): string {
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}`;
}

/** The same as this machine reaches it: all interfaces are no address to call. */
export function localAddressOf(host: string, port: number): string {
  return addressOf(host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host, port);
}

/** Has a server listen, and answers its address. What an operator can put right is said in a sentence. */
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
            ? `Port ${port} is in use: stop what listens there or set ${variable} to another one.`
            : `Can't listen on ${host}:${port} (${error.message}): check HOST and ${variable}.`,
        ),
      );
    });
    server.listen(port, host, resolve);
  });
  const { port: listening } = server.address() as AddressInfo;
  return addressOf(host, listening);
}
