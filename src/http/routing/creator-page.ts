import type * as z from 'zod';
import { creatorOfPage, founderOfPage } from './callers.ts';
import type { CreatorPageExtra } from './callers.ts';
import type { Ids } from './read-call.ts';
import type { Declaration, Handling, Response } from './declaration.ts';
import { route } from './route.ts';
import type { Route } from './route.ts';

/**
 * Declares the two routes of a part of the creator's page: that of the creator, and one with which the founder sees the same.
 * It is under the affiliate of an app, needs the permission `read` and has the same handler. The page only reads: a founder could
 * otherwise write in the name of the creator.
 *
 * A session of the creator that a founder starts would do the same with fewer routes. But it would have to be distinguished from
 * the creator's own in the cookies, the list of sessions, the audit and each route that writes, and to end with the founder's
 * session, key and permission. A founder who stays a founder needs none of that: no session is stored, nothing can be changed,
 * and each call checks the session and the key. The CSV of a payout's statement stores the payout's CSV if the export has not yet;
 * its bytes follow from the payout, so it does not matter who asks first.
 */
export function creatorPageRoutes<
  R extends Response,
  const I extends Ids = Record<never, never>,
  Q extends z.ZodType = z.ZodUndefined,
>(
  spec: Declaration & { readonly method: 'GET' } & Handling<CreatorPageExtra, R, I, Q, z.ZodUndefined>,
): readonly [own: Route, founders: Route] {
  const { path, operationId, summary, description } = spec;
  return [
    route<CreatorPageExtra, R, I, Q>({ ...spec, caller: creatorOfPage }),
    route<CreatorPageExtra, R, I & { readonly affiliateId: 'affiliate' }, Q>({
      ...spec,
      caller: founderOfPage,
      ids: { ...(spec.ids as I), affiliateId: 'affiliate' },
      path: `/apps/:appId/affiliates/:affiliateId${path}`,
      operationId: `${operationId}AsFounder`,
      summary: summary.replace(/\.$/, ', for the founder.'),
      description: [description, `The response is what the creator sees at \`GET ${path}\`.`]
        .filter((text) => text !== undefined)
        .join(' '),
    }),
  ];
}
