// Starts each example of a server against the real service, and proves a purchase of a user who signed up there. Needs
// `npm ci && npm run build` at the root and in sdks/js, and `npm ci` in the folders express and koa.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { after, before, test } from 'node:test';
import { createApp, createLink, follow, purchase, startService } from '../conformance/service.mjs';

let service;
let app;
const children = [];
before(async () => {
  service = await startService();
  app = await createApp(service);
});
after(async () => {
  for (const child of children) child.kill();
  await service?.stop();
});

/** Starts `sdks/examples/NAME/server.mjs`. Returns its address. */
async function start(name) {
  const child = spawn(process.execPath, ['server.mjs', '0'], {
    cwd: new URL(`${name}/`, import.meta.url),
    env: { ...process.env, TRIBUTARY_SDK_KEY: app.sdkKey, TRIBUTARY_API_BASE_URL: service.url },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  children.push(child);
  const [line] = await once(child.stdout, 'data');
  return String(line).trim();
}

async function assertEarns(userId) {
  const commission = await purchase(service, app, userId);
  assert.equal(commission.affiliateId, app.affiliateId);
  assert.equal(commission.amountCents, 2000);
}

test('a purchase of a user who signed up in the example without a framework earns', async () => {
  const shop = await start('node');
  const url = await follow(service, await createLink(service, app, 'plain', `${shop}/`));
  const { search } = new URL(url);
  const response = await fetch(`${shop}/signup${search}&user=user-plain`, { method: 'POST' });
  assert.deepEqual(await response.json(), { affiliateId: app.affiliateId });
  await assertEarns('user-plain');
});

test('a purchase of a user who signed up in the example with Express earns', async () => {
  const shop = await start('express');
  const url = await follow(service, await createLink(service, app, 'express', `${shop}/`));
  const response = await fetch(`${shop}/signup`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ userId: 'user-express', url }),
  });
  assert.deepEqual(await response.json(), { affiliateId: app.affiliateId });
  await assertEarns('user-express');
});

test('a purchase of a user who visited and signed up in the example with Koa earns', async () => {
  const shop = await start('koa');
  const visit = await fetch(await follow(service, await createLink(service, app, 'koa', `${shop}/`)));
  const [cookie] = visit.headers.get('set-cookie').split(';');
  const response = await fetch(`${shop}/signup?user=user-koa`, { method: 'POST', headers: { cookie } });
  assert.deepEqual(await response.json(), { isBound: true, affiliateId: app.affiliateId });
  await assertEarns('user-koa');
});
