import { execFile, execFileSync, spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { createHash, randomBytes, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { chmod, cp, mkdir, mkdtemp, open, readFile, rename } from 'node:fs/promises';
import { Agent, createServer, request } from 'node:http';
import { connect as connectHttp2 } from 'node:http2';
import { connect as connectTo } from 'node:net';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { findTemporalProgram } from '../temporal/local-server/program.ts';
import { projectRoot } from '../src/config/project-root.ts';
import { connect } from '../src/db/sql.ts';
import { checkLedger } from '../src/db/ledger-checks/index.ts';
import { listAppIds } from '../src/db/apps.ts';
import { DAY_MS } from '../src/domain/time.ts';
import { startEmbeddedPostgres } from '../src/embedded/postgres.ts';
import { endWithThisProcess, tryListen } from '../src/embedded/processes.ts';
import { eventually } from '../test/support/eventually.ts';
import { environmentOf, readCompose } from './compose.ts';
import { startNameServer } from './name-server.ts';
import { bodyOf, revenuecatEvent } from './provider-payloads.ts';
import { buildTemporalServer, runScript, startTemporalServer } from './temporal-server.ts';
import { failingChecks, runTool, say } from './run-tool.ts';
import { WITHOUT_LIMITS } from './without-limits.ts';

/*
 * `npm run test:production-stack -- [--clients N]`: runs the topology of docker-compose.yml without containers, with the
 * same scripts, environments and configuration files: Postgres with its roles, the production Temporal server, migrations,
 * two service processes from the files of the image, and HAProxy. Tells one story through the balancer, then restarts every
 * process in turn under load. Fails when anything is lost, doubled, or answered with a 5xx other than 503 with Retry-After.
 * Needs psql and haproxy (apt-get install postgresql-client haproxy).
 */

const run = promisify(execFile);
/** The user of the image. */
const IMAGE_USER = 1000;
const PROCESS_ADDRESSES = ['127.0.0.2', '127.0.0.3'] as const;
const DRAIN_SECONDS = 4;
/** The limit of the balancer here, and an address to which it does not apply. */
const CONNECTIONS_PER_ADDRESS = 60;
const PROXY_ADDRESS = '127.0.0.10';
const clientsFlag = process.argv.indexOf('--clients');
const CLIENTS = clientsFlag === -1 ? 6 : Number(process.argv[clientsFlag + 1]);

for (const program of ['psql', 'haproxy']) {
  try {
    execFileSync('which', [program], { env: { PATH: `${process.env['PATH']}:/usr/sbin` } });
  } catch {
    say(`${program} is missing: apt-get install postgresql-client haproxy`);
    process.exit(1);
  }
}

/** Runs the command of the Dockerfile that installs the packages of the image, once for each lock file. Returns their folder. */
async function productionPackages(): Promise<string> {
  const dockerfile = await readFile(path.join(projectRoot, 'Dockerfile'), 'utf8');
  const [, install = ''] = /^RUN (npm ci --omit=dev (?:.*\\\n)*.*)$/m.exec(dockerfile) ?? [];
  if (install === '') throw new Error('the Dockerfile has no "npm ci" without development packages');
  const lock = await readFile(path.join(projectRoot, 'package-lock.json'), 'utf8');
  const name = createHash('sha256').update(install).update(lock).digest('hex').slice(0, 16);
  const folder = path.join(projectRoot, '.cache/production-packages', name);
  if (existsSync(folder)) return folder;
  say('Installing the packages of the image');
  const unfinished = `${folder}-${randomUUID()}`;
  await mkdir(unfinished, { recursive: true });
  for (const file of ['package.json', 'package-lock.json', '.npmrc'])
    await cp(path.join(projectRoot, file), path.join(unfinished, file));
  await run('sh', ['-c', install], { cwd: unfinished });
  await rename(unfinished, folder);
  return folder;
}

/** Lays out the files that the last stage of the Dockerfile copies, readable by everybody. */
async function layOutImage(root: string): Promise<void> {
  const dockerfile = await readFile(path.join(projectRoot, 'Dockerfile'), 'utf8');
  const lastStage = dockerfile.slice(dockerfile.lastIndexOf('\nFROM '));
  const packages = await productionPackages();
  for (const [, stage, names = ''] of lastStage.matchAll(/^COPY (?:--from=(\w+) )?(.*)$/gm)) {
    const paths = names.split(' ');
    const target = paths.pop() ?? '';
    for (const name of paths) {
      const from = stage === 'packages' ? packages : projectRoot;
      const relative = name.replace(/^\/app\//, '');
      const to = target === './' ? path.join(root, path.basename(relative)) : path.join(root, target);
      await cp(path.join(from, relative), to, { recursive: true });
    }
  }
}

/** Makes every file read-only for a command, then takes all rights from it. */
const AS_IN_THE_IMAGE = `mount --make-rprivate / && mount -o remount,bind,ro / &&
  exec setpriv --reuid=${IMAGE_USER} --regid=${IMAGE_USER} --clear-groups --no-new-privs --bounding-set=-all "$@"`;

/** Returns the program and arguments that run a command as in the image, when this process is root: other users can't. */
function asInTheImage(command: readonly string[]): [string, string[]] {
  const [program = '', ...args] = command;
  if (process.getuid?.() !== 0) return [program, args];
  return ['unshare', ['--mount', 'sh', '-c', AS_IN_THE_IMAGE, 'sh', ...command]];
}

interface RunningProcess {
  readonly child: ChildProcess;
  readonly ended: Promise<number | null>;
  readonly errors: () => string;
  /** The end of the log. */
  readonly lastLines: () => string;
}

function start(command: readonly string[], cwd: string, env: Record<string, string>): RunningProcess {
  const [program, args] = asInTheImage(command);
  const child = spawn(program, args, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] });
  const stopWatching = endWithThisProcess(child.pid ?? 0, 'TERM');
  let errors = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    errors = (errors + text).slice(-4_000);
  });
  let last = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    last = (last + text).slice(-4_000);
  });
  const ended = new Promise<number | null>((resolve) => {
    child.once('exit', (status) => {
      stopWatching();
      resolve(status);
    });
  });
  return { child, ended, errors: () => errors, lastLines: () => last };
}

interface Answer {
  readonly status: number;
  readonly retryAfter: string | undefined;
  readonly text: string;
}

const agent = new Agent({ keepAlive: true, maxSockets: 64 });

/** Sends a request on a connection that clients keep open. Rejects when the connection fails. */
async function send(
  base: string,
  method: string,
  route: string,
  { body, headers = {} }: { body?: Buffer | object; headers?: Record<string, string> } = {},
): Promise<Answer> {
  const content = body === undefined || Buffer.isBuffer(body) ? body : Buffer.from(JSON.stringify(body));
  return await new Promise((resolve, reject) => {
    const { hostname, port } = new URL(base);
    const type =
      content === undefined ? {} : { 'content-type': 'application/json', 'content-length': content.length };
    const sent = request(
      { hostname, port, path: route, method, agent, headers: { ...type, ...headers } },
      (response) => {
        let text = '';
        response.setEncoding('utf8').on('data', (part: string) => (text += part));
        response.on('error', reject);
        response.on('end', () =>
          resolve({ status: response.statusCode ?? 0, retryAfter: response.headers['retry-after'], text }),
        );
      },
    );
    sent.on('error', reject);
    sent.end(content);
  });
}

await buildTemporalServer(say);
const temporalProgram = await findTemporalProgram({ onProgress: say });
const folder = await mkdtemp(path.join(tmpdir(), 'tributary-stack-'));
await chmod(folder, 0o755);
const stops: (() => Promise<void>)[] = [];

const password = () => randomBytes(24).toString('hex');

/** Whether every check of the readiness at an address succeeds. */
const isReady = async (base: string) =>
  await send(base, 'GET', '/readyz').then(
    ({ status, text }) => status === 200 && failingChecks(text)?.length === 0,
    () => false,
  );

const purchaseOf = (userId: string) =>
  bodyOf(revenuecatEvent({ userId, usd: 10, occurredAt: Date.now() - 40 * DAY_MS }));

/** What the balancer has passed on. */
interface PassedOn {
  readonly headers: Readonly<Record<string, string>>;
  readonly parts: number;
}

/** Starts a server that answers with what it received, behind the balancer. Returns its port. */
async function startEcho(): Promise<number> {
  const server = createServer((incoming, response) => {
    let parts = 0;
    incoming.on('data', () => (parts += 1));
    incoming.on('end', () => response.end(JSON.stringify({ headers: incoming.headers, parts })));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  stops.push(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  return (server.address() as AddressInfo).port;
}

const CLIENT_HEADERS = [
  'x-forwarded-host',
  'x-forwarded-proto',
  'x-forwarded-port',
  'x-real-ip',
  'forwarded',
];
const BODY_BYTES = 2_000;
/** A body in chunks of a byte would be as many parts as bytes without the balancer. */
const MOST_PARTS = 10;

/** Checks what a balancer passes on of headers that a client chooses, and of a body in chunks of a byte. */
async function checkPassedOn(balancerPort: number): Promise<void> {
  const base = `http://127.0.0.1:${balancerPort}`;
  await eventually(
    'the balancer passes requests on',
    async () =>
      await send(base, 'GET', '/').then(
        ({ status }) => status === 200,
        () => false,
      ),
  );
  const answer = await new Promise<string>((resolve, reject) => {
    const headers = Object.fromEntries(CLIENT_HEADERS.map((name) => [name, 'other.example']));
    const sent = request(
      { port: balancerPort, host: '127.0.0.1', method: 'POST', path: '/clicks', headers },
      (response) => {
        let text = '';
        response.setEncoding('utf8').on('data', (part: string) => (text += part));
        response.on('end', () => resolve(text));
      },
    ).on('error', reject);
    sent.setNoDelay(true);
    const write = (left: number) => {
      if (left === 0) sent.end();
      else sent.write('x', () => write(left - 1));
    };
    write(BODY_BYTES);
  });
  const { headers, parts } = JSON.parse(answer) as PassedOn;
  const passed = CLIENT_HEADERS.filter((name) => headers[name] !== undefined);
  if (passed.length > 0) throw new Error(`the balancer passes on ${passed.join(', ')}`);
  if (headers['x-forwarded-for'] !== '127.0.0.1')
    throw new Error(`the balancer says that the client is ${headers['x-forwarded-for']}`);
  if (parts > MOST_PARTS) throw new Error(`a body of ${BODY_BYTES} bytes arrives in ${parts} parts`);
}

async function main(): Promise<void> {
  const image = path.join(folder, 'image');
  await layOutImage(image);
  const { stdout: size } = await run('du', ['-sm', image]);
  say(`The files of the image have ${size.split('\t')[0]} MB`);
  const programs = path.join(folder, 'programs');
  await mkdir(programs);
  await cp(temporalProgram, path.join(programs, 'temporal'));

  const postgres = await startEmbeddedPostgres({
    dataDir: path.join(folder, 'data'),
    durable: false,
    onProgress: say,
  });
  stops.push(() => postgres.stop());
  const server = new URL(postgres.ownerUrl);
  const variables = {
    PUBLIC_URL: 'https://tributary.example.com',
    SECRETS_KEY: randomBytes(32).toString('base64'),
    POSTGRES_HOST: server.hostname,
    POSTGRES_PORT: server.port,
    POSTGRES_USER: server.username,
    POSTGRES_PASSWORD: decodeURIComponent(server.password),
    OWNER_PASSWORD: password(),
    SERVICE_PASSWORD: password(),
    TEMPORAL_PASSWORD: password(),
    DRAIN_SECONDS: String(DRAIN_SECONDS),
    RATES_URL: 'off',
    LOG_LEVEL: 'info',
    MAX_CONNECTIONS_PER_ADDRESS: String(CONNECTIONS_PER_ADDRESS),
    TRUSTED_PROXIES: PROXY_ADDRESS,
    ...WITHOUT_LIMITS,
  };
  // The built-in Postgres has a database `tributary` already.
  const database = 'tributary_production';
  const inDatabase = (environment: Record<string, string>) =>
    Object.fromEntries(
      Object.entries(environment).map(([name, value]) => [
        name,
        value.replace('/tributary?', `/${database}?`),
      ]),
    );
  // Every one-shot runs twice: an update runs it again.
  for (let time = 1; time <= 2; time += 1) {
    // A server that logs every statement shows what the script sends.
    const environment = {
      ...environmentOf('databases', variables),
      TRIBUTARY_DATABASE: database,
      PGOPTIONS: '-c log_statement=all',
    };
    await runScript('postgres/set-up.sh', environment);
  }
  const statements = await readFile(path.join(folder, 'data/postgres.log'), 'utf8');
  if (!statements.includes("PASSWORD 'SCRAM-SHA-256$"))
    throw new Error('the log of Postgres has no statement that sets a password');
  for (const name of ['OWNER_PASSWORD', 'SERVICE_PASSWORD', 'TEMPORAL_PASSWORD'] as const)
    if (statements.includes(variables[name])) throw new Error(`the log of Postgres shows ${name}`);
  const temporal = await startTemporalServer({
    postgres: { host: server.hostname, port: server.port },
    password: variables.TEMPORAL_PASSWORD,
    logFile: path.join(folder, 'temporal.log'),
  });
  stops.push(temporal.stop);
  for (let time = 1; time <= 2; time += 1) {
    const environment = {
      ...environmentOf('temporal-namespace', variables),
      TEMPORAL_ADDRESS: temporal.address,
    };
    await runScript('temporal/set-up-namespace.sh', environment, programs);
  }
  say(`The production Temporal server is up at ${temporal.address}, with its namespace`);

  const PATH = process.env['PATH'] ?? '';
  const { command: migrate = [] } = readCompose().services['migrations'] ?? {};
  const migrations = { PATH, ...inDatabase(environmentOf('migrations', variables)) };
  for (let time = 1; time <= 2; time += 1) {
    const { ended, errors } = start(migrate, image, migrations);
    if ((await ended) !== 0) throw new Error(`the migrations failed: ${errors()}`);
  }

  const [port, metricsPort] = [await tryListen(0), await tryListen(0)];
  const environment = {
    PATH,
    NODE_ENV: 'production',
    ...inDatabase(environmentOf('tributary', variables)),
    TEMPORAL_ADDRESS: temporal.address,
    PORT: String(port),
    METRICS_PORT: String(metricsPort),
  };
  const processes = new Map<string, RunningProcess>();
  const launch = (host: string) => {
    const started = start(['node', '--enable-source-maps', 'dist/src/main.js'], image, {
      ...environment,
      HOST: host,
      METRICS_HOST: host,
    });
    processes.set(host, started);
    return started;
  };
  const stopProcess = async (host: string) => {
    const running = processes.get(host);
    running?.child.kill('SIGTERM');
    return await running?.ended;
  };
  for (const host of PROCESS_ADDRESSES) launch(host);
  stops.push(async () => {
    await Promise.all(PROCESS_ADDRESSES.map(stopProcess));
  });

  const configFile = path.join(projectRoot, 'deploy/haproxy/haproxy.cfg');
  /** Starts HAProxy with the configuration of the deployment in front of the processes at `hosts`. Returns its port. */
  const startBalancer = async (hosts: () => string[], servicePort: number, log: string) => {
    const names = await startNameServer((name) => (name === 'tributary' ? hosts() : []));
    stops.push(async () => names.close());
    const listenPort = await tryListen(0);
    const env = {
      PATH: `${PATH}:/usr/sbin`,
      ...environmentOf('balancer', variables),
      LISTEN: `127.0.0.1:${listenPort}`,
      SERVICE_PORT: String(servicePort),
      DNS_SERVER: names.address,
    };
    await run('haproxy', ['-c', '-f', configFile], { env });
    const file = await open(path.join(folder, log), 'w');
    const balancer = spawn('haproxy', ['-db', '-f', configFile], {
      env,
      stdio: ['ignore', file.fd, file.fd],
    });
    const forget = endWithThisProcess(balancer.pid ?? 0, 'TERM');
    stops.push(async () => {
      balancer.kill('SIGTERM');
      forget();
      await file.close();
    });
    return listenPort;
  };
  const balancerPort = await startBalancer(() => [...processes.keys()], port, 'balancer.log');
  const base = `http://127.0.0.1:${balancerPort}`;
  await eventually('the service is ready behind the balancer', async () => await isReady(base), 60_000).catch(
    (error: unknown) => {
      throw new Error([...processes.values()].map(({ errors }) => errors()).join('\n'), { cause: error });
    },
  );
  say(`Two service processes are ready behind HAProxy at ${base}`);

  // --- One address cannot take the connections of the balancer ---

  const closedOf = async (localAddress: string) => {
    const sockets = Array.from({ length: CONNECTIONS_PER_ADDRESS + 20 }, () =>
      connectTo({ host: '127.0.0.1', port: balancerPort, localAddress }).on('error', () => {}),
    );
    await sleep(1_500);
    const closed = sockets.filter((socket) => socket.closed).length;
    const served = await isReady(base);
    for (const socket of sockets) socket.destroy();
    return { closed, served };
  };
  for (const [address, closed] of [
    ['127.0.0.9', 20],
    [PROXY_ADDRESS, 0],
  ] as const) {
    const found = await closedOf(address);
    if (found.closed !== closed || !found.served)
      throw new Error(`connections of ${address}: ${JSON.stringify(found)} instead of ${closed} closed`);
  }
  say('The balancer limits the connections of an address, and not those of a trusted proxy');

  const speaksHttp2 = await new Promise<boolean>((resolve) => {
    const client = connectHttp2(base).on('error', () => {});
    client
      .request({ ':path': '/healthz' })
      .on('error', () => {})
      .on('response', () => {
        resolve(true);
        client.destroy();
      });
    client.on('close', () => resolve(false));
  });
  if (speaksHttp2) throw new Error('the balancer speaks HTTP/2, so that a connection has a hundred requests');
  say('A connection of the balancer has one request at a time');

  await checkPassedOn(await startBalancer(() => ['127.0.0.1'], await startEcho(), 'echo-balancer.log'));
  say(
    'The balancer passes no header of a client about hosts on, and a body in chunks of a byte in few parts',
  );

  // --- One story, from the click to the payout CSV ---

  const admin = async (...args: string[]) => {
    const [program, rest] = asInTheImage(['node', 'dist/src/cli/main.js', ...args, '--json']);
    const { stdout } = await run(program, rest, { cwd: image, env: environment });
    return JSON.parse(stdout) as { id: string; key: string };
  };
  const account = await admin('accounts', 'create', '--name', 'Example');
  const { key } = await admin(
    'keys',
    'create',
    '--account',
    account.id,
    '--permissions',
    'read,write,setup,payout',
  );
  const call = async (method: string, route: string, body?: object, bearer: string = key) => {
    const headers = { authorization: `Bearer ${bearer}` };
    const answer = await send(base, method, route, { headers, ...(body === undefined ? {} : { body }) });
    if (answer.status >= 300) throw new Error(`${method} ${route}: ${answer.status} ${answer.text}`);
    return answer.text.startsWith('{')
      ? (JSON.parse(answer.text) as Record<string, string>)
      : { text: answer.text };
  };
  const app = await call('POST', '/apps', { name: 'Lantern', commissionRateBps: 2000, holdPeriodDays: 0 });
  const { secret = '' } = await call('PUT', `/apps/${app['id']}/webhooks/revenuecat/secret`, {});
  const { id: affiliateId = '' } = await call('POST', `/apps/${app['id']}/affiliates`, { name: 'Creator' });
  await call('POST', `/apps/${app['id']}/links`, {
    affiliateId,
    slug: 'spring',
    destinationUrl: 'https://example.com',
  });
  const sdkKey = app['sdkKey'] ?? '';
  const newUser = async () => {
    const [deviceId, claimToken, user] = [randomUUID(), randomUUID(), `user-${randomUUID()}`];
    const at = Date.now() - 60 * DAY_MS;
    await call('POST', '/clicks', { customerAppId: app['id'], slug: 'spring', claimToken, clickedAt: at });
    await call('POST', '/sdk/install', { deviceId, claimToken, firstOpenAt: at + 1 }, sdkKey);
    await call('POST', '/sdk/identify', { deviceId, customerUserId: user, identifiedAt: Date.now() }, sdkKey);
    return user;
  };
  const webhook = async (body: Buffer) =>
    await send(base, 'POST', `/webhooks/revenuecat/${app['id']}`, {
      body,
      headers: { authorization: secret },
    });
  const users = await Promise.all(Array.from({ length: 10 }, newUser));
  const [firstUser = ''] = users;
  const bought = await webhook(purchaseOf(firstUser));
  if (!bought.text.includes('com_')) throw new Error(`the purchase earned nothing: ${bought.text}`);
  const exportRoute = `/apps/${app['id']}/affiliates/${affiliateId}/payouts/export`;
  const { text: csv = '' } = await call('POST', exportRoute);
  if (!csv.includes(',200,2.00,USD,')) throw new Error(`the payout lacks the commission: ${csv}`);
  const writes = start(['touch', path.join(image, 'written')], '/', { PATH });
  if ((await writes.ended) === 0 && process.getuid?.() === 0)
    throw new Error('a process of the image can write a file');
  say('The story is complete: a click, an install, a purchase, and its commission in the payout CSV');

  // --- Rolling restarts under load ---

  const counts = new Map<string, number>();
  const bad: string[] = [];
  const retried = { times: 0 };
  const count = (name: string, { status, retryAfter, text }: Answer) => {
    counts.set(`${name} ${status}`, (counts.get(`${name} ${status}`) ?? 0) + 1);
    if (status >= 500 && !(status === 503 && retryAfter !== undefined)) bad.push(`${name} ${status} ${text}`);
  };
  const load = { isRunning: true };
  let purchases = 1;
  const clicked: string[] = [];
  /** Sends as a provider or a client does: again after a 503, a 502, or a failed connection. */
  const untilDone = async (name: string, attempt: () => Promise<Answer>) => {
    for (let time = 1; ; time += 1) {
      const answer = await attempt().catch((error: unknown) => {
        bad.push(`${name}: the connection failed: ${String(error)}`);
        return undefined;
      });
      if (answer !== undefined) count(name, answer);
      if (answer !== undefined && answer.status < 500) return answer;
      if (time === 20) throw new Error(`${name} failed ${time} times`);
      retried.times += 1;
      await sleep(200);
    }
  };
  const client = async (n: number) => {
    for (let turn = n; load.isRunning; turn += 1) {
      switch (turn % 6) {
        case 0:
        case 1:
        case 2: {
          const body = purchaseOf(users[turn % users.length] ?? '');
          purchases += 1;
          await untilDone('webhook', () => webhook(body));
          break;
        }
        case 3: {
          const claimToken = randomUUID();
          const body = { customerAppId: app['id'], slug: 'spring', claimToken };
          await untilDone('click', () => send(base, 'POST', '/clicks', { body }));
          clicked.push(claimToken);
          break;
        }
        case 4: {
          const headers = { authorization: `Bearer ${key}` };
          await untilDone('read', () => send(base, 'GET', `/apps/${app['id']}/overview`, { headers }));
          break;
        }
        default: {
          const headers = { authorization: `Bearer ${key}`, 'idempotency-key': randomUUID() };
          await untilDone('export', () => send(base, 'POST', exportRoute, { headers }));
        }
      }
    }
  };
  const startedAt = Date.now();
  const clients = Array.from({ length: CLIENTS }, async (_, n) => await client(n));
  await sleep(1_000);
  for (const host of PROCESS_ADDRESSES) {
    const stoppedAt = Date.now();
    const status = await stopProcess(host);
    if (status !== 0)
      throw new Error(`the process at ${host} ended with ${status}: ${processes.get(host)?.errors()}`);
    const drained = Date.now() - stoppedAt;
    const stopLine = /\{[^\n]*"msg":"stopped in order"[^\n]*\}/.exec(processes.get(host)?.lastLines() ?? '');
    const { requestsMs, loopsMs, startsMs, workersMs } = JSON.parse(stopLine?.[0] ?? '{}') as Record<
      string,
      number
    >;
    launch(host);
    await eventually('the new process is ready', async () => await isReady(`http://${host}:${port}`), 60_000);
    // As Compose and Kubernetes do: the next one is stopped when the balancer uses this one.
    await sleep(2_500);
    say(
      `${host} was restarted: ${drained} ms to stop (requests ${requestsMs}, loops ${loopsMs}, starts ${startsMs}, workers ${workersMs}), ${Date.now() - stoppedAt} ms until it served again`,
    );
  }
  load.isRunning = false;
  await Promise.all(clients);
  const seconds = (Date.now() - startedAt) / 1_000;

  // --- Nothing is lost or doubled ---

  const sql = connect({
    url:
      inDatabase({ url: environmentOf('migrations', variables)['MIGRATIONS_DATABASE_URL'] ?? '' })['url'] ??
      '',
  });
  stops.push(() => sql.close());
  await eventually(
    'every delivery has its outcome',
    async () => {
      const { n } = await sql.one<{
        n: number;
      }>`select count(*)::int as n from deliveries where completed_at is null`;
      return n === 0;
    },
    60_000,
  );
  const found = await sql.one<{
    payments: number;
    earned: number;
    cents: number;
    doubled: number;
    clicks: number;
  }>`
    select (select count(*)::int from payments) as payments,
           (select count(*)::int from commissions) as earned,
           (select coalesce(sum(amount_cents), 0)::bigint from commissions) as cents,
           (select count(*)::int from (select payment_id from commissions group by payment_id having count(*) > 1) d) as doubled,
           (select count(*)::int from clicks where claim_token = any(${clicked}::text[]::uuid[])) as clicks`;
  const wanted = {
    payments: purchases,
    earned: purchases,
    cents: purchases * 200,
    doubled: 0,
    clicks: clicked.length,
  };
  for (const [name, value] of Object.entries(wanted)) {
    const actual = found[name as keyof typeof found];
    if (actual !== value) bad.push(`${name}: ${actual} instead of ${value}`);
  }
  const { text: rest = '' } = await call('POST', exportRoute);
  const { paid } = await sql.one<{ paid: number }>`
    select coalesce(sum(amount_cents), 0)::bigint as paid from commissions where payout_id is not null`;
  if (paid !== wanted.cents)
    bad.push(`paid ${paid} instead of ${wanted.cents} cents; the last export: ${rest.slice(0, 300)}`);
  const checks = await checkLedger(sql, await listAppIds(sql));
  bad.push(...checks.filter(({ ok }) => !ok).map(({ name }) => `ledger check ${name}`));
  say(
    `${CLIENTS} clients for ${seconds.toFixed(0)} s: ${purchases} purchases, ${clicked.length} clicks, ${retried.times} retries by clients`,
  );
  say(
    `responses: ${[...counts]
      .map(([name, n]) => `${name}: ${n}`)
      .toSorted()
      .join(', ')}`,
  );
  if (bad.length > 0) throw new Error(`${bad.length} problems:\n${bad.slice(0, 20).join('\n')}`);
  say('Nothing was lost or doubled, and every 5xx was a 503 with Retry-After.');
}

stops.push(async () => {
  agent.destroy();
});
await runTool(main, {
  stops,
  folder,
  onFailure: async () => {
    for (const name of ['temporal.log', 'balancer.log']) {
      const text = await readFile(path.join(folder, name), 'utf8').catch(() => '');
      say(`--- ${name} ---\n${text.slice(-3_000)}`);
    }
  },
});
