import { createReadStream } from 'node:fs';
import { resolve } from 'node:path';
import { Command, CommanderError, InvalidArgumentError } from 'commander';
import {
  listAccountKeys,
  generateAccountKey,
  revokeAccountKey,
  rotateAccountKey,
} from '../db/account-keys.ts';
import { createAccount, listAccounts } from '../db/accounts.ts';
import { listAppIds } from '../db/apps.ts';
import { checkLedger } from '../db/ledger-checks.ts';
import { migrate } from '../db/migrate.ts';
import { importRates } from '../db/rates.ts';
import { findRollupDifferences, repairRollups } from '../db/rollups.ts';
import { connect } from '../db/sql.ts';
import type { Sql } from '../db/sql.ts';
import { isId } from '../domain/ids.ts';
import { DEFAULT_GRACE_SECONDS, DEFAULT_PERMISSIONS, PERMISSIONS } from '../domain/keys.ts';
import type { Permission } from '../domain/keys.ts';
import type { FoundService } from '../embedded/find-service.ts';
import { RatesFileError } from '../rates/parse-rates.ts';
import { MAX_RATES_BYTES, readRatesFile } from '../rates/read-rates-file.ts';
import { EXIT, Refused, tableOf } from './answer.ts';
import type { Answer } from './answer.ts';
import { addDeliveriesCommand } from './deliveries.ts';
import { addSelfTestCommand } from './self-test.ts';

/** What the command line needs of its surroundings. */
export interface AdminDeps {
  /** Finds the database, or starts it for the moment. Called only by a command that is well formed. */
  readonly openDatabase: () => Promise<{ readonly url: string; readonly close: () => Promise<void> }>;
  /** Finds the running service, by what it wrote down or else by the environment; null where none can be running. */
  readonly findService: () => Promise<FoundService | null>;
  /** The answer, and nothing else. */
  readonly stdout: (text: string) => void;
  /** Messages to a person. */
  readonly stderr: (text: string) => void;
  /** How long to wait for a running service where a command needs one, ms. */
  readonly patienceMs?: number;
}

function parsePermissions(text: string): Permission[] {
  const names = [...new Set(text.split(',').map((name) => name.trim()))];
  const known = PERMISSIONS.filter((permission) => names.includes(permission));
  if (known.length !== names.length) {
    throw new InvalidArgumentError(`Permissions are ${PERMISSIONS.join(', ')}, with commas between.`);
  }
  return known;
}

function parseSeconds(text: string): number {
  if (!/^\d{1,8}$/.test(text)) throw new InvalidArgumentError('Must be a whole number of seconds.');
  return Number(text);
}

function parseName(text: string): string {
  const name = text.trim();
  if (name.length < 1 || name.length > 200 || /[\p{Cc}\p{Surrogate}]/u.test(name)) {
    throw new InvalidArgumentError('Must be 1 to 200 characters on one line.');
  }
  return name;
}

/** A running service takes up within seconds what a command wrote down. */
const SERVICE_WITHIN_MS = 30_000;

/**
 * The rates in a file that the operator names, as seen from where npm was started. Whatever is wrong with it is said with
 * the file's name.
 */
async function ratesIn(name: string) {
  const path = resolve(process.env['INIT_CWD'] ?? '.', name);
  const parts: Buffer[] = [];
  try {
    // At most one byte more than is allowed, whatever the file's length.
    for await (const part of createReadStream(path, { end: MAX_RATES_BYTES })) parts.push(part as Buffer);
  } catch (error) {
    throw new Refused(`${path} can't be read (${(error as NodeJS.ErrnoException).code}).`);
  }
  try {
    return readRatesFile(Buffer.concat(parts), Date.now());
  } catch (error) {
    throw error instanceof RatesFileError ? new Refused(`${path}: ${error.message}`) : error;
  }
}

/**
 * Runs the operator's command line and answers its exit status: 0 for done, 1 for refused or failed, 2 for wrong usage.
 * `args` is what follows the program's name.
 */
export async function runAdmin(args: readonly string[], deps: AdminDeps): Promise<number> {
  let status: number = EXIT.ok;
  /** Something was found that has to be mended: the answer stands, the exit status says so. */
  const refuse = () => {
    status = EXIT.refused;
  };

  /** Runs `work` on the database, which is set up first where it is still empty. */
  async function onDatabase<T>(work: (sql: Sql, url: string) => Promise<T>): Promise<T> {
    const { url, close } = await deps.openDatabase();
    const sql = connect({ url, max: 2, statementTimeoutMs: 0, applicationName: 'tributary-admin' });
    try {
      const { isEmpty } = await sql.one<{
        isEmpty: boolean;
      }>`select to_regclass('migrations') is null as is_empty`;
      if (isEmpty) {
        deps.stderr('Setting up the empty database.\n');
        await migrate(url);
      }
      return await work(sql, url);
    } finally {
      await sql.close();
      await close();
    }
  }

  const print = (json: unknown, rows: readonly Answer[], options: { readonly json?: boolean }): void =>
    deps.stdout(`${options.json === true ? JSON.stringify(json) : tableOf(rows)}\n`);

  /** Commands inherit these at their making. */
  const program = new Command('admin')
    .description('Accounts, keys and the database of a Tributary service.')
    .configureOutput({ writeOut: deps.stdout, writeErr: deps.stderr })
    .exitOverride()
    .showHelpAfterError('(--help shows what is possible)');
  const JSON_OPTION = ['--json', 'answer in JSON'] as const;

  const accounts = program.command('accounts').description('who owns apps');
  accounts
    .command('create')
    .description('make an account')
    .requiredOption('--name <name>', 'what to call it', parseName)
    .option(...JSON_OPTION)
    .action(async (options: { name: string; json?: boolean }) => {
      const { id, name } = await onDatabase((sql) => createAccount(sql, options.name));
      print({ id, name }, [{ id, name }], options);
    });
  accounts
    .command('list')
    .description('list all accounts')
    .option(...JSON_OPTION)
    .action(async (options: { json?: boolean }) => {
      const rows = (await onDatabase(listAccounts)).map(({ id, name, createdAt }) => ({
        id,
        name,
        createdAt,
      }));
      print(rows, rows, options);
    });

  const keys = program.command('keys').description('what an account calls the API with');
  keys
    .command('create')
    .description('make a key; it is shown once')
    .requiredOption('--account <id>', 'whose key it is')
    .option('--permissions <list>', PERMISSIONS.join(','), parsePermissions, [...DEFAULT_PERMISSIONS])
    .option(...JSON_OPTION)
    .action(async (options: { account: string; permissions: Permission[]; json?: boolean }) => {
      const { account } = options;
      if (!isId('account', account)) throw new Refused(`There is no account ${account}.`);
      const made = await onDatabase((sql) => generateAccountKey(sql, account, options.permissions));
      if (made === undefined) throw new Refused(`There is no account ${account}.`);
      const answer = { id: made.id, key: made.key, permissions: made.permissions };
      print(answer, [answer], options);
    });
  keys
    .command('list')
    .description("list an account's keys, without their text")
    .requiredOption('--account <id>', 'whose keys')
    .option(...JSON_OPTION)
    .action(async (options: { account: string; json?: boolean }) => {
      const { account } = options;
      const found = isId('account', account)
        ? await onDatabase((sql) => listAccountKeys(sql, account))
        : undefined;
      if (found === undefined) throw new Refused(`There is no account ${account}.`);
      const rows = found.map(({ id, display, permissions, createdAt, expiresAt, revokedAt }) => ({
        id,
        display,
        permissions,
        createdAt,
        expiresAt,
        revokedAt,
      }));
      print(rows, rows, options);
    });
  keys
    .command('revoke')
    .description('make a key worthless at once')
    .argument('<id>', "the key's id")
    .option(...JSON_OPTION)
    .action(async (id: string, options: { json?: boolean }) => {
      const done = isId('key', id) && (await onDatabase((sql) => revokeAccountKey(sql, id)));
      if (!done) throw new Refused(`There is no key ${id}.`);
      print({ id, revoked: true }, [{ id, revoked: 'yes' }], options);
    });
  keys
    .command('rotate')
    .description('make a key with the same permissions; the old one ends after a grace period')
    .argument('<id>', "the old key's id")
    .option('--grace-seconds <n>', 'how long the old key still works', parseSeconds, DEFAULT_GRACE_SECONDS)
    .option(...JSON_OPTION)
    .action(async (id: string, options: { graceSeconds: number; json?: boolean }) => {
      const now = Date.now();
      const previousKeyExpiresAt = now + options.graceSeconds * 1000;
      const made = isId('key', id)
        ? await onDatabase((sql) => rotateAccountKey(sql, id, now, previousKeyExpiresAt))
        : undefined;
      if (made === undefined) throw new Refused(`There is no valid key ${id}.`);
      const answer = { id: made.id, key: made.key, permissions: made.permissions, previousKeyExpiresAt };
      print(answer, [answer], options);
    });

  addSelfTestCommand(program, { ...deps, onDatabase, refuse });

  program
    .command('migrate')
    .description('bring the database schema up to date')
    .option(...JSON_OPTION)
    .action(async (options: { json?: boolean }) => {
      const { url, close } = await deps.openDatabase();
      try {
        const migrations = await migrate(url);
        print(
          { migrations },
          migrations.map((name) => ({ migration: name })),
          options,
        );
        deps.stderr('The database schema is up to date.\n');
      } finally {
        await close();
      }
    });

  addDeliveriesCommand(program, {
    onDatabase,
    stdout: deps.stdout,
    stderr: deps.stderr,
    patienceMs: deps.patienceMs ?? SERVICE_WITHIN_MS,
  });

  const ledger = program.command('ledger').description('commissions, revenue and payouts');
  ledger
    .command('check')
    .description('check every rule of the ledger; exit status 1 when anything is off')
    .option('--app <id>', 'of one app only')
    .option(...JSON_OPTION)
    .action(async (options: { app?: string; json?: boolean }) => {
      const checkedAt = Date.now();
      const checks = await onDatabase(async (sql) => {
        const apps = await listAppIds(sql);
        const chosen = options.app === undefined ? apps : apps.filter((id) => id === options.app);
        if (options.app !== undefined && chosen.length === 0) {
          throw new Refused(`There is no app ${options.app}.`);
        }
        return await checkLedger(sql, chosen);
      });
      const off = checks.filter((check) => !check.ok);
      const rows = checks.map(({ name, ok, violations, examples }) => ({
        name,
        ok: ok ? 'yes' : 'no',
        violations,
        examples: examples.join('\n'),
      }));
      print({ ok: off.length === 0, checkedAt, checks }, rows, options);
      if (off.length > 0) refuse();
      deps.stderr(off.length === 0 ? 'The ledger is sound.\n' : `${off.length} checks found something.\n`);
    });

  const rates = program.command('rates').description('what currencies are worth in dollars');
  rates
    .command('import')
    .description("take in the European Central Bank's CSV file, or one with date,currency,usd_rate")
    .argument('<file>', 'CSV, or a ZIP archive with one CSV file in it')
    .option(...JSON_OPTION)
    .action(async (path: string, options: { json?: boolean }) => {
      const file = await ratesIn(path);
      const imported = await onDatabase((sql) => importRates(sql, file));
      const answer = { source: file.source, rates: file.rates.length, ...imported };
      print(answer, [answer], options);
      deps.stderr(
        'Payments that waited for one of these rates go on by themselves while the service runs.\n',
      );
    });

  const rollups = program.command('rollups').description('the sums that dashboards show');
  rollups
    .command('check')
    .description('compare all sums with the facts; exit status 1 when any differs')
    .option(...JSON_OPTION)
    .action(async (options: { json?: boolean }) => {
      const differences = await onDatabase((sql) => findRollupDifferences(sql));
      const rows = differences.map(({ appId, scope, scopeId, span, bucketAt, differs }) => ({
        appId,
        scope,
        scopeId,
        span,
        bucketAt,
        differs,
      }));
      print({ equal: rows.length === 0, differences: rows }, rows, options);
      if (rows.length > 0) refuse();
      deps.stderr(
        rows.length === 0 ? 'All sums equal the facts.\n' : `${rows.length} sums differ from the facts.\n`,
      );
    });
  rollups
    .command('repair')
    .description('make all sums equal to the facts')
    .option(...JSON_OPTION)
    .action(async (options: { json?: boolean }) => {
      const repaired = await onDatabase(repairRollups);
      print({ repaired }, [{ repaired }], options);
    });

  try {
    await program.parseAsync(args, { from: 'user' });
    return status;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.ok : EXIT.usage;
    deps.stderr(`${error instanceof Error && error.message !== '' ? error.message : String(error)}\n`);
    return EXIT.refused;
  }
}
