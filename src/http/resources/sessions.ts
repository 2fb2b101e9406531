import {
  endOtherSessions,
  endSession,
  findSession,
  hasAccounts,
  listSessions,
  newToken,
  raiseSession,
  raiseWithLink,
  spendSignInLink,
  startSession,
} from '../../db/sessions.ts';
import type { Session } from '../../db/sessions.ts';
import { raiseWithPasskey, startSessionWithPasskey } from '../../db/passkeys.ts';
import { keyKind } from '../../domain/keys.ts';
import { isToken } from '../../domain/sessions.ts';
import type { Caller } from '../authenticate.ts';
import type { HttpContext } from '../context.ts';
import type { HttpDeps } from '../deps.ts';
import { ApiError, notFound } from '../errors.ts';
import { rememberCredential } from '../failed-calls.ts';
import type { PasskeyAnswer } from '../passkey-fields.ts';
import { refusedPasskey, verifyPasskey } from '../passkeys.ts';
import { addressCaller } from '../rate-limits.ts';
import { anyone, consoleSession } from '../routing/callers.ts';
import { route } from '../routing/route.ts';
import {
  readSessionToken,
  refuseForeignSignIn,
  refuseOtherOrigins,
  sessionCookie,
} from '../session-cookie.ts';
import {
  currentSession,
  endedSessions,
  presentKey,
  presentMeans,
  presentSession,
  raisingProof,
  session,
  sessionList,
  signIn,
} from './sessions-views.ts';

/** The most characters of a User-Agent that are stored. */
const USER_AGENT_LENGTH = 512;

/** Returns what is stored of a session that the request starts. */
export function newSession(ctx: HttpContext, now: number) {
  // A header may have bytes that are no text.
  const userAgent = ctx
    .get('User-Agent')
    .replaceAll(/[^\x20-\x7e]/g, '')
    .slice(0, USER_AGENT_LENGTH);
  return { token: newToken(), userAgent: userAgent === '' ? null : userAgent, now };
}

/**
 * Ends the session that a new one has replaced in a browser. The new one has begun, and what began it may work once, so a failure is logged:
 * the former session has no cookie any more, and ends when its time is over.
 */
export async function endReplaced(
  { logger }: Pick<HttpDeps, 'logger'>,
  end: () => Promise<unknown>,
): Promise<void> {
  try {
    await end();
  } catch (error) {
    logger.warn({ err: error, msg: 'the session that another one replaced in its browser was not ended' });
  }
}

/** Lets the session of a member pay with a passkey of that member. Throws 403 for any other passkey, and for one that does not pay. */
async function raiseByPasskey(deps: HttpDeps, current: Session, sent: PasskeyAnswer, now: number) {
  // No passkey is that of a session without a member.
  if (current.member === null) throw refusedPasskey();
  const purpose = { kind: 'raise', sessionId: current.id } as const;
  const answer = await verifyPasskey(deps.sql, sent, purpose, { ...deps, now, memberId: current.member.id });
  if (!answer.passkey.raises) {
    throw new ApiError('forbidden', {
      detail:
        'This passkey signs in and does not pay: it was added when your role did not. Revoke it, and add it again in a session that may pay.',
    });
  }
  const raised = await raiseWithPasskey(deps.sql, current, answer, now);
  if (raised === undefined) throw refusedPasskey();
  return raised;
}

/** Sessions that the caller sees and ends: those of its key, and with `setup` all of the account; of members, all only as an owner. */
function scopeOf({ accountId, keyId, permissions, session: held }: Caller) {
  const member = held?.member ?? null;
  const seesAll = member === null ? permissions.includes('setup') : member.role === 'owner';
  return { accountId, keyId: seesAll ? null : keyId };
}

const CALLER_SEES =
  'A session whose key has the permission `setup` sees and ends all sessions of the account, any other those of its key. A member does so as an owner.';

export const sessionRoutes = [
  route({
    method: 'GET',
    path: '/session',
    caller: anyone(),
    operationId: 'getSession',
    summary: 'Retrieves the session of this browser.',
    response: { status: 200, schema: currentSession },
    errors: ['cross_origin', 'unavailable'],
    handler: async ({ ctx, deps, now }) => {
      const token = readSessionToken(ctx, deps.publicUrl);
      if (token !== null) refuseOtherOrigins(ctx, deps.publicUrl);
      const found = token === null ? undefined : await findSession(deps.sql, token, now);
      const means = presentMeans(deps);
      return found === undefined
        ? { session: null, hasAccounts: await hasAccounts(deps.sql), ...means }
        : { session: presentSession(found, deps), hasAccounts: true, ...means };
    },
  }),

  route({
    method: 'POST',
    path: '/session',
    caller: anyone(),
    operationId: 'signIn',
    summary: 'Signs this browser in, with an account key, a sign-in link or a passkey.',
    description:
      'Sets a cookie that no script can read. It counts for routes that take an account key, with the permissions that the ' +
      'key has at each call, and never beside an `Authorization` header. A sign-in link works once. One that was mailed to a ' +
      'member who asked for it lets the session pay for 15 minutes: a new one, or the one that this browser has for the member. ' +
      'A passkey answers a challenge of `POST /session/passkeys/sign-in-options`, and signs its member in; the session may pay for 15 minutes, too.',
    body: signIn,
    response: {
      status: 200,
      schema: session,
      headers: { 'Set-Cookie': 'The cookie of the session.' },
    },
    errors: [
      'unauthorized',
      'invalid_sign_in_link',
      'invalid_passkey',
      'cross_origin',
      'passkeys_not_possible',
      'unavailable',
    ],
    rateLimit: { name: 'signIn', caller: ({ ctx }) => addressCaller(ctx.ip) },
    handler: async ({ ctx, deps, body, now }) => {
      refuseForeignSignIn(ctx, deps.publicUrl);
      const made = newSession(ctx, now);
      const { requestId } = ctx.state;
      const sql = deps.sql.actingAs({ kind: 'sign_in', requestId });
      const sqlOf = ({ keyId, id: sessionId }: Session) =>
        deps.sql.actingAs({ kind: 'session', keyId, sessionId, requestId });
      const headers = { 'WWW-Authenticate': 'Bearer' };
      const previous = readSessionToken(ctx, deps.publicUrl);
      const replaced = previous === null ? undefined : await findSession(deps.sql, previous, now);
      let started: Session | undefined;
      if ('key' in body) {
        if (keyKind(body.key) === 'account') started = await startSession(sql, body.key, made);
        if (started === undefined)
          throw new ApiError('unauthorized', {
            detail:
              'This is no valid account key. It begins with "tri_sk_live_", and the Access page and `tributary keys list` show whether it has ended.',
            headers,
          });
      } else if ('passkey' in body) {
        const answer = await verifyPasskey(deps.sql, body.passkey, { kind: 'sign_in' }, { ...deps, now });
        started = await startSessionWithPasskey(sql, answer, made);
        if (started === undefined) throw refusedPasskey();
      } else {
        if (isToken(body.token) && replaced?.member != null) {
          const raised = await raiseWithLink(sqlOf(replaced), replaced, body.token, now);
          if (raised !== undefined) return presentSession({ ...replaced, ...raised }, deps);
        }
        if (isToken(body.token)) started = await spendSignInLink(sql, body.token, made, body.accountName);
        if (started === undefined)
          throw new ApiError('invalid_sign_in_link', {
            detail:
              'The link was used before, or its time is over. A member gets another one with the own e-mail address, or from an owner. `npm run -s admin -- console` creates one, too; if there are several accounts, add `--account ID`.',
            headers,
          });
      }
      if (replaced !== undefined)
        await endReplaced(deps, async () => {
          await endSession(sql, { accountId: replaced.accountId, keyId: null }, replaced.id, now);
        });
      rememberCredential(deps.knownCredentials, made.token, now);
      ctx.set(sessionCookie(deps.publicUrl, made.token));
      return presentSession(started, deps);
    },
  }),

  route({
    method: 'POST',
    path: '/session/raise',
    caller: consoleSession(null, { addressLimit: 'signIn' }),
    operationId: 'raiseSession',
    summary: 'Lets this session pay for 15 minutes.',
    description:
      'Payouts are then booked on the key that is sent, or on that of the member whose passkey answers a challenge of `POST /session/passkeys/raise-options`.',
    body: raisingProof,
    response: { status: 200, schema: session },
    errors: ['forbidden', 'invalid_passkey', 'passkeys_not_possible'],
    handler: async ({ deps, session: current, body, now }) => {
      if (current.member !== null && !current.permissions.includes('payout')) {
        throw new ApiError('forbidden', {
          detail: `The role ${current.member.role} does not pay. An owner of the account can give you another role.`,
        });
      }
      if ('passkey' in body) {
        return presentSession(
          { ...current, ...(await raiseByPasskey(deps, current, body.passkey, now)) },
          deps,
        );
      }
      const raised =
        keyKind(body.key) === 'account' ? await raiseSession(deps.sql, current, body.key, now) : undefined;
      if (raised === undefined)
        throw new ApiError('forbidden', {
          detail: 'This is no valid key of this account with the permission "payout".',
        });
      return presentSession({ ...current, ...raised }, deps);
    },
  }),

  route({
    method: 'POST',
    path: '/session/end',
    caller: consoleSession(null),
    operationId: 'signOut',
    summary: 'Signs this browser out.',
    response: {
      status: 200,
      schema: endedSessions,
      headers: { 'Set-Cookie': 'Removes the cookie of the session.' },
    },
    handler: async ({ ctx, deps, session: current, now }) => {
      await endSession(deps.sql, { accountId: current.accountId, keyId: null }, current.id, now);
      ctx.set(sessionCookie(deps.publicUrl, null));
      return { ended: 1 };
    },
  }),

  route({
    method: 'GET',
    path: '/sessions',
    caller: consoleSession(null),
    operationId: 'listSessions',
    summary: 'Lists the sessions of the account, newest first.',
    description: `Returns at most 200. ${CALLER_SEES}`,
    response: {
      status: 200,
      schema: sessionList,
    },
    handler: async ({ deps, caller, session: current, now }) => {
      const rows = await listSessions(deps.sql, scopeOf(caller), now);
      return {
        sessions: rows.map((row) => ({
          id: row.id,
          isCurrent: row.id === current.id,
          key: presentKey(row),
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
    path: '/sessions/:id/end',
    caller: consoleSession(null),
    operationId: 'endSession',
    ids: { id: 'session' },
    summary: 'Ends a session.',
    description: CALLER_SEES,
    response: {
      status: 200,
      schema: endedSessions,
    },
    handler: async ({ deps, caller, ids, now }) => {
      if (!(await endSession(deps.sql, scopeOf(caller), ids.id, now))) throw notFound();
      return { ended: 1 };
    },
  }),

  route({
    method: 'POST',
    path: '/sessions/end-all',
    caller: consoleSession(null),
    operationId: 'endOtherSessions',
    summary: 'Ends all sessions of the account except this one.',
    description: CALLER_SEES,
    response: {
      status: 200,
      schema: endedSessions,
    },
    handler: async ({ deps, caller, session: current, now }) => ({
      ended: await endOtherSessions(deps.sql, scopeOf(caller), current.id, now),
    }),
  }),
];
