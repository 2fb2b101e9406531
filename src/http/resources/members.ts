import { HIDDEN_CHARACTERS, NO_HIDDEN_CHARACTERS } from '../../domain/hidden-characters.ts';
import * as z from 'zod';
import { createMemberLink, mailMemberLink, MEMBER_MAILS_IN_AN_HOUR } from '../../db/member-links.ts';
import { addMember, changeMember, findMember, listMembers, removeMember } from '../../db/members.ts';
import type { Member, MemberRefusal } from '../../db/members.ts';
import { newId } from '../../db/new-id.ts';
import { isId } from '../../domain/ids.ts';
import type { AppId } from '../../domain/ids.ts';
import { givesPayout, MOST_MEMBER_APPS } from '../../domain/members.ts';
import { maskEmail } from '../../domain/payee.ts';
import { signInUrl } from '../../domain/sessions.ts';
import { requireMayGivePayout } from '../authenticate.ts';
import { foundOrThrow, invalidField, notFound, tooManyEmails, withAdvice } from '../errors.ts';
import { epochMs, idOf, inputId, label, orNull, textField } from '../fields.ts';
import { maskedAddress, memberAppIds, memberRole } from '../member-fields.ts';
import { decodeCursor, pageQuery, pageSchema, presentPage, timeKey } from '../pagination.ts';
import { consoleSession } from '../routing/callers.ts';
import { route } from '../routing/route.ts';
import { emailStatus } from './emails.ts';

const NAME = 'The name of the person. Audit rows keep it, as they keep the labels of keys.';
const EMAIL = 'The address to which links are mailed.';

const member = z
  .object({
    id: idOf('member'),
    keyId: idOf('key', "The id of the key that the member's sessions hold. Audit rows and payouts name it."),
    email: orNull(textField('ann@example.com', EMAIL), 'Null for a member who was removed.'),
    name: textField('Ann', NAME),
    role: memberRole,
    appIds: memberAppIds,
    createdAt: epochMs('When the member was added.'),
    lastActiveAt: orNull(
      epochMs('When a session of the member was last used, to the minute.'),
      'Null before the first sign-in.',
    ),
    removedAt: orNull(epochMs('When the member was removed.'), 'Null for a member who was not.'),
    invitation: orNull(
      z
        .object({
          status: emailStatus,
          lastProblem: orNull(
            textField('The mail server refused the recipient (550).', 'Why it was not sent.'),
            'Null without a problem.',
          ),
        })
        .describe('What became of the last mail with an invitation.'),
      'Null if none was sent: then the link has to be copied.',
    ),
  })
  .meta({ id: 'Member', description: 'A person who signs in to the console of an account.' });

const name = label.refine((text) => !HIDDEN_CHARACTERS.test(text), NO_HIDDEN_CHARACTERS);
const email = z
  .email()
  .max(320)
  .meta({ description: EMAIL, examples: ['ann@example.com'] });
const appIds = z
  .array(inputId('app'))
  .min(1, 'Must name an app. Null means all apps.')
  .max(MOST_MEMBER_APPS)
  .nullable()
  .describe('The apps that the member sees. Null: all apps of the account.');

function presentMember(row: Member) {
  const {
    id,
    keyId,
    email: address,
    name: shownName,
    role,
    createdAt,
    lastActiveAt,
    removedAt,
    invitation,
  } = row;
  return {
    id,
    keyId,
    email: address,
    name: shownName,
    role,
    appIds: row.appIds?.slice() ?? null,
    createdAt,
    lastActiveAt,
    removedAt,
    invitation,
  };
}

const UNKNOWN_APP = 'Names an app that the account does not have.';

/** Returns the apps of a request without repetitions. Throws 400 for a text that is the id of none. */
function readAppIds(given: readonly string[] | null): AppId[] | null {
  if (given === null) return null;
  return [...new Set(given)].map((text) => {
    if (!isId('app', text)) throw invalidField('appIds', UNKNOWN_APP);
    return text;
  });
}

/** Returns the member, or throws why the database refused the change. */
function memberOrThrow(result: Member | MemberRefusal): Member {
  switch (result) {
    case 'unknown_app':
      throw invalidField('appIds', UNKNOWN_APP);
    case 'owner_of_all_apps':
      throw invalidField('appIds', 'Must be null for an owner, who sees all apps.');
    case 'member_exists':
    case 'last_owner':
      throw withAdvice(result);
    default:
      return result;
  }
}

const ids = { accountId: 'account', memberId: 'member' } as const;
const manager = consoleSession(null, { managesMembers: true });

export const memberRoutes = [
  route({
    method: 'GET',
    path: '/accounts/:accountId/members',
    caller: manager,
    operationId: 'listMembers',
    ids: { accountId: 'account' },
    summary: 'Lists the members of the account, oldest first.',
    query: z.object(pageQuery),
    response: { status: 200, schema: pageSchema(member) },
    errors: ['forbidden'],
    handler: async ({ deps, ids: { accountId }, query }) => {
      const key = { list: 'members', appId: accountId, filters: {} };
      const after = decodeCursor(key, timeKey, query.cursor);
      return presentPage(key, await listMembers(deps.sql, accountId, after, query.limit), presentMember);
    },
  }),

  route({
    method: 'POST',
    path: '/accounts/:accountId/members',
    caller: manager,
    operationId: 'inviteMember',
    ids: { accountId: 'account' },
    summary: 'Adds a member and mails an invitation.',
    description:
      'The link in the mail signs in once, within a day. Without a mail server, and beyond the limits of `POST …/sign-in-links/send`, `isMailed` is false: copy a link with `POST …/sign-in-links`.',
    body: z
      .strictObject({
        email,
        name: name.meta({ description: NAME, examples: ['Ann'] }),
        role: memberRole,
        appIds: appIds.optional(),
      })
      .meta({ id: 'NewMember', description: 'A member to add.' }),
    response: {
      status: 201,
      schema: member
        .extend({ isMailed: z.boolean().describe('Whether a mail with a link is on its way.') })
        .meta({ id: 'InvitedMember', description: 'The new member.' }),
    },
    errors: ['forbidden', 'session_not_raised', 'member_exists'],
    handler: async ({ deps, session, ids: { accountId }, body, now }) => {
      const id = newId('member');
      const given = { id, ...body, appIds: readAppIds(body.appIds ?? null) };
      if (givesPayout(null, given)) requireMayGivePayout(session, now);
      const added = memberOrThrow(await addMember(deps.sql, accountId, given, now));
      if (deps.sendsMail !== true) return { ...presentMember(added), isMailed: false };
      const mail = await mailMemberLink(deps, accountId, id, { kind: 'member_invitation', now });
      const row = (await findMember(deps.sql, accountId, id)) ?? added;
      return { ...presentMember(row), isMailed: mail?.outcome === 'queued' };
    },
  }),

  route({
    method: 'PATCH',
    path: '/accounts/:accountId/members/:memberId',
    caller: manager,
    operationId: 'updateMember',
    ids,
    summary: 'Changes the name, the role or the apps of a member.',
    description:
      'Sessions of the member have the new role and apps from the next call on. The address cannot be changed: remove the member and invite the new address.',
    body: z
      .strictObject({
        name: name.meta({ description: NAME, examples: ['Ann'] }).optional(),
        role: memberRole.optional(),
        appIds: appIds.optional(),
      })
      .meta({ id: 'MemberChange', description: 'What to change.' }),
    response: { status: 200, schema: member },
    errors: ['forbidden', 'session_not_raised', 'last_owner'],
    handler: async ({ deps, session, ids: { accountId, memberId }, body, now }) => {
      const change = { ...body, appIds: body.appIds === undefined ? undefined : readAppIds(body.appIds) };
      const changed = await changeMember(deps.sql, accountId, memberId, change, (before, after) => {
        if (givesPayout(before, after)) requireMayGivePayout(session, now);
      });
      return presentMember(memberOrThrow(foundOrThrow(changed)));
    },
  }),

  route({
    method: 'POST',
    path: '/accounts/:accountId/members/:memberId/sign-in-links',
    caller: manager,
    operationId: 'createMemberSignInLink',
    ids,
    summary: 'Creates a link that signs a member in, to copy.',
    description:
      'The link works once, within a day, and is returned only once. Its session pays only after a link that was mailed, or a key with `payout`. The link and its session end when you are removed or are no owner any more.',
    response: {
      status: 201,
      schema: z
        .object({
          url: textField(
            'https://api.example.com/console/#token=k3l…',
            'The link to pass to the member. Returned only once.',
          ),
          expiresAt: epochMs('Until when the link signs in.'),
        })
        .meta({ id: 'MemberSignInLink', description: 'A link that signs a member in.' }),
    },
    errors: ['forbidden'],
    handler: async ({ deps, session, ids: { accountId, memberId }, now }) => {
      const link = await createMemberLink(deps.sql, accountId, memberId, { makerKeyId: session.keyId, now });
      const { token, expiresAt } = foundOrThrow(link);
      return { url: signInUrl(deps.publicUrl, token, { isNew: false }), expiresAt };
    },
  }),

  route({
    method: 'POST',
    path: '/accounts/:accountId/members/:memberId/sign-in-links/send',
    caller: manager,
    operationId: 'sendMemberSignInLink',
    ids,
    summary: 'Mails another invitation to a member.',
    description:
      `At most ${MEMBER_MAILS_IN_AN_HOUR.toAddress.member_invitation} within an hour to one address, also as that of other members before, ` +
      `and ${MEMBER_MAILS_IN_AN_HOUR.invitations} to all members of an account.`,
    response: {
      status: 202,
      schema: z
        .object({
          emailId: idOf('email', 'The id of the mail, which is sent within seconds.'),
          maskedRecipient: maskedAddress,
          expiresAt: epochMs('Until when the link signs in.'),
        })
        .meta({ id: 'MemberInvitation', description: 'A mail with a link that signs a member in.' }),
    },
    errors: ['forbidden', 'mail_not_configured', 'too_many_emails'],
    handler: async ({ deps, ids: { accountId, memberId }, now }) => {
      const found = await findMember(deps.sql, accountId, memberId);
      if (found === undefined || found.removedAt !== null) throw notFound();
      if (deps.sendsMail !== true) throw withAdvice('mail_not_configured');
      const options = { kind: 'member_invitation', now } as const;
      const sent = foundOrThrow(await mailMemberLink(deps, accountId, memberId, options));
      if (sent.outcome === 'too_many')
        throw tooManyEmails(sent.retryAfterSeconds, sent.isOfAccount ? 'account' : 'member');
      return {
        emailId: sent.emailId,
        maskedRecipient: maskEmail(sent.address),
        expiresAt: sent.expiresAt,
      };
    },
  }),

  route({
    method: 'POST',
    path: '/accounts/:accountId/members/:memberId/remove',
    caller: manager,
    operationId: 'removeMember',
    ids,
    summary: 'Removes a member.',
    description:
      'The sessions and links of the member end at once, and the address is erased. Account keys that the member created stay valid: the audit names them. Removing twice changes nothing.',
    response: { status: 200, schema: member },
    errors: ['forbidden', 'last_owner'],
    handler: async ({ deps, ids: { accountId, memberId }, now }) =>
      presentMember(memberOrThrow(foundOrThrow(await removeMember(deps.sql, accountId, memberId, now)))),
  }),
];
