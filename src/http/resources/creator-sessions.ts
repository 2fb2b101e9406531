import * as z from 'zod';
import {
  createCreatorLink,
  endCreatorSession,
  endCreatorSessions,
  findCreator,
  findCreatorSession,
  listCreatorSessions,
  revokeCreatorAccess,
  spendCreatorLink,
} from '../../db/creator-sessions.ts';
import type { CreatorSession } from '../../db/creator-sessions.ts';
import { INVITATIONS_IN_AN_HOUR, inviteByMail } from '../../db/invitations.ts';
import { maskEmail } from '../../domain/payee.ts';
import { CREATOR_LINK_USES, creatorSignInUrl, TOKEN_BYTES } from '../../domain/sessions.ts';
import { foundOrThrow, notFound, tooManyEmails, withAdvice } from '../errors.ts';
import { count, epochMs, idOf, orNull, textField } from '../fields.ts';
import { accountApp, creatorSession } from '../routing/callers.ts';
import { route } from '../routing/route.ts';
import { sessionCookie } from '../session-cookie.ts';
import { maskedAddress } from '../member-fields.ts';
import { linkSessionRoutes } from './link-sessions.ts';
import { endedSessions } from './sessions-views.ts';

const signInLink = z
  .object({
    url: textField(
      'https://api.example.com/console/creator/#token=k3l…',
      'The link to send to the creator. Returned only once.',
    ),
    expiresAt: epochMs('Until when the link signs in.'),
    uses: count('How many browsers the link signs in. Chat apps open links in browsers of their own.'),
  })
  .meta({ id: 'CreatorSignInLink', description: 'A link that signs a creator in.' });

const invitation = z
  .object({
    emailId: idOf('email', 'The id of the mail, which is sent within seconds.'),
    maskedRecipient: maskedAddress,
    expiresAt: epochMs('Until when the link signs in.'),
    uses: count('How many browsers the link signs in.'),
  })
  .meta({ id: 'CreatorInvitation', description: 'A mail with a link that signs a creator in.' });

const endedAccess = z
  .object({
    revokedLinks: count('Links that no longer sign in.'),
    endedSessions: count('Sessions that were ended.'),
  })
  .meta({ id: 'EndedCreatorAccess', description: 'What was revoked and ended.' });

const session = z
  .object({
    id: idOf('session'),
    affiliateId: idOf('affiliate'),
    name: textField('First creator', 'The name of the creator.'),
    createdAt: epochMs('When the session began.'),
    expiresAt: epochMs('When the session ends at the latest. It ends earlier after 90 days without a call.'),
  })
  .meta({ id: 'CreatorSession', description: 'A session of a creator.' });

const listedSession = z
  .object({
    id: idOf('session'),
    isCurrent: z.boolean().describe('Whether it is the session that calls.'),
    userAgent: orNull(
      textField('Mozilla/5.0 (X11; Linux x86_64)', 'The browser, as it named itself at the sign-in.'),
      'Null if it did not.',
    ),
    createdAt: epochMs('When the session began.'),
    lastUsedAt: epochMs('When the session was last used, to the minute.'),
    expiresAt: epochMs('When the session ends if it is not used.'),
  })
  .meta({ id: 'ListedCreatorSession', description: 'A session of the creator.' });

function presentSession({ id, affiliateId, name, createdAt, expiresAt }: CreatorSession) {
  return { id, affiliateId, name, createdAt, expiresAt };
}

const affiliateId = { affiliateId: 'affiliate' } as const;

/** How a founder lets a creator in. */
export const creatorLinkRoutes = [
  route({
    method: 'POST',
    path: '/apps/:appId/affiliates/:affiliateId/sign-in-links',
    caller: accountApp('setup'),
    operationId: 'createCreatorSignInLink',
    summary: "Creates a link that signs a creator in to the creator's page.",
    description:
      `The link works ${CREATOR_LINK_USES} times within 7 days. The page shows the earnings, links and payouts of this ` +
      'affiliate and nothing else.',
    ids: affiliateId,
    response: { status: 201, schema: signInLink },
    handler: async ({ deps, app, ids, idGenerator, now }) => {
      const token = idGenerator.bytes(TOKEN_BYTES).toString('base64url');
      const scope = { appId: app.id, affiliateId: ids.affiliateId };
      const expiresAt = foundOrThrow(await createCreatorLink(deps.sql, scope, token, now));
      return { url: creatorSignInUrl(deps.publicUrl, token), expiresAt, uses: CREATOR_LINK_USES };
    },
  }),

  route({
    method: 'POST',
    path: '/apps/:appId/affiliates/:affiliateId/sign-in-links/send',
    caller: accountApp('setup'),
    operationId: 'sendCreatorSignInLink',
    summary: "Mails a link to the creator that signs in to the creator's page.",
    description:
      'The link is a new one, works as that of `POST …/sign-in-links`, and goes to the `email` of the affiliate only. ' +
      '`GET /apps/:appId/emails` says what became of the mail. At most ' +
      `${INVITATIONS_IN_AN_HOUR.ofCreator} within an hour for a creator, and ${INVITATIONS_IN_AN_HOUR.ofAccount} for all creators of an account.`,
    ids: affiliateId,
    response: { status: 202, schema: invitation },
    errors: ['mail_not_configured', 'no_email_address', 'too_many_emails'],
    handler: async ({ deps, app, ids, idGenerator, now }) => {
      const emailId = idGenerator.id('email');
      const token = idGenerator.bytes(TOKEN_BYTES).toString('base64url');
      const scope = { appId: app.id, affiliateId: ids.affiliateId };
      if (deps.sendsMail !== true) {
        foundOrThrow(await findCreator(deps.sql, scope));
        throw withAdvice('mail_not_configured');
      }
      const sent = foundOrThrow(await inviteByMail(deps, scope, { emailId, token, now }));
      if (sent.outcome === 'no_address') throw withAdvice('no_email_address');
      if (sent.outcome === 'too_many')
        throw tooManyEmails(sent.retryAfterSeconds, sent.isOfAccount ? 'account' : 'creator');
      return {
        emailId,
        maskedRecipient: maskEmail(sent.address),
        expiresAt: sent.expiresAt,
        uses: CREATOR_LINK_USES,
      };
    },
  }),

  route({
    method: 'POST',
    path: '/apps/:appId/affiliates/:affiliateId/sign-in-links/revoke',
    caller: accountApp('setup'),
    operationId: 'revokeCreatorSignInLinks',
    summary: "Revokes a creator's sign-in links and ends the creator's sessions.",
    ids: affiliateId,
    response: { status: 200, schema: endedAccess },
    handler: async ({ deps, app, ids, now }) =>
      foundOrThrow(await revokeCreatorAccess(deps.sql, { appId: app.id, affiliateId: ids.affiliateId }, now)),
  }),
];

/** The sessions of creators. */
export const creatorSessionRoutes = [
  ...linkSessionRoutes({
    kind: 'creator',
    whose: 'a creator',
    name: 'Creator',
    schema: session,
    present: presentSession,
    find: findCreatorSession,
    spend: spendCreatorLink,
    end: async (sql, ended, now) => await endCreatorSession(sql, ended, ended.id, now),
    refusal:
      'The link was used too often, its time is over, or it was revoked. Ask the founder of the app for a new one.',
  }),

  route({
    method: 'POST',
    path: '/creator/session/end',
    caller: creatorSession,
    operationId: 'signOutCreator',
    summary: 'Signs this browser out.',
    response: {
      status: 200,
      schema: endedSessions,
      headers: { 'Set-Cookie': 'Removes the cookie of the session.' },
    },
    handler: async ({ ctx, deps, session: current, now }) => {
      await endCreatorSession(deps.sql, current, current.id, now);
      ctx.set(sessionCookie(deps.publicUrl, null, 'creator'));
      return { ended: 1 };
    },
  }),

  route({
    method: 'GET',
    path: '/creator/sessions',
    caller: creatorSession,
    operationId: 'listCreatorSessions',
    summary: 'Lists the sessions of the creator, newest first.',
    description: 'Returns at most 200.',
    response: {
      status: 200,
      schema: z
        .object({ sessions: z.array(listedSession).describe('The sessions that are valid.') })
        .meta({ id: 'CreatorSessionList', description: 'Sessions of the creator, newest first.' }),
    },
    handler: async ({ deps, session: current, now }) => {
      const rows = await listCreatorSessions(deps.sql, current, now);
      return {
        sessions: rows.map((row) => ({
          id: row.id,
          isCurrent: row.id === current.id,
          userAgent: row.userAgent,
          createdAt: row.createdAt,
          lastUsedAt: row.lastUsedAt,
          expiresAt: row.expiresAt,
        })),
      };
    },
  }),

  route({
    method: 'POST',
    path: '/creator/sessions/:id/end',
    caller: creatorSession,
    operationId: 'endCreatorSession',
    ids: { id: 'session' },
    summary: 'Ends a session of the creator.',
    response: { status: 200, schema: endedSessions },
    handler: async ({ deps, session: current, ids, now }) => {
      if (!(await endCreatorSession(deps.sql, current, ids.id, now))) throw notFound();
      return { ended: 1 };
    },
  }),

  route({
    method: 'POST',
    path: '/creator/sessions/end-all',
    caller: creatorSession,
    operationId: 'endOtherCreatorSessions',
    summary: 'Ends all sessions of the creator except this one.',
    response: { status: 200, schema: endedSessions },
    handler: async ({ deps, session: current, now }) => ({
      ended: await endCreatorSessions(deps.sql, current, current.id, now),
    }),
  }),
];
