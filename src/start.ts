import { readConfig } from './config/config.ts';
import { banner, createFirstLink, exitWith, runServer, stopOnSignal } from './server.ts';
import type { RunningServer } from './server.ts';

let starting: Promise<RunningServer> | undefined;
const signal = stopOnSignal(async () => {
  // A failed start has ended everything itself.
  const server = await starting?.catch(() => undefined);
  await server?.stop();
});
try {
  starting = runServer(readConfig(process.env), signal);
  const server = await starting;
  // The server runs already: without the link, `tributary console` makes another one.
  const firstLink = process.stderr.isTTY ? await createFirstLink(server).catch(() => null) : null;
  if (!signal.aborted)
    process.stderr.write(`${banner({ ...server, firstLink, dataDir: process.env['DATA_DIR'] })}\n`);
} catch (error) {
  if (!signal.aborted) exitWith(error);
}
