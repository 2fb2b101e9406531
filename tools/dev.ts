import { readConfig } from '../src/config/config.ts';
import { listAccounts } from '../src/db/accounts.ts';
import { banner, exitWith, runServer, stopOnSignal } from '../src/server.ts';
import type { RunningServer } from '../src/server.ts';
import { createClient, createDemoAccount, createDemoApp, createDemoLink } from './demo-app.ts';
import { addHistory, HISTORY_SETTINGS } from './demo-history.ts';

/*
 * `npm run dev`: runs the service from source; Node restarts it when a file changes. The first start adds an app with ninety days of
 * data. It stays in DATA_DIR, by default .cache/dev: remove the folder to begin anew.
 */

const print = (line: string) => void process.stderr.write(`${line}\n`);

/** Adds the demo's data to an installation without an account. Returns a link that opens the console. */
async function addData({ service }: RunningServer): Promise<string> {
  const [account] = await listAccounts(service.sql);
  if (account !== undefined) return await createDemoLink(service, account.id);
  print('Adding ninety days of data, once …');
  const base = service.url ?? '';
  const { app } = await createDemoApp(createClient(base), await createDemoAccount(service.sql));
  await addHistory({ base, ...app }, (line) => print(`  ${line} …`));
  print(`  KEY=${app.key} SDK_KEY=${app.sdkKey} APP=${app.appId}`);
  return await createDemoLink(service, app.accountId);
}

let starting: Promise<RunningServer> | undefined;
const signal = stopOnSignal(async () => {
  // A failed start has ended everything itself.
  const server = await starting?.catch(() => undefined);
  await server?.stop();
});
try {
  const env = { DATA_DIR: '.cache/dev', LOG_LEVEL: 'warn', ...HISTORY_SETTINGS, ...process.env };
  starting = runServer(readConfig(env), signal);
  const server = await starting;
  await server.service.whenReady(60_000);
  const link = await addData(server);
  if (!signal.aborted) print(`${banner(server)}\n  Signed in    ${link}\n`);
} catch (error) {
  if (!signal.aborted) exitWith(error);
}
