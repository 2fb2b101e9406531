import * as z from 'zod';
import type { NewSession } from '../../db/sessions.ts';
import type { Sql } from '../../db/sql.ts';
import { isToken } from '../../domain/sessions.ts';
import { ApiError } from '../errors.ts';
import { rememberCredential } from '../failed-calls.ts';
import { textField } from '../fields.ts';
import { addressCaller } from '../rate-limits.ts';
import { anyone } from '../routing/callers.ts';
import { route } from '../routing/route.ts';
import type { Route } from '../routing/route.ts';
import {
  readSessionToken,
  refuseForeignSignIn,
  refuseOtherOrigins,
  sessionCookie,
} from '../session-cookie.ts';
import { endReplaced, newSession } from './sessions.ts';

/** Sessions that begin with a sign-in link and nothing else. */
interface LinkSessions<S, R extends z.ZodObject> {
  readonly kind: 'creator' | 'operator';
  /** Whose sessions they are, for the OpenAPI document. */
  readonly whose: string;
  /** In names of operations and schemas: `getCreatorSession`, `signInCreator`, `CreatorSignIn`. */
  readonly name: 'Creator' | 'Operator';
  /** A further sentence about the sign-in. */
  readonly description?: string;
  readonly schema: R;
  readonly present: (session: S) => z.input<R>;
  /** Returns the session of a token. Undefined if it is not valid. */
  readonly find: (sql: Sql, token: string, now: number) => Promise<S | undefined>;
  /** Uses a link and starts a session. Undefined for a link that no longer signs in. */
  readonly spend: (sql: Sql, linkToken: string, session: NewSession) => Promise<S | undefined>;
  readonly end: (sql: Sql, session: S, now: number) => Promise<unknown>;
  /** Why a link no longer signs in, and what to do. */
  readonly refusal: string;
}

/** Returns the routes with which a browser asks for its session, and with which it spends a link. */
export function linkSessionRoutes<S, R extends z.ZodObject>({
  kind,
  whose,
  name,
  description,
  schema,
  present,
  find,
  spend,
  end,
  refusal,
}: LinkSessions<S, R>): readonly Route[] {
  const path = `/${kind}/session`;
  return [
    route({
      method: 'GET',
      path,
      caller: anyone(),
      operationId: `get${name}Session`,
      summary: `Retrieves the session of ${whose} in this browser.`,
      response: {
        status: 200,
        schema: z
          .object({
            session: schema
              .nullable()
              .describe('The session of this browser. Null without one, and when it has ended.'),
          })
          .meta({
            id: `Current${name}Session`,
            description: `The session of ${whose} in the browser that calls.`,
          }),
      },
      errors: ['cross_origin', 'unavailable'],
      handler: async ({ ctx, deps, now }) => {
        const token = readSessionToken(ctx, deps.publicUrl, kind);
        if (token !== null) refuseOtherOrigins(ctx, deps.publicUrl);
        const found = token === null ? undefined : await find(deps.sql, token, now);
        return { session: found === undefined ? null : present(found) };
      },
    }),

    route({
      method: 'POST',
      path,
      caller: anyone(),
      operationId: `signIn${name}`,
      summary: `Signs this browser in with a sign-in link of ${whose}.`,
      description: [
        `Sets a cookie that no script can read. It counts only under \`/${kind}\`, and never beside an \`Authorization\` header.`,
        description,
      ]
        .filter((text) => text !== undefined)
        .join(' '),
      body: z
        .strictObject({
          token: textField('k3l…', 'The token of the sign-in link: the part after `#token=`.'),
        })
        .meta({ id: `${name}SignIn`, description: 'The token of a sign-in link.' }),
      response: {
        status: 200,
        schema,
        headers: { 'Set-Cookie': 'The cookie of the session.' },
      },
      errors: ['invalid_sign_in_link', 'cross_origin', 'unavailable'],
      rateLimit: { name: 'signIn', caller: ({ ctx }) => addressCaller(ctx.ip) },
      handler: async ({ ctx, deps, body, now }) => {
        refuseForeignSignIn(ctx, deps.publicUrl);
        const made = newSession(ctx, now);
        const sql = deps.sql.actingAs({ kind: 'sign_in', requestId: ctx.state.requestId });
        const previous = readSessionToken(ctx, deps.publicUrl, kind);
        const replaced = previous === null ? undefined : await find(deps.sql, previous, now);
        const started = isToken(body.token) ? await spend(sql, body.token, made) : undefined;
        if (started === undefined)
          throw new ApiError('invalid_sign_in_link', {
            detail: refusal,
            headers: { 'WWW-Authenticate': 'Bearer' },
          });
        if (replaced !== undefined) await endReplaced(deps, async () => await end(sql, replaced, now));
        rememberCredential(deps.knownCredentials, made.token, now);
        ctx.set(sessionCookie(deps.publicUrl, made.token, kind));
        return present(started);
      },
    }),
  ];
}
