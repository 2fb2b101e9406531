import { randomUUID } from 'node:crypto';
import { isbot } from 'isbot';
import { recordClick } from '../../db/clicks.ts';
import { findRedirectTarget } from '../../db/links.ts';
import type { RedirectTarget } from '../../db/links.ts';
import { redirectLocation } from '../../domain/redirect-location.ts';
import { isSlug, isSubdomain, subdomainOfHost } from '../../domain/slugs.ts';
import type { HttpContext } from '../context.ts';
import type { HttpDeps } from '../deps.ts';
import { foundOrThrow, notFound } from '../errors.ts';
import { clickCaller } from '../rate-limits.ts';
import { requesterAddress } from '../requester.ts';
import { rawRoute } from '../route.ts';
import { USER_AGENT_LENGTH } from '../schemas/tracking.ts';

interface Visit {
  readonly ctx: HttpContext;
  readonly deps: HttpDeps;
  readonly now: number;
}

/** Records the click of a visit under a token made for it. False when the link leads nowhere any more. */
async function recordVisit(
  { ctx, deps, now }: Visit,
  { appId, slug, deferredWindowMinutes }: RedirectTarget,
  claimToken: string,
): Promise<boolean> {
  const userAgent = ctx.get('User-Agent').slice(0, USER_AGENT_LENGTH);
  const isBot = isbot(userAgent);
  // Nothing of an address is kept that no install could use: a bot installs nothing, and a window of 0 is off.
  const address = !isBot && deferredWindowMinutes > 0 ? requesterAddress(ctx, deps) : null;
  const recorded = await recordClick(deps.sql, {
    appId,
    slug,
    claimToken,
    ipHash: null,
    userAgent: userAgent === '' ? null : userAgent,
    isBot,
    clickedAt: now,
    addressHash: address === null ? null : await deps.addressHasher.hashOfClick(appId, address, now),
  });
  return recorded !== undefined;
}

/** Clicks over the limit of `POST /clicks` are not recorded; nobody is turned away for them. */
async function isWithinLimit({ ctx, deps }: Visit, { appId }: RedirectTarget): Promise<boolean> {
  const state = await deps.rateLimits.count('clicks', clickCaller(appId, ctx.ip));
  return state === null || state.isAllowed;
}

/**
 * Sends a visitor where a link leads. A click that counts takes a claim token along. Where the link was switched off or
 * its affiliate removed, people still get there, without a token. HEAD only asks: its token is one that nobody knows.
 */
async function sendOn(visit: Visit, linkSubdomain: string, slug: string): Promise<void> {
  const { ctx, deps } = visit;
  if (!isSubdomain(linkSubdomain) || !isSlug(slug)) throw notFound();
  const target = foundOrThrow(await findRedirectTarget(deps.sql, linkSubdomain, slug));
  ctx.state.appId = target.appId;
  const claimToken = randomUUID();
  const counts =
    target.counts &&
    (ctx.method === 'HEAD' ||
      ((await isWithinLimit(visit, target)) && (await recordVisit(visit, target, claimToken))));
  const location = redirectLocation(target.destinationUrl, counts ? { claimToken, slug: target.slug } : null);
  ctx.set('Location', location);
  // The destination learns the site that the link stood on, never the page.
  ctx.set('Referrer-Policy', 'strict-origin-when-cross-origin');
  ctx.type = 'text/plain';
  ctx.body = `Continue at ${location}\n`;
}

const NOTE =
  'The address gets `claim_token` and `via`, inside `referrer` for the Play Store. A link that was switched off, or whose ' +
  'affiliate was removed, leads on without them. Over the rate limit of clicks people are sent on, too, and not counted.';

const HEADERS = { Location: 'where the link leads' };

export const redirectRoutes = [
  rawRoute({
    method: 'GET',
    path: '/l/:linkSubdomain/:slug',
    auth: 'none',
    permission: null,
    operationId: 'followLink',
    summary:
      'Records a click on a link of the app with that link subdomain, and redirects to where it leads.',
    description: NOTE,
    errors: ['not_found', 'unavailable'],
    response: { status: 302, contentType: 'text/plain', headers: HEADERS },
    handler: async ({ ctx, deps, params, now }) => {
      const { linkSubdomain = '', slug = '' } = params;
      await sendOn({ ctx, deps, now }, linkSubdomain.toLowerCase(), slug);
    },
  }),

  rawRoute({
    method: 'GET',
    path: '/l/:slug',
    auth: 'none',
    permission: null,
    operationId: 'followLinkOnSubdomain',
    summary: "The same on a host whose first label is the app's link subdomain.",
    description: NOTE,
    errors: ['not_found', 'unavailable'],
    response: { status: 302, contentType: 'text/plain', headers: HEADERS },
    handler: async ({ ctx, deps, params, now }) => {
      const linkSubdomain = subdomainOfHost(ctx.hostname, new URL(deps.publicUrl).hostname);
      if (linkSubdomain === null) throw notFound();
      await sendOn({ ctx, deps, now }, linkSubdomain, params['slug'] ?? '');
    },
  }),
];
