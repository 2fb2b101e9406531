import { followLink } from '../../commands/follow-link.ts';
import type { Visit } from '../../commands/follow-link.ts';
import { findRedirectTarget } from '../../db/links.ts';
import type { RedirectTarget } from '../../db/links.ts';
import { isSlug, isSubdomain, subdomainOfHost } from '../../domain/slugs.ts';
import { clientAddress } from '../client-address.ts';
import type { HttpContext } from '../context.ts';
import type { HttpDeps } from '../deps.ts';
import { foundOrThrow } from '../errors.ts';
import { findCountingFailures } from '../failed-calls.ts';
import { addressCaller, clickCaller } from '../rate-limits.ts';
import { anyone } from '../routing/callers.ts';
import { route } from '../routing/route.ts';
import type { RawReply } from '../reply.ts';

/** Decides whether to record a click. Over the rate limit of `POST /clicks` a visitor is redirected and not counted. */
function clickOf(ctx: HttpContext, deps: HttpDeps, target: RedirectTarget): Visit['click'] {
  if (!target.isCounted) return 'skip';
  if (ctx.method === 'HEAD') return 'preview';
  const state = deps.rateLimits.count('clicks', clickCaller(target.appId, ctx.ip));
  return state === null || state.isAllowed ? 'record' : 'skip';
}

async function redirect(
  { ctx, deps, now }: { readonly ctx: HttpContext; readonly deps: HttpDeps; readonly now: number },
  linkSubdomain: string,
  slug: string,
): Promise<RawReply> {
  const address = deps.rateLimits.count('address', addressCaller(ctx.ip));
  const isLink = isSubdomain(linkSubdomain) && isSlug(slug);
  const target = foundOrThrow(
    await findCountingFailures(ctx, deps, isLink ? `${linkSubdomain} ${slug.toLowerCase()}` : '', async () =>
      isLink ? await findRedirectTarget(deps.sql, linkSubdomain, slug) : undefined,
    ),
  );
  ctx.state.appId = target.appId;
  const click = address?.isAllowed === false ? 'skip' : clickOf(ctx, deps, target);
  const location = await followLink(deps, target, {
    click,
    at: now,
    userAgent: ctx.get('User-Agent'),
    clientAddress: click === 'record' ? clientAddress(ctx, deps) : null,
  });
  return {
    headers: {
      Location: location,
      // Destinations learn the site that the link was on, never the page.
      'Referrer-Policy': 'strict-origin-when-cross-origin',
      'Content-Type': 'text/plain; charset=utf-8',
    },
    body: `Continue at ${location}\n`,
  };
}

const DESCRIPTION =
  'Adds `claim_token` and `via` to the destination, inside `referrer` for the Play Store. If the link is inactive or its ' +
  'affiliate removed, redirects without them. Over the rate limit of clicks, redirects without counting. Paths without a link ' +
  'count towards the limit of calls that fail.';

const HEADERS = { Location: 'The destination of the link.' };

export const redirectRoutes = [
  route({
    method: 'GET',
    path: '/l/:linkSubdomain/:slug',
    caller: anyone({ limitsAddress: false }),
    operationId: 'followLink',
    summary: 'Records a click and redirects to the destination of the link.',
    description: DESCRIPTION,
    errors: ['not_found', 'rate_limited', 'unavailable'],
    // The handler counts: a visitor over the limit is still redirected.
    response: { status: 302, contentType: 'text/plain', headers: HEADERS },
    handler: async (call) => {
      const { linkSubdomain = '', slug = '' } = call.params;
      return await redirect(call, linkSubdomain.toLowerCase(), slug);
    },
  }),

  route({
    method: 'GET',
    path: '/l/:slug',
    caller: anyone({ limitsAddress: false }),
    operationId: 'followLinkOnSubdomain',
    summary: "Records a click and redirects, on a host whose first label is the app's link subdomain.",
    description: DESCRIPTION,
    errors: ['not_found', 'rate_limited', 'unavailable'],
    // The handler counts: a visitor over the limit is still redirected.
    response: { status: 302, contentType: 'text/plain', headers: HEADERS },
    handler: async (call) => {
      const { ctx, deps, params } = call;
      const linkSubdomain = subdomainOfHost(ctx.hostname, new URL(deps.publicUrl).hostname);
      return await redirect(call, linkSubdomain ?? '', params['slug'] ?? '');
    },
  }),
];
