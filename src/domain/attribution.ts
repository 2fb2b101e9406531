import type { AffiliateId, ClickId, LinkId } from './ids.ts';
import { DAY_MS, MINUTE_MS } from './time.ts';

/** How far ahead of this service's clock a caller's clock may be, ms. */
export const CLOCK_TOLERANCE_MS = 5 * MINUTE_MS;

export const MATCH_METHODS = ['claim_token', 'code', 'deferred'] as const;
export type MatchMethod = (typeof MATCH_METHODS)[number];

export const AFFILIATE_STATUSES = ['active', 'paused', 'removed'] as const;
export type AffiliateStatus = (typeof AFFILIATE_STATUSES)[number];

/** Something that may have brought a device: a click, or a code that was typed. */
export interface Touch {
  readonly matchMethod: MatchMethod;
  readonly affiliateId: AffiliateId;
  readonly linkId: LinkId | null;
  readonly clickId: ClickId | null;
  /** When it happened, epoch ms. For a code it is the first open itself. */
  readonly touchedAt: number;
}

/** The click that a claim token names. */
export interface ClaimedClick {
  readonly clickId: ClickId;
  readonly affiliateId: AffiliateId;
  readonly linkId: LinkId;
  readonly clickedAt: number;
  readonly claimedByDevice: string | null;
  readonly affiliateStatus: AffiliateStatus;
}

/** What a typed code names: a link, or an affiliate without a link. */
export interface CodeTarget {
  readonly affiliateId: AffiliateId;
  readonly linkId: LinkId | null;
  /** True for an affiliate's own id. */
  readonly active: boolean;
  readonly affiliateStatus: AffiliateStatus;
}

/** The newest unclaimed click on one link that the redirect recorded from an address. */
export interface DeferredClick {
  readonly affiliateId: AffiliateId;
  readonly linkId: LinkId;
  /** The keyed hash of the address in hexadecimal digits: it tells clicks of two days apart. */
  readonly addressHash: string;
  readonly clickedAt: number;
  readonly linkActive: boolean;
  readonly affiliateStatus: AffiliateStatus;
}

/**
 * Whether a first open still belongs to a touch. Both ends of the window are in it. A phone's clock may be behind the
 * clock that wrote the click down, so an open that seems to come before its click counts as one at the same moment.
 */
export function isInWindow(touchedAt: number, firstOpenAt: number, windowDays: number): boolean {
  return Math.max(0, firstOpenAt - touchedAt) <= windowDays * DAY_MS;
}

/** Whether an instant that a caller reports is further ahead than clocks differ. */
export function isInFuture(at: number, now: number): boolean {
  return at > now + CLOCK_TOLERANCE_MS;
}

/**
 * The touch that an install is owed to, or null when there is none. The claim token decides and the code is its
 * fallback. A token belongs to the first device that redeemed it. A click counts although its link was switched off
 * since; a code of an inactive link does not. Nobody is attributed to a removed affiliate; a paused one is remembered.
 */
export function chooseTouch(install: {
  readonly deviceId: string;
  readonly firstOpenAt: number;
  readonly windowDays: number;
  readonly click: ClaimedClick | null;
  readonly code: CodeTarget | null;
}): Touch | null {
  const { click, code, deviceId, firstOpenAt, windowDays } = install;
  if (
    click !== null &&
    (click.claimedByDevice === null || click.claimedByDevice === deviceId) &&
    click.affiliateStatus !== 'removed' &&
    isInWindow(click.clickedAt, firstOpenAt, windowDays)
  ) {
    const { clickId, affiliateId, linkId, clickedAt } = click;
    return { matchMethod: 'claim_token', affiliateId, linkId, clickId, touchedAt: clickedAt };
  }
  if (code !== null && code.active && code.affiliateStatus !== 'removed') {
    const { affiliateId, linkId } = code;
    return { matchMethod: 'code', affiliateId, linkId, clickId: null, touchedAt: firstOpenAt };
  }
  return null;
}

/**
 * How many links of one address a deferred match looks at. An address that clicked more of them is a crowd, such as a
 * proxy that everybody comes through.
 */
export const DEFERRED_LINKS_LIMIT = 100;

/**
 * The click that an install without token and code is owed to by its requester's address: the newest one inside the
 * deferred window, which counts from the click to the request and has both ends in it, 0 being off. Clicks of several
 * affiliates are no answer, since a guess would be somebody's money. Links that were switched off and affiliates that
 * were removed count for nothing; a paused affiliate's click does, as with a token.
 */
export function chooseDeferredClick(match: {
  readonly clicks: readonly DeferredClick[];
  readonly now: number;
  readonly windowMinutes: number;
}): DeferredClick | 'ambiguous' | null {
  const { clicks, now, windowMinutes } = match;
  if (windowMinutes === 0) return null;
  if (clicks.length > DEFERRED_LINKS_LIMIT) return 'ambiguous';
  const [newest, ...older] = clicks
    .filter(
      (click) =>
        click.linkActive &&
        click.affiliateStatus !== 'removed' &&
        now - click.clickedAt <= windowMinutes * MINUTE_MS,
    )
    .toSorted((a, b) => b.clickedAt - a.clickedAt);
  if (newest === undefined) return null;
  return older.some((click) => click.affiliateId !== newest.affiliateId) ? 'ambiguous' : newest;
}

/**
 * Whether an install that is reported again tells of the touch that won before. The time of a code does not count: it
 * is the install's own, and a client may measure it anew.
 */
export function isSameTouch(winner: Omit<Touch, 'touchedAt'>, touch: Touch): boolean {
  return (
    winner.clickId === touch.clickId &&
    winner.affiliateId === touch.affiliateId &&
    winner.linkId === touch.linkId
  );
}
