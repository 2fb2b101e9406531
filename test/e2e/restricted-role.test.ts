import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { setUpFounder } from '../support/founder.ts';
import type { Founder } from '../support/founder.ts';
import { createDatabase, inDatabase, runOn } from '../support/postgres-admin.ts';
import { startTestService } from '../support/service.ts';
import type { TestService } from '../support/service.ts';

const name = `restricted_${randomBytes(6).toString('hex')}`;
const server = process.env['TEST_POSTGRES_URL'] ?? '';
const owner = inDatabase(server, name);
let service: TestService;
let founder: Founder;

beforeAll(async () => {
  await createDatabase(server, name);
  await runOn(owner, `create role ${name} login password 'test'`);
  await runOn(
    owner,
    `alter default privileges in schema public grant select, insert, update, delete on tables to ${name}`,
  );
  const restricted = new URL(owner);
  restricted.username = name;
  restricted.password = 'test';
  service = await startTestService({
    settings: { databaseUrl: restricted.href, migrationsDatabaseUrl: owner },
  });
  founder = await setUpFounder(service);
});
afterAll(async () => {
  await service?.close();
  await runOn(server, `drop database "${name}" with (force)`);
  await runOn(server, `drop role ${name}`);
});

// @promise restricted-role
test('the service migrates with the role of the owner and works with one that cannot change the schema', async () => {
  const user = await founder.customer();
  const { body } = await founder.purchase(user, 10, { occurredAt: Date.now() - 40 * 86_400_000 });
  expect(body.commissionId).toMatch(/^com_/);
  expect((await founder.exportCsv()).text).toContain(String(body.commissionId));
  const { role } = await service.sql.one<{ role: string }>`select current_user::text as role`;
  expect(role).toBe(name);
  await expect(service.sql`create table more (n integer)`).rejects.toThrow('permission denied');
  await expect(service.sql`alter table commissions disable trigger all`).rejects.toThrow('must be owner');
  await expect(service.sql`copy accounts from program 'id'`).rejects.toThrow('permission denied');
});
