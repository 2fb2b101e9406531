import { InvalidArgumentError } from 'commander';
import type { Command } from 'commander';
import {
  generateAccountKey,
  listAccountKeys,
  revokeAccountKey,
  rotateAccountKey,
} from '../../db/account-keys.ts';
import { isId } from '../../domain/ids.ts';
import { DEFAULT_GRACE_SECONDS, DEFAULT_PERMISSIONS, PERMISSIONS } from '../../domain/keys.ts';
import type { Permission } from '../../domain/keys.ts';
import { parseName } from '../parse-name.ts';
import { JSON_OPTION } from '../command-context.ts';
import type { CommandContext, JsonOptions } from '../command-context.ts';
import { CommandFailedError } from '../output.ts';

function parsePermissions(text: string): Permission[] {
  const names = [...new Set(text.split(',').map((name) => name.trim()))];
  const known = PERMISSIONS.filter((permission) => names.includes(permission));
  if (known.length !== names.length) {
    throw new InvalidArgumentError(`The permissions are ${PERMISSIONS.join(', ')}, separated by commas.`);
  }
  return known;
}

function parseSeconds(text: string): number {
  if (!/^\d{1,8}$/.test(text)) throw new InvalidArgumentError('The value must be a whole number of seconds.');
  return Number(text);
}

const noAccount = (id: string) => new CommandFailedError(`There is no account ${id}.`);

/** Adds `keys create`, `keys list`, `keys rotate` and `keys revoke`. */
export function addKeysCommand(program: Command, { withDatabase, print }: CommandContext): void {
  const keys = program.command('keys').description('manage the keys with which an account calls the API');
  keys
    .command('create')
    .description('create a key; its text is shown only once')
    .requiredOption('--account <id>', 'account of the key')
    .option('--label <text>', 'who uses the key', parseName)
    .option('--permissions <list>', PERMISSIONS.join(','), parsePermissions, [...DEFAULT_PERMISSIONS])
    .option(...JSON_OPTION)
    .action(async (options: JsonOptions & { account: string; label?: string; permissions: Permission[] }) => {
      const { account, label = null, permissions } = options;
      if (!isId('account', account)) throw noAccount(account);
      const created = await withDatabase((sql) => generateAccountKey(sql, account, permissions, label));
      if (created === undefined) throw noAccount(account);
      const result = { id: created.id, key: created.key, permissions: created.permissions };
      print(result, [result], options);
    });
  keys
    .command('list')
    .description('list the keys of an account, without their text')
    .requiredOption('--account <id>', 'account of the keys')
    .option(...JSON_OPTION)
    .action(async (options: JsonOptions & { account: string }) => {
      const { account } = options;
      const found = isId('account', account)
        ? await withDatabase((sql) => listAccountKeys(sql, account, Date.now()))
        : undefined;
      if (found === undefined) throw noAccount(account);
      const rows = found.map(
        ({ id, display, label, permissions, createdAt, lastUsedAt, expiresAt, revokedAt }) => ({
          id,
          display,
          label,
          permissions,
          createdAt,
          lastUsedAt,
          expiresAt,
          revokedAt,
        }),
      );
      print(rows, rows, options);
    });
  keys
    .command('revoke')
    .description('revoke a key; it stops working at once')
    .argument('<id>', 'id of the key')
    .option(...JSON_OPTION)
    .action(async (id: string, options: JsonOptions) => {
      const isRevoked = isId('key', id) && (await withDatabase((sql) => revokeAccountKey(sql, id)));
      if (!isRevoked) throw new CommandFailedError(`There is no key ${id}.`);
      print({ id, revoked: true }, [{ id, revoked: 'yes' }], options);
    });
  keys
    .command('rotate')
    .description('create a key with the same permissions; the old key expires after a grace period')
    .argument('<id>', 'id of the old key')
    .option(
      '--grace-seconds <n>',
      'seconds for which the old key still works',
      parseSeconds,
      DEFAULT_GRACE_SECONDS,
    )
    .option(...JSON_OPTION)
    .action(async (id: string, options: JsonOptions & { graceSeconds: number }) => {
      const now = Date.now();
      const previousKeyExpiresAt = now + options.graceSeconds * 1000;
      const created = isId('key', id)
        ? await withDatabase((sql) => rotateAccountKey(sql, id, now, previousKeyExpiresAt))
        : undefined;
      if (created === undefined) throw new CommandFailedError(`There is no valid key ${id}.`);
      const result = {
        id: created.id,
        key: created.key,
        permissions: created.permissions,
        previousKeyExpiresAt,
      };
      print(result, [result], options);
    });
}
