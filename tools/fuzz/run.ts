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

/** The version that the options in schemathesis.toml belong to. */
const SCHEMATHESIS = 'schemathesis==4.32.5';

const say = (line: string) => process.stderr.write(`${line}\n`);

/** The program in an environment of its own below `.cache`, installed where it is missing. */
function schemathesis(): string {
  const home = path.join(projectRoot, '.cache', SCHEMATHESIS.replace('==', '-'));
  const program = path.join(home, 'bin', 'schemathesis');
  if (!existsSync(program)) {
    say(`Installing ${SCHEMATHESIS} into ${path.relative(projectRoot, home)} …`);
    execFileSync('python3', ['-m', 'venv', home], { stdio: 'inherit' });
    execFileSync(path.join(home, 'bin', 'pip'), ['install', '-q', SCHEMATHESIS], { stdio: 'inherit' });
  }
  return program;
}

interface Ids {
  readonly [name: string]: string;
}

/** An app with one of everything that a path can name. Answers the parameters of paths, and its keys. */
async function furnish(
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

/** Fuzzes a service of its own against the description that it serves; exit status 0 when nothing was found. */
async function fuzz(): Promise<number> {
  const program = schemathesis();
  const folder = await mkdtemp(path.join(tmpdir(), 'tributary-fuzz-'));
  const config = readConfig({
    DATA_DIR: path.join(folder, 'data'),
    PORT: '0',
    LOG_LEVEL: 'error',
    RATE_LIMIT_ACCOUNT: '0',
    RATE_LIMIT_SDK: '0',
    RATE_LIMIT_CLICKS: '0',
  });
  const server = await runServer(config);
  try {
    const base = server.service.url ?? '';
    const account = await createAccount(server.service.sql, 'Fuzz');
    const { key } = await createAccountKey(server.service.sql, account.id, PERMISSIONS);
    const { ids, sdkKey, webhookToken } = await furnish(base, key);

    const settings = path.join(projectRoot, 'tools/fuzz/schemathesis.toml');
    const settingsInside = path.join(folder, 'inside.toml');
    await copyFile(settings, settingsInside);
    await appendFile(
      settingsInside,
      `\n[parameters]\n${Object.entries(ids)
        .map(([name, id]) => `"path.${name}" = "${id}"`)
        .join('\n')}\n`,
    );
    let status = 0;
    for (const [name, file] of [
      ['with paths that lead somewhere', settingsInside],
      ['with any path', settings],
    ] as const) {
      say(`Fuzzing ${base} ${name}`);
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
