import { execFileSync, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { appendFile, copyFile, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { projectRoot } from '../../src/config/project-root.ts';
import { readConfig } from '../../src/config/config.ts';
import { createAccountKey } from '../../src/db/account-keys.ts';
import { createAccount } from '../../src/db/accounts.ts';
import { PERMISSIONS } from '../../src/domain/keys.ts';
import { exitWith, runServer } from '../../src/server.ts';
import { WITHOUT_LIMITS } from '../without-limits.ts';

/** The version that the options in schemathesis.toml belong to. */
const SCHEMATHESIS = 'schemathesis==4.32.5';

const print = (line: string) => process.stderr.write(`${line}\n`);

/** Returns the path of the program. Installs it into a virtual environment below `.cache` when it is missing. */
function findOrInstall(): string {
  const home = path.join(projectRoot, '.cache', SCHEMATHESIS.replace('==', '-'));
  const program = path.join(home, 'bin', 'schemathesis');
  if (!existsSync(program)) {
    print(`Installing ${SCHEMATHESIS} into ${path.relative(projectRoot, home)} …`);
    execFileSync('python3', ['-m', 'venv', home], { stdio: 'inherit' });
    execFileSync(path.join(home, 'bin', 'pip'), ['install', '-q', SCHEMATHESIS], { stdio: 'inherit' });
  }
  return program;
}

interface Ids {
  readonly [name: string]: string;
}

/** Creates an app with one of each resource that a path can name. Returns the path parameters and the app's keys. */
async function createResources(
  base: string,
  key: string,
): Promise<{ ids: Ids; sdkKey: string; webhookToken: string }> {
  const send = async (method: string, route: string, body: object) => {
    const response = await fetch(base + route, {
      method,
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    if (!response.ok) throw new Error(`${method} ${route}: ${response.status} ${await response.text()}`);
    return (await response.json()) as Record<string, string>;
  };
  const post = (route: string, body: object) => send('POST', route, body);
  const app = await post('/apps', { name: 'Fuzzed app', linkSubdomain: 'fuzzed' });
  const appId = app['id'] ?? '';
  const affiliate = await post(`/apps/${appId}/affiliates`, { name: 'Fuzzed creator' });
  const link = await post(`/apps/${appId}/links`, {
    affiliateId: affiliate['id'],
    slug: 'fuzzed',
    destinationUrl: 'https://example.com',
  });
  const webhook = await send('PUT', `/apps/${appId}/webhooks/revenuecat/secret`, {});
  return {
    ids: {
      provider: 'revenuecat',
      appId,
      customerAppId: appId,
      affiliateId: affiliate['id'] ?? '',
      linkId: link['id'] ?? '',
      linkSubdomain: 'fuzzed',
      slug: 'fuzzed',
    },
    sdkKey: app['sdkKey'] ?? '',
    webhookToken: webhook['secret'] ?? '',
  };
}

/** Fuzzes a temporary service against the OpenAPI document that it serves. Returns 0 when no check failed. */
async function fuzz(): Promise<number> {
  const program = findOrInstall();
  const folder = await mkdtemp(path.join(tmpdir(), 'tributary-fuzz-'));
  const config = readConfig({
    DATA_DIR: path.join(folder, 'data'),
    PORT: '0',
    LOG_LEVEL: 'error',
    ...WITHOUT_LIMITS,
  });
  const server = await runServer(config);
  await server.service.whenReady(60_000);
  try {
    const base = server.service.url ?? '';
    const account = await createAccount(server.service.sql, 'Fuzz');
    const { key } = await createAccountKey(server.service.sql, account.id, PERMISSIONS);
    const { ids, sdkKey, webhookToken } = await createResources(base, key);

    const settings = path.join(projectRoot, 'tools/fuzz/schemathesis.toml');
    const existingSettings = path.join(folder, 'existing.toml');
    await copyFile(settings, existingSettings);
    await appendFile(
      existingSettings,
      `\n[parameters]\n${Object.entries(ids)
        .map(([name, id]) => `"path.${name}" = "${id}"`)
        .join('\n')}\n`,
    );
    let status = 0;
    for (const [name, file] of [
      ['with paths of existing resources', existingSettings],
      ['with random paths', settings],
    ] as const) {
      print(`Fuzzing ${base} ${name}`);
      const child = spawn(
        program,
        ['--config-file', file, '--no-color', 'run', `${base}/openapi.json`, ...process.argv.slice(2)],
        {
          stdio: 'inherit',
          env: {
            ...process.env,
            FUZZ_ACCOUNT_KEY: key,
            FUZZ_SDK_KEY: sdkKey,
            FUZZ_WEBHOOK_TOKEN: webhookToken,
          },
        },
      );
      const code = await new Promise<number>((resolve) => {
        child.once('exit', (exit) => resolve(exit ?? 1));
      });
      status = Math.max(status, code);
    }
    return status;
  } finally {
    await server.stop();
    await rm(folder, { recursive: true, force: true });
  }
}

fuzz().then((status) => process.exit(status), exitWith);
