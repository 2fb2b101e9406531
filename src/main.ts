import { readConfig } from './config/config.ts';
import { banner, exitWith, runServer, stopOnSignal } from './server.ts';

try {
  const server = await runServer(readConfig(process.env));
  stopOnSignal(server.stop);
  process.stderr.write(`${banner(server)}\n`);
} catch (error) {
  exitWith(error);
}
