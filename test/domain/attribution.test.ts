import { describe, expect, test } from '@jest/globals';
import { chooseTouch, DAY_MS, isInFuture, isInWindow, isSameTouch } from '../../src/domain/attribution.ts';
import type { ClaimedClick, CodeTarget } from '../../src/domain/attribution.ts';
import type { AffiliateId, ClickId, LinkId } from '../../src/domain/ids.ts';

const AT = 1_700_000_000_000;

describe('the attribution window has both of its ends in it', () => {
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
    // A phone whose clock is behind: as if it had opened at the moment of the click.
    [1, -400 * DAY_MS, true],
  ])('%d days, opened %d ms after the click: %p', (days, age, expected) => {
    expect(isInWindow(AT, AT + age, days)).toBe(expected);
  });
});

test.each([
  [300_000, false],
  [300_001, true],
  [0, false],
  [-1, false],
])('an instant %d ms ahead is too far in the future: %p', (ahead, expected) => {
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
])('an install with %s', (_, withClick, withCode, firstOpenAt, expected) => {
  const touch = chooseTouch({
    deviceId: 'me',
    firstOpenAt,
    windowDays: 30,
    click: withClick === null ? null : { ...click, ...withClick },
    code: withCode === null ? null : { ...code, ...withCode },
  });
  expect(touch?.matchMethod ?? null).toBe(expected);
  if (touch !== null) expect(touch.touchedAt).toBe(expected === 'code' ? firstOpenAt : AT);
});

test('a code reported again with another time is the same touch, another click is not', () => {
  const touch = { matchMethod: 'code', affiliateId: code.affiliateId, linkId: null, clickId: null } as const;
  expect(isSameTouch(touch, { ...touch, touchedAt: AT + 5 })).toBe(true);
  expect(isSameTouch(touch, { ...touch, touchedAt: AT, clickId: click.clickId })).toBe(false);
  expect(isSameTouch(touch, { ...touch, touchedAt: AT, affiliateId: click.affiliateId })).toBe(false);
});
