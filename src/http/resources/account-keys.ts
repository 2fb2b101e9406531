import * as z from 'zod';
import {
  findAccountKey,
  generateAccountKey,
  listAccountKeys,
  MOST_LISTED,
  revokeAccountKey,
  rotateAccountKey,
} from '../../db/account-keys.ts';
import type { AccountKey } from '../../db/account-keys.ts';
import type { Session } from '../../db/sessions.ts';
import { DEFAULT_GRACE_SECONDS } from '../../domain/keys.ts';
import type { Permission } from '../../domain/keys.ts';
import { permissions as permissionList } from '../enum-fields.ts';
import { requireMayGivePayout } from '../authenticate.ts';
import { ApiError, foundOrThrow } from '../errors.ts';
import { epochMs, graceSeconds, idOf, label, orNull, textField } from '../fields.ts';
import { consoleSession } from '../routing/callers.ts';
import { route } from '../routing/route.ts';

const LABEL = 'Who uses the key: a person or a program.';

const accountKey = z
  .object({
    id: idOf('key'),
    label: orNull(textField('Ann, marketing', LABEL), 'Null if it was not said.'),
    display: textField('tri_sk_live_Ab12…wxyz', 'The first and last characters of the key.'),
    isForSignInLinks: z
      .boolean()
      .describe('Whether it is the key that sessions of sign-in links hold. Nobody has its text.'),
    permissions: permissionList.describe('What the key may do.'),
    createdAt: epochMs('When the key was created.'),
    lastUsedAt: orNull(epochMs('When the key was last used, to the minute.'), 'Null before its first use.'),
    expiresAt: orNull(epochMs('When the key ends or ended.'), 'Null for a key without an end.'),
    revokedAt: orNull(epochMs('When the key was revoked.'), 'Null for a key that was not.'),
  })
  .meta({ id: 'AccountKey', description: 'An account key, without its text.' });

const text = textField('tri_sk_live_…', 'The text of the key. Returned only once.');

const createdKey = accountKey
  .extend({ key: text })
  .meta({ id: 'CreatedAccountKey', description: 'The key, with its text.' });

const rotatedKey = createdKey
  .extend({ previousKeyExpiresAt: epochMs('Until when the previous key is valid.') })
  .meta({ id: 'RotatedAccountKey', description: 'The new key, and when the previous one ends.' });

const accountId = { accountId: 'account' } as const;

function presentKey(row: AccountKey) {
  return {
    id: row.id,
    label: row.label,
    display: row.display,
    isForSignInLinks: row.isConsole,
    permissions: [...row.permissions],
    createdAt: row.createdAt,
    lastUsedAt: row.lastUsedAt,
    expiresAt: row.expiresAt,
    revokedAt: row.revokedAt,
  };
}

/** Throws 403 if a session may not give a key these permissions: it has fewer itself, or it would give itself the right to pay. */
function requireGrantable(session: Session, permissions: readonly Permission[], now: number): void {
  const mayPay = session.raisedKeyId !== null;
  const missing = permissions.filter(
    (permission) => !session.permissions.includes(permission) && !(permission === 'payout' && mayPay),
  );
  if (missing.length > 0) {
    throw new ApiError('forbidden', {
      detail: `A session gives a key only permissions that it has itself: not ${missing.join(', ')}.`,
    });
  }
  if (permissions.includes('payout')) requireMayGivePayout(session, now);
}

export const accountKeyRoutes = [
  route({
    method: 'GET',
    path: '/accounts/:accountId/keys',
    caller: consoleSession('read', { wholeAccount: true }),
    operationId: 'listAccountKeys',
    ids: accountId,
    summary: "Lists the account's keys, oldest first.",
    response: {
      status: 200,
      schema: z
        .object({
          keys: z
            .array(accountKey)
            .describe(
              `The newest ${MOST_LISTED.valid} valid keys, and the newest ${MOST_LISTED.ended} of those that have ended.`,
            ),
        })
        .meta({ id: 'AccountKeyList', description: 'The keys of the account, oldest first.' }),
    },
    handler: async ({ deps, ids, now }) => ({
      keys: foundOrThrow(await listAccountKeys(deps.sql, ids.accountId, now)).map(presentKey),
    }),
  }),

  route({
    method: 'POST',
    path: '/accounts/:accountId/keys',
    caller: consoleSession('setup', { wholeAccount: true }),
    operationId: 'createAccountKey',
    ids: accountId,
    summary: 'Creates an account key.',
    description:
      'The text of the key is returned only once. The key gets at most the permissions of the session.',
    body: z
      .strictObject({
        label: label.meta({ description: LABEL, examples: ['Ann, marketing'] }),
        permissions: permissionList
          .min(1)
          .meta({ examples: [['read', 'write']] })
          .describe('What the key may do.'),
      })
      .meta({ id: 'NewAccountKey', description: 'A key to create.' }),
    response: { status: 201, schema: createdKey },
    errors: ['session_not_raised'],
    handler: async ({ deps, session, ids, body, now }) => {
      const permissions = [...new Set(body.permissions)];
      requireGrantable(session, permissions, now);
      const created = foundOrThrow(
        await generateAccountKey(deps.sql, ids.accountId, permissions, body.label),
      );
      return { ...presentKey(created), key: created.key };
    },
  }),

  route({
    method: 'POST',
    path: '/accounts/:accountId/keys/:keyId/rotate',
    caller: consoleSession('setup', { wholeAccount: true }),
    operationId: 'rotateAccountKey',
    ids: { ...accountId, keyId: 'key' },
    summary: 'Replaces an account key by a new one with the same permissions.',
    description:
      'The text of the new key is returned only once. The previous key stays valid for the grace period; then its sessions end.',
    body: z
      .strictObject({ graceSeconds: graceSeconds.optional() })
      .meta({ id: 'KeyRotation', description: 'How long the previous key stays valid.' }),
    response: { status: 200, schema: rotatedKey },
    errors: ['key_not_rotatable', 'session_not_raised'],
    handler: async ({ deps, session, ids, body, now }) => {
      const key = foundOrThrow(await findAccountKey(deps.sql, ids.accountId, ids.keyId));
      requireGrantable(session, key.permissions, now);
      const endsAt = now + (body.graceSeconds ?? DEFAULT_GRACE_SECONDS) * 1000;
      const created = await rotateAccountKey(deps.sql, key.id, now, endsAt);
      if (created === undefined) throw new ApiError('key_not_rotatable');
      const previousKeyExpiresAt = Math.min(endsAt, key.expiresAt ?? endsAt);
      return { ...presentKey(created), key: created.key, previousKeyExpiresAt };
    },
  }),

  route({
    method: 'POST',
    path: '/accounts/:accountId/keys/:keyId/revoke',
    caller: consoleSession('setup', { wholeAccount: true }),
    operationId: 'revokeAccountKey',
    ids: { ...accountId, keyId: 'key' },
    summary: 'Revokes an account key.',
    description: 'The key and its sessions stop working at once. This cannot be undone.',
    response: { status: 200, schema: accountKey },
    handler: async ({ deps, ids }) => {
      foundOrThrow(await findAccountKey(deps.sql, ids.accountId, ids.keyId));
      await revokeAccountKey(deps.sql, ids.keyId);
      return presentKey(foundOrThrow(await findAccountKey(deps.sql, ids.accountId, ids.keyId)));
    },
  }),
];
