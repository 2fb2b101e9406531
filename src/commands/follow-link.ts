import { randomUUID } from 'node:crypto';
import { isbot } from 'isbot';
import { recordClick } from '../db/clicks.ts';
import type { RedirectTarget } from '../db/links.ts';
import { platformOf } from '../domain/platform.ts';
import { redirectLocation } from '../domain/redirect-location.ts';
import type { CommandDeps } from './deps.ts';

/** How much of a User-Agent is stored, characters. Enough to tell browsers and bots apart. */
export const USER_AGENT_LENGTH = 512;

export interface Visit {
  /** `preview` creates a token and records nothing (HEAD); `skip` redirects without a token (over the rate limit). */
  readonly click: 'record' | 'preview' | 'skip';
  /** Epoch ms. */
  readonly at: number;
  /** Empty if the request has none. */
  readonly userAgent: string;
  /** Null if it is unknown. */
  readonly clientAddress: string | null;
}

/** Returns the destination of a visitor: that of the system of the device, if the link has one. Bots get the common one. */
function destinationOf(target: RedirectTarget, userAgent: string): string {
  const { destinationUrl, iosDestinationUrl, androidDestinationUrl } = target;
  switch (isbot(userAgent) ? null : platformOf(userAgent)) {
    case 'ios':
      return iosDestinationUrl ?? destinationUrl;
    case 'android':
      return androidDestinationUrl ?? destinationUrl;
    case null:
      return destinationUrl;
  }
}

/**
 * Returns the address to redirect a visitor of a link to. A visit that counts records a click and passes its claim token
 * on. If the link is inactive or its affiliate removed, visitors still reach the destination, without a token.
 */
export async function followLink(
  deps: Pick<CommandDeps, 'sql' | 'addressHasher'>,
  target: RedirectTarget,
  visit: Visit,
): Promise<string> {
  const { slug, isCounted } = target;
  const userAgent = visit.userAgent.slice(0, USER_AGENT_LENGTH);
  const claimToken = randomUUID();
  const isClaimable =
    isCounted &&
    (visit.click === 'preview' ||
      (visit.click === 'record' && (await recordVisit(deps, target, { ...visit, userAgent }, claimToken))));
  return redirectLocation(destinationOf(target, userAgent), isClaimable ? { claimToken, slug } : null);
}

/** Records the click of a visit. Returns false if the link was switched off meanwhile. */
async function recordVisit(
  { sql, addressHasher }: Pick<CommandDeps, 'sql' | 'addressHasher'>,
  { appId, slug, deferredWindowMinutes }: RedirectTarget,
  visit: Visit,
  claimToken: string,
): Promise<boolean> {
  const { userAgent } = visit;
  const isBot = isbot(userAgent);
  // No hash is stored that no install could use: bots install nothing, and a window of 0 turns deferred matches off.
  const address = !isBot && deferredWindowMinutes > 0 ? visit.clientAddress : null;
  const recorded = await recordClick(sql, {
    appId,
    slug,
    claimToken,
    ipHash: null,
    userAgent: userAgent === '' ? null : userAgent,
    isBot,
    clickedAt: visit.at,
    addressHash: address === null ? null : await addressHasher.hashOfClick(appId, address, visit.at),
  });
  return recorded !== undefined;
}
