import { Writable } from 'node:stream';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { createLogger } from '../../src/config/logger.ts';
import { setUpFounder } from '../support/founder.ts';
import type { Founder } from '../support/founder.ts';
import { runOn } from '../support/postgres-admin.ts';
import { findInHistories, findInTables } from '../support/search-everywhere.ts';
import { startTestService } from '../support/service.ts';
import type { TestService } from '../support/service.ts';

let service: TestService;
let founder: Founder;
const lines: string[] = [];

beforeAll(async () => {
  const sink = new Writable({
    write: (chunk: Buffer, _encoding, done) => {
      lines.push(chunk.toString());
      done();
    },
  });
  service = await startTestService({ logger: createLogger('trace', sink) });
  founder = await setUpFounder(service);
});
afterAll(async () => {
  await service.close();
});

const EMAIL = 'payee-of-ada@example.com';
const NAME = 'Lovelace, Augusta Ada';
const REFERENCE = 'Account 1815-1852';

// @promise payee-nowhere-else
test('a recipient is in no log, audit row, problem, stored response, history or column, whatever becomes of the calls', async () => {
  const affiliate = `/apps/${founder.app.id}/affiliates/${founder.affiliateId}`;
  const put = async (method: string, recipient: object, more: object = {}) =>
    await founder.call<object>('PUT', `${affiliate}/payee`, { body: { method, recipient, ...more } });
  await founder.purchase(await founder.customer(), 10);
  const stored = [
    await put('paypal', { email: EMAIL }),
    await put('wise', { email: EMAIL, name: NAME, receiverType: 'PERSON' }),
    await put('other', { name: NAME, reference: REFERENCE }),
  ];
  expect(stored.map(({ status }) => status)).toEqual([200, 200, 200]);
  await founder.exportCsv();
  const refused = [
    await put('paypal', { email: `=${EMAIL}` }),
    await put('wise', { email: EMAIL, name: `=${NAME}`, receiverType: 'PERSON' }),
    await put('other', { name: NAME, reference: `${REFERENCE}\n\u202e` }),
    await put('paypal', { email: EMAIL }, { expectedVersion: 1 }),
    await founder.call<object>('PUT', `${affiliate}/payee`, {
      body: `{"method":"other","recipient":{"name":"${NAME}","reference":"${REFERENCE}`,
    }),
  ];
  expect(refused.map(({ status }) => status)).toEqual([400, 400, 400, 409, 400]);
  // The database refuses a row.
  await runOn(service.database.url, 'alter table payees add constraint broken check (version < 4) not valid');
  const failed = await fetch(`${service.url}${affiliate}/payee`, {
    method: 'PUT',
    headers: { authorization: `Bearer ${founder.key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ method: 'paypal', recipient: { email: EMAIL } }),
  });
  expect(failed.status).toBe(500);
  await runOn(service.database.url, 'alter table payees drop constraint broken');

  const texts = [EMAIL, NAME, 'Augusta', REFERENCE, '1815-1852'];
  const answers = [...refused.map(({ body }) => JSON.stringify(body)), await failed.text()];
  for (const text of texts) expect(answers.join('\n')).not.toContain(text);
  expect(lines.join('')).toContain('/payee');
  expect(lines.join('')).toContain('request failed');
  for (const text of texts) expect(lines.join('')).not.toContain(text);
  expect(await findInTables(service.sql, texts)).toEqual([]);
  const { found, searched } = await findInHistories(service.temporal, [service.taskQueue], texts);
  expect(found).toEqual([]);
  expect(searched).toBeGreaterThan(0);
});
