import { chown, mkdtemp, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { readConfig } from '../../src/config/config.ts';
import { listenTo, notify } from '../../src/db/notifications.ts';
import { connect } from '../../src/db/sql.ts';
import { startEmbeddedPostgres } from '../../src/embedded/postgres.ts';
import type { EmbeddedPostgres } from '../../src/embedded/postgres.ts';
import { createAuthority, createCertificate } from '../support/certificates.ts';
import type { Certificate } from '../support/certificates.ts';
import { startChildService } from '../support/child-service.ts';
import { eventually } from '../support/eventually.ts';
import { setUpFounder } from '../support/founder.ts';
import { runOn } from '../support/postgres-admin.ts';
import { runAdminIn } from '../support/run-admin.ts';
import { startTestService, TEST_SECRETS_KEY } from '../support/service.ts';

let dataDir: string;
let server: EmbeddedPostgres;
/** Certificates of the authority that signs those of the server, and of another one. */
let authority: Certificate;
let otherAuthority: Certificate;

const file = (name: string) => path.join(dataDir, name);

/** Makes the server use a certificate for the hosts in `hosts`, such as `DNS:localhost`. */
async function useCertificate(name: string, hosts: string): Promise<void> {
  const { certificate, key } = await createCertificate(dataDir, authority, { name, hosts });
  // Postgres reads the key as its own user.
  const { uid, gid } = await stat(file('postgres/'));
  for (const each of [certificate, key]) await chown(each, uid, gid);
  for (const setting of [`ssl_cert_file = '${certificate}'`, `ssl_key_file = '${key}'`, 'ssl = on'])
    await runOn(server.ownerUrl, `alter system set ${setting}`);
  await runOn(server.ownerUrl, 'select pg_reload_conf()');
  const sql = connect({ url: server.ownerUrl, max: 1 });
  await eventually('the server uses the certificate', async () => {
    const { used } = await sql.one<{ used: string }>`select current_setting('ssl_cert_file') as used`;
    return used === certificate;
  });
  await sql.close();
}

interface Address {
  readonly host?: string;
  readonly mode?: string;
  readonly trust?: string;
}

/** Returns an address of the server with TLS. */
function withTls(address: string, { host = 'localhost', mode = 'verify-full', trust }: Address): string {
  const url = new URL(address);
  url.hostname = host;
  url.searchParams.set('sslmode', mode);
  if (trust !== undefined) url.searchParams.set('sslrootcert', trust);
  return url.href;
}

const variables = (options: Address) => ({
  DATABASE_URL: withTls(server.url, options),
  MIGRATIONS_DATABASE_URL: withTls(server.ownerUrl, options),
  SECRETS_KEY: TEST_SECRETS_KEY.toString('base64'),
});

const admin = async (environment: Record<string, string>, ...args: string[]) =>
  await runAdminIn(environment, ...args, '--json');

async function startOn(environment: Record<string, string>) {
  const { databaseUrl = '', migrationsDatabaseUrl } = readConfig(environment);
  return await startTestService({ settings: { databaseUrl, migrationsDatabaseUrl } });
}

/** Expects that the service, `migrate` and another command refuse the database, with the same text. */
async function expectRefusal(options: Address, advice: RegExp): Promise<void> {
  const environment = variables(options);
  const texts = [
    (await startOn(environment).catch((error: Error) => error)) as Error,
    await admin(environment, 'migrate'),
    await admin(environment, 'accounts', 'list'),
    await admin(environment, 'export', file('archive')),
  ].map((each) => (each instanceof Error ? each.message : each.err));
  for (const text of texts) {
    expect(text).toMatch(advice);
    expect(text).not.toContain(new URL(server.url).password);
  }
}

beforeAll(async () => {
  dataDir = await mkdtemp(path.join(tmpdir(), 'tributary-test-'));
  server = await startEmbeddedPostgres({ dataDir, durable: false });
  authority = await createAuthority(dataDir, 'authority');
  otherAuthority = await createAuthority(dataDir, 'other-authority');
});
afterAll(async () => {
  await server?.stop();
  await rm(dataDir, { recursive: true, force: true });
});

// @promise database-tls
test('a server without TLS is refused, with what to do', async () => {
  await expectRefusal(
    { trust: authority.certificate },
    /The server does not offer TLS\. Turn it on .* sslmode=disable/,
  );
});

describe('a server with a certificate for its name', () => {
  beforeAll(async () => {
    await useCertificate('by-name', 'DNS:localhost');
  });

  // @promise database-tls
  test('another host is refused, with what to do', async () => {
    await expectRefusal(
      { trust: authority.certificate, host: '127.0.0.1' },
      /The certificate of the server is for another host\. Use a host of the certificate .* sslmode=no-verify/,
    );
  });

  // @promise database-tls
  test.each([
    ['without a certificate authority', undefined],
    ['with another certificate authority', () => otherAuthority.certificate],
  ])('an address %s is refused, with what to do', async (_, trust) => {
    await expectRefusal(
      trust === undefined ? {} : { trust: trust() },
      /cannot be verified\. For a private certificate authority, add sslrootcert=FILE .* NODE_EXTRA_CA_CERTS/,
    );
  });

  // @promise database-tls
  test('commands trust the certificate authority of sslrootcert', async () => {
    const environment = variables({ trust: authority.certificate });
    expect(await admin(environment, 'migrate')).toMatchObject({ status: 0 });
    expect(await admin(environment, 'accounts', 'list')).toMatchObject({ status: 0, out: '[]\n' });
    expect(await admin(environment, 'export', file('archive'))).toMatchObject({ status: 0 });
  });
});

describe('a server with a certificate for its IP address', () => {
  beforeAll(async () => {
    await useCertificate('by-address', 'IP:127.0.0.1');
  });

  // @promise database-tls
  test('all connections of a service use TLS, with the certificate authority in NODE_EXTRA_CA_CERTS', async () => {
    const { DATABASE_URL, MIGRATIONS_DATABASE_URL } = variables({ host: '127.0.0.1' });
    const extra = { MIGRATIONS_DATABASE_URL, NODE_EXTRA_CA_CERTS: authority.certificate, ROLE: 'api' };
    const service = await startChildService(DATABASE_URL, extra);
    const sql = connect({ url: server.ownerUrl, max: 1 });
    try {
      await setUpFounder({ sql, url: service.url });
      await eventually('the pool and the listener are connected', async () => {
        const connections = await sql<{ name: string; ssl: boolean }>`
          select application_name as name, ssl from pg_stat_ssl join pg_stat_activity using (pid)
           where usename = 'tributary_service'`;
        expect(connections.filter(({ ssl }) => !ssl)).toEqual([]);
        return new Set(connections.map(({ name }) => name)).size === 2;
      });
    } finally {
      await sql.close();
      await service.kill();
    }
  });

  // @promise database-tls
  test.each(['verify-full', 'no-verify'])('notifications arrive with sslmode=%s', async (mode) => {
    const trust = mode === 'verify-full' ? { trust: authority.certificate } : {};
    const url = withTls(server.url, { mode, ...trust, host: '127.0.0.1' });
    const received: string[] = [];
    const listener = listenTo(
      { url, channel: 'tributary_results' },
      (payload) => void received.push(payload),
    );
    const sql = connect({ url, max: 1 });
    try {
      await eventually('it listens', async () => listener.isListening());
      await notify(sql, 'tributary_results', mode);
      await eventually('the payload arrives', async () => received.includes(mode));
      const { ssl } = await sql.one<{ ssl: boolean }>`
        select bool_and(ssl) as ssl from pg_stat_ssl join pg_stat_activity using (pid)
         where application_name like 'tributary%' and usename = 'tributary_service'`;
      expect(ssl).toBe(true);
    } finally {
      await listener.stop();
      await sql.close();
    }
  });
});
