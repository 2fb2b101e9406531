import { describe, expect, test } from '@jest/globals';
import {
  asSdk,
  chooseDeferredClick,
  chooseTouch,
  DEFERRED_LINKS_LIMIT,
  isInFuture,
  isInWindow,
  isSameTouch,
  touchOutcome,
} from '../../src/domain/attribution.ts';
import type {
  ClaimedClick,
  CodeTarget,
  DeferredClick,
  MatchMethod,
  TouchOutcome,
} from '../../src/domain/attribution.ts';
import type { AffiliateId, ClickId, LinkId } from '../../src/domain/ids.ts';
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../src/domain/time.ts';

const AT = 1_700_000_000_000;

describe('the attribution window', () => {
  // @promise window-from-click, window-inclusive
  test.each([
    [1, -1, true],
    [1, 0, true],
    [1, DAY_MS - 1, true],
    [1, DAY_MS, true],
    [1, DAY_MS + 1, false],
    [30, 30 * DAY_MS, true],
    [30, 30 * DAY_MS + 1, false],
    [365, 365 * DAY_MS, true],
    [365, 365 * DAY_MS + 1, false],
    // A phone with a slow clock: counts as opened at the moment of the click.
    [1, -400 * DAY_MS, true],
  ])('a window of %d days contains a first open %d ms after the click: %p', (days, age, expected) => {
    expect(isInWindow(AT, AT + age, days)).toBe(expected);
  });
});

test.each([
  [300_000, false],
  [300_001, true],
  [0, false],
  [-1, false],
])('an instant %d ms ahead is in the future: %p', (ahead, expected) => {
  expect(isInFuture(AT + ahead, AT)).toBe(expected);
});

const click: ClaimedClick = {
  clickId: 'clk' as ClickId,
  affiliateId: 'ann' as AffiliateId,
  linkId: 'lnk' as LinkId,
  clickedAt: AT,
  claimedByDevice: null,
  affiliateStatus: 'active',
};
const code: CodeTarget = {
  affiliateId: 'bob' as AffiliateId,
  linkId: null,
  active: true,
  affiliateStatus: 'active',
};
const late = AT + 30 * DAY_MS + 1;

// @promise token-before-code, code-touch-is-its-entry
test.each<[string, Partial<ClaimedClick> | null, Partial<CodeTarget> | null, number, string | null]>([
  ['nothing', null, null, AT, null],
  ['a click', {}, null, AT, 'claim_token'],
  ['a code', null, {}, AT, 'code'],
  ['both: the token decides', {}, {}, AT, 'claim_token'],
  ['a click that is too old, and a code', {}, {}, late, 'code'],
  ['a click that is too old', {}, null, late, null],
  ['the click of this device', { claimedByDevice: 'me' }, null, AT, 'claim_token'],
  ['the click of another device', { claimedByDevice: 'you' }, null, AT, null],
  ['the click of another device, and a code', { claimedByDevice: 'you' }, {}, AT, 'code'],
  ['a click for a removed affiliate', { affiliateStatus: 'removed' }, null, AT, null],
  ['a click for a paused affiliate', { affiliateStatus: 'paused' }, null, AT, 'claim_token'],
  ['the code of a removed affiliate', null, { affiliateStatus: 'removed' }, AT, null],
  ['the code of a paused affiliate', null, { affiliateStatus: 'paused' }, AT, 'code'],
  ['the code of an inactive link', null, { active: false }, AT, null],
])('an install gets the correct touch with %s', (_, withClick, withCode, firstOpenAt, expected) => {
  const touch = chooseTouch({
    deviceId: 'me',
    firstOpenAt,
    codeEnteredAt: firstOpenAt + DAY_MS,
    windowDays: 30,
    click: withClick === null ? null : { ...click, ...withClick },
    code: withCode === null ? null : { ...code, ...withCode },
  });
  expect(touch?.matchMethod ?? null).toBe(expected);
  if (touch !== null) expect(touch.touchedAt).toBe(expected === 'code' ? firstOpenAt + DAY_MS : AT);
});

test('a code that is reported again with another time is the same touch, and another click is not', () => {
  const touch = { matchMethod: 'code', affiliateId: code.affiliateId, linkId: null, clickId: null } as const;
  expect(isSameTouch(touch, { ...touch, touchedAt: AT + 5 })).toBe(true);
  expect(isSameTouch(touch, { ...touch, touchedAt: AT, clickId: click.clickId })).toBe(false);
  expect(isSameTouch(touch, { ...touch, touchedAt: AT, affiliateId: click.affiliateId })).toBe(false);
});

describe('a deferred match', () => {
  const ann = { affiliateId: 'ann' as AffiliateId, linkId: 'a1' as LinkId };
  const anns = { affiliateId: 'ann' as AffiliateId, linkId: 'a2' as LinkId };
  const bob = { affiliateId: 'bob' as AffiliateId, linkId: 'b1' as LinkId };
  const base = { addressHash: '00', linkActive: true, affiliateStatus: 'active' } as const;
  /** Clicks with their age at the request, ms. */
  const choose = (
    clicks: readonly (readonly [age: number, fields: Partial<DeferredClick>])[],
    windowMinutes = 60,
  ) => {
    const chosen = chooseDeferredClick({
      clicks: clicks.map(([age, fields]) => ({ ...base, ...ann, clickedAt: AT - age, ...fields })),
      now: AT,
      windowMinutes,
    });
    return chosen === null || chosen === 'ambiguous' ? chosen : chosen.linkId;
  };

  // @promise deferred-window
  test.each<[string, number, number, string | null]>([
    ['at the same moment', 0, 60, 'a1'],
    ['one ms within the window', HOUR_MS - 1, 60, 'a1'],
    ['exactly the window', HOUR_MS, 60, 'a1'],
    ['one ms beyond the window', HOUR_MS + 1, 60, null],
    ['exactly the shortest window', MINUTE_MS, 1, 'a1'],
    ['one ms beyond the shortest window', MINUTE_MS + 1, 1, null],
    ['exactly the longest window', DAY_MS, 1440, 'a1'],
    ['one ms beyond the longest window', DAY_MS + 1, 1440, null],
    ['at the same moment while it is disabled', 0, 0, null],
    ['by another process whose clock is ahead', -5, 60, 'a1'],
  ])('a deferred match includes a click only within the window: %s', (_, age, windowMinutes, expected) => {
    expect(choose([[age, {}]], windowMinutes)).toBe(expected);
  });

  // @promise deferred-newest-click
  test.each<[string, [number, Partial<DeferredClick>][], string | null]>([
    ['no clicks', [], null],
    [
      'several clicks of one affiliate',
      [
        [9, ann],
        [5, anns],
        [7, ann],
      ],
      'a2',
    ],
    [
      'two affiliates',
      [
        [9, ann],
        [5, bob],
      ],
      'ambiguous',
    ],
    [
      'two affiliates, one exactly at the end of the window',
      [
        [HOUR_MS, ann],
        [5, bob],
      ],
      'ambiguous',
    ],
    [
      'two affiliates, one outside the window',
      [
        [HOUR_MS + 1, ann],
        [5, bob],
      ],
      'b1',
    ],
    [
      'two affiliates, one paused',
      [
        [9, { ...ann, affiliateStatus: 'paused' }],
        [5, bob],
      ],
      'ambiguous',
    ],
    [
      'two affiliates, one removed',
      [
        [5, { ...ann, affiliateStatus: 'removed' }],
        [9, bob],
      ],
      'b1',
    ],
    [
      'two affiliates, one with an inactive link',
      [
        [5, { ...ann, linkActive: false }],
        [9, bob],
      ],
      'b1',
    ],
    ['a paused affiliate', [[5, { affiliateStatus: 'paused' }]], 'a1'],
    ['a removed affiliate', [[5, { affiliateStatus: 'removed' }]], null],
    ['an inactive link', [[5, { linkActive: false }]], null],
  ])('a deferred match chooses a click only of one affiliate: %s', (_, clicks, expected) => {
    expect(choose(clicks)).toBe(expected);
  });

  test('a deferred match with clicks on too many links is ambiguous, even if all belong to one affiliate', () => {
    const links = (count: number) => Array.from({ length: count }, () => [1, {}] as const);
    expect(choose(links(DEFERRED_LINKS_LIMIT))).toBe('a1');
    expect(choose(links(DEFERRED_LINKS_LIMIT + 1))).toBe('ambiguous');
  });
});

test('a code with another link of the same affiliate is another touch', () => {
  const touch = { matchMethod: 'code', affiliateId: code.affiliateId, linkId: null, clickId: null } as const;
  expect(isSameTouch(touch, { ...touch, touchedAt: AT, linkId: click.linkId })).toBe(false);
});

test.each<[string, TouchOutcome, MatchMethod, LinkId | null, boolean]>([
  ['that attributed its device', 'won', 'code', click.linkId, false],
  ['that attributed its device, and asks for a deferred match', 'won', 'code', click.linkId, true],
  ['that is another one', 'existing', 'code', 'other' as LinkId, false],
  ['that is not the deferred match of its device', 'existing', 'deferred', 'other' as LinkId, true],
])('the outcome of an install with a touch %s is %s', (_, outcome, matchMethod, linkId, isDeferred) => {
  const winner = { matchMethod, affiliateId: code.affiliateId, linkId: click.linkId, clickId: null };
  const touch = { ...winner, matchMethod: 'code' as const, linkId, touchedAt: AT };
  expect(touchOutcome(winner, touch, isDeferred)).toBe(outcome);
});

test.each<[string, TouchOutcome, MatchMethod, boolean]>([
  ['that asks for nothing', 'unknown', 'code', false],
  ['from a device with a deferred match, that asks for nothing', 'unknown', 'deferred', false],
  ['from a device with a deferred match, that asks for one', 'won', 'deferred', true],
  ['from a device with a code, that asks for a deferred match', 'existing', 'code', true],
])('the outcome of an install without a touch %s is %s', (_, outcome, matchMethod, isDeferred) => {
  const winner = { matchMethod, affiliateId: code.affiliateId, linkId: click.linkId, clickId: null };
  expect(touchOutcome(winner, null, isDeferred)).toBe(outcome);
});

test.each([
  ['web/0.1.0', true],
  ['react-native/1.2.3-beta.4+build', true],
  ['a/1', true],
  [`${'a'.repeat(20)}/${'1'.repeat(30)}`, true],
  [`${'a'.repeat(21)}/1`, false],
  [`a/${'1'.repeat(31)}`, false],
  ['web/', false],
  ['/0.1.0', false],
  ['Web/0.1.0', false],
  ['web 0.1.0', false],
  ['the web/0.1.0', false],
  ['web/0.1.0 (Safari)', false],
  ['web/0.1.0\n', false],
  ['', false],
  [['web/0.1.0'], false],
  [null, false],
  [undefined, false],
])('%j states the name and the version of an SDK: %p', (value, isSdk) => {
  expect(asSdk(value)).toBe(isSdk ? value : null);
});
