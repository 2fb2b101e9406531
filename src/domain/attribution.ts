import type { AffiliateId, ClickId, LinkId } from './ids.ts';
import { DAY_MS, MINUTE_MS } from './time.ts';

/** Maximum lead of a caller's clock over the service's clock, ms. */
export const CLOCK_TOLERANCE_MS = 5 * MINUTE_MS;

/** How many users one device can have. Callers choose device ids, and the SDK key is public. */
export const USERS_PER_DEVICE = 10;

/** How a device came to its attribution. */
export const MATCH_METHODS = ['claim_token', 'code', 'deferred'] as const;
export type MatchMethod = (typeof MATCH_METHODS)[number];

/** How a user came to a creator: by a device, by the code of a purchase, or because a founder said so. */
export const ATTRIBUTION_METHODS = [...MATCH_METHODS, 'purchase_code', 'manual'] as const;
export type AttributionMethod = (typeof ATTRIBUTION_METHODS)[number];

export const AFFILIATE_STATUSES = ['active', 'paused', 'removed'] as const;
export type AffiliateStatus = (typeof AFFILIATE_STATUSES)[number];

/** A click or an entered code that may have led to an install. */
export interface Touch {
  readonly matchMethod: MatchMethod;
  readonly affiliateId: AffiliateId;
  readonly linkId: LinkId | null;
  readonly clickId: ClickId | null;
  /** When the click happened, or when the code was entered. Epoch ms. */
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

/** The target of an entered code: a link, or an affiliate without a link. */
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
  /** Keyed hash of the address in hexadecimal. The key differs for each day. */
  readonly addressHash: string;
  readonly clickedAt: number;
  readonly linkActive: boolean;
  readonly affiliateStatus: AffiliateStatus;
}

/**
 * Whether a first open is within the attribution window of a touch. The window includes both ends. A phone's clock may
 * be behind the clock that recorded the click, so a first open before its click counts as simultaneous.
 */
export function isInWindow(touchedAt: number, firstOpenAt: number, windowDays: number): boolean {
  return Math.max(0, firstOpenAt - touchedAt) <= windowDays * DAY_MS;
}

/** Whether an instant reported by a caller is ahead of `now` by more than the clock tolerance. */
export function isInFuture(at: number, now: number): boolean {
  return at > now + CLOCK_TOLERANCE_MS;
}

/**
 * Returns the touch that an install is attributed to, or null. The claim token decides; the code is the fallback. A
 * token belongs to the first device that redeemed it. A click counts even if its link is inactive by now; a code of an
 * inactive link does not. No install is attributed to a removed affiliate; a paused affiliate is attributed as usual. A code has no
 * age: its touch is its entry, which may be long after the first open.
 */
export function chooseTouch(install: {
  readonly deviceId: string;
  readonly firstOpenAt: number;
  readonly windowDays: number;
  readonly click: ClaimedClick | null;
  readonly code: CodeTarget | null;
  readonly codeEnteredAt: number;
}): Touch | null {
  const { click, code, codeEnteredAt, deviceId, firstOpenAt, windowDays } = install;
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
    return { matchMethod: 'code', affiliateId, linkId, clickId: null, touchedAt: codeEnteredAt };
  }
  return null;
}

/**
 * How many links of one address a deferred match considers. An address with clicks on more links has many users, such
 * as a shared proxy.
 */
export const DEFERRED_LINKS_LIMIT = 100;

/**
 * Returns the click that an install without token and code is matched to by its requester's address: the newest click
 * within the deferred window. The window runs from the click to the request and includes both ends; 0 disables it.
 * Returns `ambiguous` for clicks of several affiliates: a guess could pay the wrong one. Clicks on inactive links and
 * of removed affiliates do not count. Clicks of paused affiliates do, as with a token.
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
 * Whether an install that is reported again contains the touch that won before. The time is not compared: for a code it
 * may be the time of the report.
 */
export function isSameTouch(winner: Omit<Touch, 'touchedAt'>, touch: Touch): boolean {
  return (
    winner.clickId === touch.clickId &&
    winner.affiliateId === touch.affiliateId &&
    winner.linkId === touch.linkId
  );
}

/** What became of the touch of an install, as seen by a device that is attributed. */
export const TOUCH_OUTCOMES = ['won', 'existing', 'unknown'] as const;
export type TouchOutcome = (typeof TOUCH_OUTCOMES)[number];

/**
 * Returns `won` if the device is attributed to the touch, `existing` if it keeps another attribution, and `unknown` if
 * the install names no touch that could attribute it. An install that asks for a deferred match only has no touch.
 */
export function touchOutcome(
  winner: Omit<Touch, 'touchedAt'>,
  touch: Touch | null,
  isDeferred: boolean,
): TouchOutcome {
  if (touch !== null) return isSameTouch(winner, touch) ? 'won' : 'existing';
  if (!isDeferred) return 'unknown';
  return winner.matchMethod === 'deferred' ? 'won' : 'existing';
}

const SDK = /^[a-z-]{1,20}\/[0-9A-Za-z.+-]{1,30}$/;

/** Returns the name and version of an SDK, such as `web/0.1.0`, or null for anything else. */
export function asSdk(value: unknown): string | null {
  return typeof value === 'string' && SDK.test(value) ? value : null;
}
