import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { setUpFounder } from '../support/founder.ts';
import type { Founder } from '../support/founder.ts';
import { createDatabase, inDatabase, runOn } from '../support/postgres-admin.ts';
import { runAdminIn } from '../support/run-admin.ts';
import { startTestService } from '../support/service.ts';
import type { TestService } from '../support/service.ts';

const name = `restricted_${randomBytes(6).toString('hex')}`;
const server = process.env['TEST_POSTGRES_URL'] ?? '';
const owner = inDatabase(server, name);
const ofCommands = `${name}_cli`;
let service: TestService;
let founder: Founder;

async function grantRows(url: string): Promise<void> {
  await runOn(
    url,
    `alter default privileges in schema public grant select, insert, update, delete on tables to ${name}`,
  );
}

/** Returns an address with the role that can only read and write rows. */
function restricted(url: string): string {
  const address = new URL(url);
  address.username = name;
  address.password = 'test';
  return address.href;
}

beforeAll(async () => {
  await createDatabase(server, name);
  await runOn(owner, `create role ${name} login password 'test'`);
  await grantRows(owner);
  service = await startTestService({
    settings: { databaseUrl: restricted(owner), migrationsDatabaseUrl: owner },
  });
  founder = await setUpFounder(service);
});
afterAll(async () => {
  await service?.close();
  for (const each of [name, ofCommands])
    await runOn(server, `drop database if exists "${each}" with (force)`);
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

// @promise restricted-role
test('the command line creates the schema with the role of the owner and works with the other', async () => {
  await createDatabase(server, ofCommands);
  const url = inDatabase(server, ofCommands);
  await grantRows(url);
  const environment = {
    DATABASE_URL: restricted(url),
    MIGRATIONS_DATABASE_URL: url,
    SECRETS_KEY: randomBytes(32).toString('base64'),
  };
  const admin = async (...args: string[]) => {
    const { status, out, err } = await runAdminIn(environment, ...args, '--json');
    expect({ status, err }).toEqual({ status: 0, err: expect.any(String) });
    return JSON.parse(out) as unknown;
  };
  const account = await admin('accounts', 'create', '--name', 'Ann');
  expect(await admin('accounts', 'list')).toEqual([expect.objectContaining(account as object)]);
  expect(await admin('migrate')).toEqual({ migrations: [] });
});
