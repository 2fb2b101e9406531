import { newId } from '../../src/db/new-id.ts';
import { compareLoads, sendLoad } from './http-load.ts';
import type { Load, LoadFigures } from './http-load.ts';
import { startPlainServer } from './plain-server.ts';
import { report } from './report.ts';
import { createBenchApp, median, startBenchServer } from './support.ts';

/**
 * `npm run bench -- clicks`: `POST /clicks` compared with an ordinary Koa handler that inserts one row, and with one that stores
 * nothing, and the redirect of a link with the latter, in turns in one run; then clicks that arrive at half of the peak.
 */
const ROUNDS = Number(process.env['BENCH_ROUNDS'] ?? 5);
const SECONDS = Number(process.env['BENCH_SECONDS'] ?? 4);
const IN_FLIGHT = 32;

interface Round extends LoadFigures {
  readonly walBytes: number;
}

const { service, backends, base, key, stop } = await startBenchServer();
const { appId, slugs } = await createBenchApp(base, key, { creators: 20, users: 1 });
const plain = await startPlainServer(backends.migrationsDatabaseUrl, {
  // A look-up of the link and an insert in one statement, one row per request.
  '/clicks': async ({ customerAppId = '', slug = '', claimToken = '' }, sql) => {
    const [row] = await sql`
      insert into plain_clicks (id, app_id, affiliate_id, link_id, claim_token, is_bot, clicked_at)
      select ${newId('click')}, app_id, affiliate_id, id, ${claimToken}, false, now()
        from links where app_id = ${customerAppId} and lower(slug) collate "C" = lower(${slug})
      returning id, affiliate_id`;
    return { clickId: row?.['id'] as string, affiliateId: row?.['affiliate_id'] as string };
  },
  '/nothing': async ({ claimToken }) => ({ claimToken }),
});
await plain.sql`create table plain_clicks (like clicks including all)`;
await plain.sql`alter table plain_clicks add foreign key (app_id, affiliate_id, link_id) references links (app_id, affiliate_id, id)`;

const walPosition = async () =>
  (
    await service.sql.one<{
      bytes: number;
    }>`select pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::bigint as bytes`
  ).bytes;
const servicePort = Number(new URL(base).port);
const { linkSubdomain } = await service.sql.one<{ linkSubdomain: string }>`
  select link_subdomain from apps where id = ${appId}`;
const fields = { customerAppId: appId, slug: slugs[0], claimToken: '#uuid' };
const subjects = [
  { name: 'Tributary', port: servicePort, path: '/clicks', fields, rounds: [] as Round[] },
  { name: 'plain Koa handler', port: plain.port, path: '/clicks', fields, rounds: [] as Round[] },
  { name: 'Koa that stores nothing', port: plain.port, path: '/nothing', fields, rounds: [] as Round[] },
  {
    name: 'redirect',
    port: servicePort,
    path: `/l/${linkSubdomain}/${slugs[0]}`,
    fields: null,
    status: 302,
    headers: { 'user-agent': 'Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X)' },
    rounds: [] as Round[],
  },
] as const;
const requests = { fields, inFlight: IN_FLIGHT };
const measure = async (
  load: Pick<Load, 'port' | 'path' | 'seconds' | 'perSecond' | 'headers' | 'status'> & {
    inFlight?: number;
    fields?: object | null;
  },
) => {
  const before = await walPosition();
  const figures = await sendLoad({ ...requests, ...load });
  return { ...figures, walBytes: ((await walPosition()) - before) / figures.sent };
};

for (const { name: _, rounds: __, ...subject } of subjects) {
  await measure({ ...subject, seconds: Math.min(SECONDS, 2), perSecond: null });
}
for (let round = 0; round < ROUNDS; round += 1) {
  for (const { name: _, rounds, ...subject } of subjects) {
    rounds.push(await measure({ ...subject, seconds: SECONDS, perSecond: null }));
  }
}
for (const { name, rounds } of subjects) {
  const of = (figure: keyof Round) => median(rounds.map((round) => round[figure]));
  process.stdout.write(
    `${name.padEnd(24)} ${IN_FLIGHT} in flight: ${of('perSecond').toFixed(0)} per second, p50 ${of('p50Ms').toFixed(1)} ms, ` +
      `p99 ${of('p99Ms').toFixed(1)} ms, ${of('threadMs').toFixed(3)} ms of the main thread and ` +
      `${of('walBytes').toFixed(0)} bytes of WAL per click\n`,
  );
}
const [ours = [], ordinary = [], nothing = [], redirects = []] = subjects.map(({ rounds }) => rounds);
const compare = (
  path: string,
  [own, theirs]: readonly [readonly Round[], readonly Round[]],
  comparedWith: string,
  limit: number,
) => {
  const { times, measured } = compareLoads(own, theirs);
  report({
    path: `\`${path}\`, ${IN_FLIGHT} in flight`,
    comparedWith,
    measured,
    target: `at least ${limit}`,
    isReached: times >= limit,
  });
};
const NOTHING = 'a Koa handler that parses the body and stores nothing';
compare('POST /clicks', [ours, ordinary], 'an ordinary Koa handler with one insert', 2);
compare('POST /clicks', [ours, nothing], NOTHING, 0.6);
compare('GET /l/…', [redirects, nothing], NOTHING, 0.5);

const half = median(ours.map(({ perSecond }) => perSecond)) / 2;
const arriving = async (port: number) =>
  await measure({ port, path: '/clicks', seconds: SECONDS, perSecond: half, inFlight: 256 });
const textOf = ({ p50Ms, p99Ms }: Round) => `p50 ${p50Ms.toFixed(1)} ms, p99 ${p99Ms.toFixed(1)} ms`;
const open = await arriving(servicePort);
const openPlain = await arriving(plain.port);
report({
  path: '`POST /clicks`, half of its peak in open loop',
  comparedWith: 'an ordinary Koa handler with one insert',
  measured: `${half.toFixed(0)}/s arrive: ${textOf(open)} against ${textOf(openPlain)}`,
  target: 'p99 at most the same',
  isReached: open.p99Ms <= openPlain.p99Ms,
});
await plain.stop();
await stop();
