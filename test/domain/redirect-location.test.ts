import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { isDestinationUrl } from '../../src/domain/destination-url.ts';
import { redirectLocation } from '../../src/domain/redirect-location.ts';
import { anyCharacter } from '../support/any-text.ts';

const touch = { claimToken: '11111111-2222-4333-8444-555555555555', slug: 'Spring_1' };
const OURS = `claim_token=${touch.claimToken}&via=Spring_1`;
const REFERRER_OURS = `claim_token%3D${touch.claimToken}%26via%3DSpring_1`;

describe('a destination gets the claim token and the slug', () => {
  test.each([
    ['https://example.com', `https://example.com/?${OURS}`],
    ['https://example.com/get', `https://example.com/get?${OURS}`],
    ['https://example.com/get?', `https://example.com/get?${OURS}`],
    ['https://example.com/?a=1&b=%20+&c&&d=', `https://example.com/?a=1&b=%20+&c&&d=&${OURS}`],
    ['https://example.com/?a=1#top?x=1', `https://example.com/?a=1&${OURS}#top?x=1`],
    ['https://example.com/#', `https://example.com/?${OURS}#`],
    ['https://example.com/?via=old&a=1&claim_token=old', `https://example.com/?a=1&${OURS}`],
    ['https://example.com/?via&claim%5Ftoken=old', `https://example.com/?${OURS}`],
    [
      'https://example.com/?Via=1&via2=2&xvia=3&a=via',
      `https://example.com/?Via=1&via2=2&xvia=3&a=via&${OURS}`,
    ],
    ['https://example.com/??via=1', `https://example.com/??via=1&${OURS}`],
    ['http://user:pass@example.com:8080/a?b', `http://user:pass@example.com:8080/a?b&${OURS}`],
    ['https://müller.example/ü?ö=ß#é', `https://xn--mller-kva.example/%C3%BC?%C3%B6=%C3%9F&${OURS}#%C3%A9`],
    ['myapp://path?x=1', `myapp://path?x=1&${OURS}`],
    ['myapp://path', `myapp://path?${OURS}`],
    ['myapp:opaque', `myapp:opaque?${OURS}`],
    ['myapp:opaque?via=1#f', `myapp:opaque?${OURS}#f`],
    ['myapp:größe', `myapp:gr%C3%B6%C3%9Fe?${OURS}`],
    ['com.example.app:/open?x=1', `com.example.app:/open?x=1&${OURS}`],
    // Only the page of an app accepts a referrer.
    ['https://play.google.com/store/apps?id=x', `https://play.google.com/store/apps?id=x&${OURS}`],
    [
      'https://play.google.com.example/store/apps/details?id=x',
      `https://play.google.com.example/store/apps/details?id=x&${OURS}`,
    ],
    [
      'https://play.google.com/store/apps/details/more?id=x',
      `https://play.google.com/store/apps/details/more?id=x&${OURS}`,
    ],
    [
      'https://play.google.com/a/store/apps/details?id=x',
      `https://play.google.com/a/store/apps/details?id=x&${OURS}`,
    ],
    ['market://search?q=x', `market://search?q=x&${OURS}`],
  ])('%s gets the claim token and the slug and keeps its other parts', (destination, expected) => {
    expect(redirectLocation(destination, touch)).toBe(expected);
  });
});

// @promise play-store-referrer
describe('a Play Store address', () => {
  const play = 'https://play.google.com/store/apps/details';
  test.each([
    [`${play}?id=com.example`, `${play}?id=com.example&referrer=${REFERRER_OURS}`],
    [`${play}/?id=com.example`, `${play}/?id=com.example&referrer=${REFERRER_OURS}`],
    [
      'http://PLAY.google.com/store/apps/details?id=x',
      `http://play.google.com/store/apps/details?id=x&referrer=${REFERRER_OURS}`,
    ],
    ['market://details?id=com.example', `market://details?id=com.example&referrer=${REFERRER_OURS}`],
    [play, `${play}?referrer=${REFERRER_OURS}`],
    [
      `${play}?referrer=utm_source%3Da%26utm_medium%3Db%2520c&id=x#f`,
      `${play}?id=x&referrer=utm_source%3Da%26utm_medium%3Db%2520c%26${REFERRER_OURS}#f`,
    ],
    [`${play}?referrer=plain&id=x`, `${play}?id=x&referrer=plain%26${REFERRER_OURS}`],
    [`${play}?id=x&referrer=`, `${play}?id=x&referrer=${REFERRER_OURS}`],
    [
      `${play}?id=x&referrer=via%3Dold%26a%3D1%26claim_token%3Dold`,
      `${play}?id=x&referrer=a%3D1%26${REFERRER_OURS}`,
    ],
    [`${play}?referrer=a%3D1&id=x&referrer=b%3D2`, `${play}?id=x&referrer=a%3D1%26b%3D2%26${REFERRER_OURS}`],
    [`${play}?id=x&referrer=%zz%ff`, `${play}?id=x&referrer=%25zz%EF%BF%BD%26${REFERRER_OURS}`],
  ])('%s gets both inside its referrer, encoded as one value', (destination, expected) => {
    expect(redirectLocation(destination, touch)).toBe(expected);
  });

  test('the app reads the Play Store referrer as a query', () => {
    const url = new URL(redirectLocation(`${play}?id=x&referrer=utm_source%3Da`, touch));
    const referrer = new URLSearchParams(url.searchParams.get('referrer') ?? '');
    expect(Object.fromEntries(referrer)).toEqual({
      utm_source: 'a',
      claim_token: touch.claimToken,
      via: touch.slug,
    });
  });
});

test.each([
  ['https://example.com/?via=own#x', 'https://example.com/?via=own#x'],
  ['myapp:opaque', 'myapp:opaque'],
  ['https://example.com/ü', 'https://example.com/%C3%BC'],
  ['market://details?id=x&referrer=a', 'market://details?id=x&referrer=a'],
])('without a touch %s does not change', (destination, expected) => {
  expect(redirectLocation(destination, null)).toBe(expected);
});

/** Text that may occur in a query or a fragment. */
const urlText = fc.string({
  unit: fc.oneof(
    { weight: 9, arbitrary: fc.constantFrom(..."azAZ09-._~!$&'()*+,;=:@/?".split('')) },
    { weight: 1, arbitrary: anyCharacter.map((character) => encodeURIComponent(character)) },
  ),
});

test('every location fits a header and contains the claim token and the slug once', () => {
  const destination = fc
    .tuple(
      fc.constantFrom(
        'https://example.com',
        'myapp:',
        'myapp://',
        'https://play.google.com/store/apps/details',
        'market://details',
      ),
      fc.string({ unit: 'grapheme', maxLength: 30 }),
      urlText,
      fc.constantFrom('', '&via=1', '&claim_token=%', '&referrer=via%3D1%26x', '&referrer=%25'),
      urlText,
    )
    .map(
      ([start, path, query, extra, fragment]) =>
        `${start}${path.replaceAll(/[?#]/g, '')}?${query}${extra}#${fragment}`,
    )
    .filter(isDestinationUrl);
  fc.assert(
    fc.property(destination, (text) => {
      const location = redirectLocation(text, touch);
      expect(location).toMatch(/^[!-~]+$/);
      const url = new URL(location);
      const referrer = url.searchParams.getAll('referrer').at(-1) ?? '';
      const read = location.includes(REFERRER_OURS) ? new URLSearchParams(referrer) : url.searchParams;
      expect(read.getAll('claim_token')).toEqual([touch.claimToken]);
      expect(read.getAll('via')).toEqual([touch.slug]);
      expect(url.hash).toBe(new URL(text).hash);
    }),
    { numRuns: 1_000 },
  );
});
