import * as z from 'zod';
import type { ListedSession, Session } from '../../db/sessions.ts';
import { managesMembers } from '../authenticate.ts';
import type { HttpDeps } from '../deps.ts';
import { permissions as permissionList } from '../enum-fields.ts';
import { count, epochMs, idOf, label, orNull, textField } from '../fields.ts';
import { memberAppIds, memberRole } from '../member-fields.ts';
import { passkeyAnswer } from '../passkey-fields.ts';
import { allowsPasskeys } from '../passkeys.ts';

const LABEL = 'Who uses the key.';

/** An account key, as lists name it. */
export const heldKey = z
  .object({
    id: idOf('key'),
    label: orNull(textField('Ann, marketing', LABEL), 'Null if it was not said.'),
    display: textField('tri_sk_live_Ab12…wxyz', 'The first and last characters of the key.'),
  })
  .meta({ id: 'HeldKey', description: 'An account key, without its text.' });

const takesPasskeys = z
  .literal(true)
  .describe('Browsers allow passkeys at the address of the service. Absent otherwise.')
  .optional();

export const session = z
  .object({
    id: idOf('session'),
    account: z
      .object({ id: idOf('account'), name: textField('My company', 'The name of the account.') })
      .describe('The account of the key.'),
    key: heldKey,
    member: orNull(
      z
        .object({
          id: idOf('member'),
          email: textField('ann@example.com', 'The address to which links are mailed.'),
          role: memberRole,
          appIds: memberAppIds,
        })
        .describe('The member who is signed in, as of this moment.'),
      'Null for a session that holds an account key, or that of links of the operator.',
    ),
    managesMembers: z.boolean().describe('Whether the session invites, changes and removes members.'),
    permissions: permissionList.describe('The permissions of the key at this moment.'),
    createdAt: epochMs('When the session began.'),
    expiresAt: epochMs(
      'When the session ends at the latest. It ends earlier after seven days without a call.',
    ),
    raisedKeyId: orNull(
      idOf('key', 'The id of the key on which payouts are booked.'),
      'Null while the session may not pay.',
    ),
    raisedUntil: orNull(epochMs('Until when the session may pay.'), 'Null while it may not.'),
    sendsMail: z
      .literal(true)
      .describe('The service has a mail server, so that links can be mailed. Absent otherwise.')
      .optional(),
    takesPasskeys,
  })
  .meta({ id: 'Session', description: 'A session of the console.' });

export const currentSession = z
  .object({
    session: session
      .nullable()
      .describe('The session of this browser. Null without one, and when it has ended.'),
    hasAccounts: z
      .boolean()
      .describe('Whether the installation has an account. Without one, nobody can sign in with a key.'),
    sendsMail: z
      .literal(true)
      .describe('The service has a mail server, so that members can ask for links. Absent otherwise.')
      .optional(),
    takesPasskeys,
  })
  .meta({ id: 'CurrentSession', description: 'The session of the browser that calls.' });

const listedSession = z
  .object({
    id: idOf('session'),
    isCurrent: z.boolean().describe('Whether it is the session that calls.'),
    key: heldKey,
    userAgent: orNull(
      textField('Mozilla/5.0 (X11; Linux x86_64)', 'The browser, as it named itself at the sign-in.'),
      'Null if it did not.',
    ),
    createdAt: epochMs('When the session began.'),
    lastUsedAt: epochMs('When the session was last used, to the minute.'),
    expiresAt: epochMs('When the session ends if it is not used.'),
  })
  .meta({ id: 'ListedSession', description: 'A session of the account.' });

export const sessionList = z
  .object({ sessions: z.array(listedSession).describe('The sessions that are valid.') })
  .meta({ id: 'SessionList', description: 'Sessions of the account, newest first.' });

export const endedSessions = z
  .object({ ended: count('Sessions that were ended.') })
  .meta({ id: 'EndedSessions', description: 'How many sessions were ended.' });

const key = textField('tri_sk_live_…', 'An account key.');

export const signIn = z
  .union(
    [
      z.strictObject({ key }),
      z.strictObject({
        token: textField('k3l…', 'The token of a sign-in link: the part after `#token=`.'),
        accountName: label
          .optional()
          .describe('The name of the account that the link creates. Ignored if its account exists.'),
      }),
      z.strictObject({ passkey: passkeyAnswer }),
    ],
    'Send either `key`, or `passkey`, or `token` and if you like `accountName`.',
  )
  .meta({
    id: 'SignIn',
    description: 'An account key, the token of a sign-in link, or the answer of a passkey.',
  });

export const raisingProof = z
  .union(
    [
      z.strictObject({ key: key.describe('A key of the same account with the permission `payout`.') }),
      z.strictObject({ passkey: passkeyAnswer }),
    ],
    'Send either `key` or `passkey`.',
  )
  .meta({
    id: 'RaisingProof',
    description: 'The key on which payouts are booked, or the answer of a passkey.',
  });

export function presentKey(row: Pick<ListedSession, 'keyId' | 'keyLabel' | 'keyDisplay'>) {
  return { id: row.keyId, label: row.keyLabel, display: row.keyDisplay };
}

type Means = Pick<HttpDeps, 'sendsMail' | 'publicUrl'>;

/** Returns by which means members can sign in. */
export function presentMeans({ sendsMail = false, publicUrl }: Means) {
  return {
    ...(sendsMail ? { sendsMail } : {}),
    ...(allowsPasskeys(publicUrl) ? { takesPasskeys: true as const } : {}),
  };
}

export function presentSession(row: Session, means: Means) {
  return {
    id: row.id,
    account: { id: row.accountId, name: row.accountName },
    key: presentKey(row),
    member: row.member === null ? null : { ...row.member, appIds: row.member.appIds?.slice() ?? null },
    managesMembers: managesMembers(row),
    permissions: [...row.permissions],
    createdAt: row.createdAt,
    expiresAt: row.expiresAt,
    raisedKeyId: row.raisedKeyId,
    raisedUntil: row.raisedUntil,
    ...presentMeans(means),
  };
}
