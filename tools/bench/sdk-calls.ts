import { newId } from '../../src/db/new-id.ts';
import { compareLoads, sendLoad } from './http-load.ts';
import type { LoadFigures } from './http-load.ts';
import { startPlainServer } from './plain-server.ts';
import { report } from './report.ts';
import { createBenchApp, startBenchServer } from './support.ts';

/**
 * `npm run bench -- sdk-calls`: `POST /sdk/install` of new devices with a code, and `POST /sdk/identify` of a new user of
 * each of them, compared with ordinary Koa handlers of two statements, in turns in one run.
 */
const ROUNDS = Number(process.env['BENCH_ROUNDS'] ?? 5);
const SECONDS = Number(process.env['BENCH_SECONDS'] ?? 4);
const IN_FLIGHT = 32;

const { backends, base, key, stop } = await startBenchServer();
const { appId, slugs, sdkKey } = await createBenchApp(base, key, { creators: 20, users: 1 });
const plain = await startPlainServer(backends.migrationsDatabaseUrl, {
  '/sdk/install': async ({ deviceId = '', affiliateCode = '' }, sql) => {
    const [link] = await sql`
      select id, affiliate_id from links where app_id = ${appId} and lower(slug) collate "C" = lower(${affiliateCode})`;
    const [row] = await sql`
      insert into plain_attributions (id, app_id, device_id, affiliate_id, link_id, match_method, touched_at, first_open_at)
      values (${newId('attribution')}, ${appId}, ${deviceId}, ${link?.['affiliate_id'] as string}, ${link?.['id'] as string},
              'code', now(), now())
      on conflict (app_id, device_id) do update set device_id = excluded.device_id
      returning id, affiliate_id`;
    return { attributionId: row?.['id'] as string, affiliateId: row?.['affiliate_id'] as string };
  },
  '/sdk/identify': async ({ deviceId = '', customerUserId = '' }, sql) => {
    const [attribution] = await sql`
      select id from plain_attributions where app_id = ${appId} and device_id = ${deviceId}`;
    const attributionId = attribution?.['id'] as string;
    await sql`
      insert into plain_bindings (id, app_id, customer_user_id, attribution_id, identified_at)
      values (${newId('binding')}, ${appId}, ${customerUserId}, ${attributionId}, now())
      on conflict (app_id, customer_user_id) do nothing`;
    return { attributionId, customerUserId };
  },
});
await plain.sql`create table plain_attributions (like attributions including all)`;
await plain.sql`alter table plain_attributions add foreign key (app_id, affiliate_id, link_id) references links (app_id, affiliate_id, id)`;
await plain.sql`create table plain_bindings (like bindings including all)`;
await plain.sql`alter table plain_bindings add foreign key (app_id, attribution_id) references plain_attributions (app_id, id)`;

const subjects = [
  { port: Number(new URL(base).port), install: [] as LoadFigures[], identify: [] as LoadFigures[] },
  { port: plain.port, install: [] as LoadFigures[], identify: [] as LoadFigures[] },
] as const;
const headers = { authorization: `Bearer ${sdkKey}` };
for (let round = 0; round <= ROUNDS; round += 1) {
  const seconds = round === 0 ? Math.min(SECONDS, 2) : SECONDS;
  for (const { port, install, identify } of subjects) {
    const shared = { port, headers, seconds, inFlight: IN_FLIGHT, perSecond: null };
    const deviceId = `device-${round}-#n`;
    const times = { firstOpenAt: Date.now(), identifiedAt: Date.now() };
    const installed = await sendLoad({
      ...shared,
      path: '/sdk/install',
      fields: { deviceId, affiliateCode: slugs[0], firstOpenAt: times.firstOpenAt },
    });
    // No more users than there are devices, so that each user is bound.
    const identified = await sendLoad({
      ...shared,
      path: '/sdk/identify',
      fields: { deviceId, customerUserId: `new-user-${round}-#n`, identifiedAt: times.identifiedAt },
      most: installed.sent,
    });
    // The first round warms up.
    if (round === 0) continue;
    install.push(installed);
    identify.push(identified);
  }
}
const [ours, ordinary] = subjects;
for (const [call, limit] of [
  ['install', 1],
  ['identify', 0.9],
] as const) {
  const { times, measured } = compareLoads(ours[call], ordinary[call]);
  report({
    path: `\`POST /sdk/${call}\`, ${IN_FLIGHT} in flight`,
    comparedWith: 'an ordinary Koa handler with two statements',
    measured,
    target: `at least ${limit}`,
    isReached: times >= limit,
  });
}
await plain.stop();
await stop();
