import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { eventually } from '../support/eventually.ts';
import { setUpFounder } from '../support/founder.ts';
import type { Founder } from '../support/founder.ts';
import { startTestService } from '../support/service.ts';
import type { TestService } from '../support/service.ts';

let service: TestService;
let founder: Founder;

beforeAll(async () => {
  service = await startTestService();
  founder = await setUpFounder(service);
});
afterAll(async () => {
  await service.close();
});

test('a running service deletes expired idempotency keys and address keys', async () => {
  const stored = async () =>
    (
      await service.sql.one<{ rows: number }>`
        select ((select count(*) from idempotency_keys) + (select count(*) from address_keys))::int as rows`
    ).rows;
  const path = `/apps/${founder.app.id}/affiliates`;
  const headers = { 'idempotency-key': 'yesterday' };
  await founder.call('POST', path, { body: { name: 'Once' }, headers });
  await service.sql`
    insert into address_keys (day_starts_at, ciphertext, encryption_key_id)
    values (date_trunc('day', now() - interval '10 days', 'UTC'), ''::bytea, 'none')`;
  expect(await stored()).toBe(2);
  await service.sql`update idempotency_keys set expires_at = now()`;
  service = await service.restart();
  founder.url = service.url;
  await eventually('both rows are deleted', async () => (await stored()) === 0);
});
