import { describe, expect, test } from '@jest/globals';
import * as fc from 'fast-check';
import {
  identifiersOf,
  identifyingTexts,
  isLargeBody,
  isOfOthers,
  namesOneOf,
  plainPartOf,
  referencesOf,
  textsOf,
  tiedKeys,
} from '../../src/domain/erasure.ts';
import { expectedEvent } from '../support/provider-fixtures.ts';

const body = (value: unknown) => Buffer.from(JSON.stringify(value));

test.each([
  ['an amount', { amount: 999, currency: 'usd' }],
  ['a quantity in a list', [{ quantity: 999 }]],
  ['the name of a field', { '999': true }],
  ['a part of a text', { description: 'order 999' }],
])('a webhook does not name the user 999 by %s', (_, value) => {
  expect(namesOneOf(body(value), null, ['999'])).toBe(false);
  expect(textsOf(body(value))).not.toContain('999');
});

test.each([
  ['a whole text', { app_user_id: '999' }, '999'],
  ['a number', { user: 123_456_789 }, '123456789'],
  ['the name of a field', { 'user-12345678': {} }, 'user-12345678'],
])('a webhook names a user by %s', (_, value, user) => {
  expect(namesOneOf(body(value), null, [user])).toBe(true);
  expect(textsOf(body(value))).toContain(user);
});

test('a webhook names a user with a long id by a part of a text', () => {
  expect(namesOneOf(body({ note: 'for user-12345678 only' }), null, ['user-12345678'])).toBe(true);
});

test('a body that is not JSON names a user whose id it contains', () => {
  expect(namesOneOf(Buffer.from('id=user-1&x=2'), null, ['user-1'])).toBe(true);
  expect(namesOneOf(Buffer.from('{"id": "user-1", '), null, ['user-1'])).toBe(true);
});

test('a body that is not JSON names a user with a short id only as a value', () => {
  expect(namesOneOf(Buffer.from('{"quantity": 12, "note": "12 of 30"'), null, ['12'])).toBe(false);
  expect(namesOneOf(Buffer.from('{"user": "12"'), null, ['12'])).toBe(true);
});

test('a body with more values than an event has is searched as text, and not walked', () => {
  const large = body({ user: 'user-12345678', list: Array.from({ length: 20_000 }, () => 1) });
  expect(isLargeBody(large)).toBe(true);
  expect(identifyingTexts(large, null)).toEqual([]);
  expect(namesOneOf(large, null, ['user-12345678'])).toBe(true);
  expect(namesOneOf(large, null, ['user-1234567'])).toBe(false);
  expect(isLargeBody(body({ user: 'user-12345678', list: Array.from({ length: 19_000 }, () => 1) }))).toBe(
    false,
  );
});

test('a webhook names a person by any one of several identifiers, in whatever form its body is', () => {
  const short = ['gold', '999'];
  const long = ['user-12345678', 'sub_87654321'];
  for (const identifiers of [short, long, [...short, ...long], [...long, ...short]]) {
    for (const identifier of identifiers) {
      expect(namesOneOf(body({ user: identifier }), null, identifiers)).toBe(true);
      expect(namesOneOf(Buffer.from(`{"user": "${identifier}"`), null, identifiers)).toBe(true);
    }
  }
  for (const identifier of long) {
    const value = { note: `Order of ${identifier}, by phone` };
    expect(namesOneOf(body(value), null, long)).toBe(true);
    expect(namesOneOf(Buffer.from(`broken ${JSON.stringify(value)}`), null, long)).toBe(true);
  }
});

test.each(['guest', 'anonymous_user', '00000000-0000-0000-0000-000000000000'])(
  'the placeholder %s, which an earlier version stored as a user, is in no body',
  (placeholder) => {
    const value = { user: placeholder, note: `Order of ${placeholder}, by phone` };
    expect(namesOneOf(body(value), null, [placeholder])).toBe(false);
    expect(namesOneOf(Buffer.from(`broken ${JSON.stringify(value)}`), null, [placeholder])).toBe(false);
    expect(namesOneOf(body(value), null, [placeholder, 'user-1'])).toBe(false);
  },
);

/** Returns JSON of printable ASCII. */
const escapedJson = (value: unknown) =>
  JSON.stringify(value).replace(
    /[^ -~]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );

describe('an id within a longer text', () => {
  const id = 'customer-1';
  const address = 'ann@example.com';

  test.each([
    [`Order of ${id}, by phone`, id],
    [`Order of ${id}. Paid.`, id],
    [`Is it ${id}?`, id],
    [`(${id})`, id],
    [`order #12345678`, '12345678'],
    [`https://example.com/users/${id}?tab=orders`, id],
    [`https://example.com/?user=${id}&tab=orders`, id],
    [`https://example.com/?email=ann%40example.com`, address],
    [`https://example.com/?next=%2Fusers%2F${id}%2Forders`, id],
    [`${address}'s order`, address],
    [`"Ann" <${address}>`, address],
    [`{"user":"${id}"}`, id],
    [String.raw`{"email":"ren\u00e9e@example.com"}`, 'renée@example.com'],
    [String.raw`{"lines":"\n${id}\n"}`, id],
    [`id ${id} and ${id}0`, id],
    [`${id}0 and ${id}`, id],
    ['Order of пользователь-7.', 'пользователь-7'],
    [`mailto:${address}`, address],
    [`Write to mailto:${address}?subject=Hello or call.`, address],
    [`MAILTO:${address}`, address],
    [`mailto:bob@example.com,${address}`, address],
    ['https://example.com/?next=mailto%3Aann%40example.com', address],
    [`EMAIL;VALUE=uri:mailto:${address}`, address],
    [`email:${address}, phone:none`, address],
    [`xmpp:${address}/phone`, address],
    [`sip:${address};transport=tls`, address],
    ['Call tel:+4915112345678.', '+4915112345678'],
    ['tel:%2B4915112345678', '+4915112345678'],
    ['sms:+4915112345678?body=Hello', '+4915112345678'],
    ['tel:\u2068+4915112345678\u2069', '+4915112345678'],
    ['tel:015112345678', '015112345678'],
    ['tel:+49-151-1234', '+49-151-1234'],
  ])('is found in %j', (text, identifier) => {
    expect(namesOneOf(body({ text }), null, [identifier])).toBe(true);
    expect(namesOneOf(Buffer.from(`broken ${JSON.stringify({ text })}`), null, [identifier])).toBe(true);
  });

  test.each([
    [`${id}0`, id],
    [`${id}.5`, id],
    [`${id}:eu`, id],
    [`${id}-`, id],
    [`x-${id}`, id],
    [`1.${id}`, id],
    [`auth0|${id}`, id],
    [`$RCAnonymousID:${id}`, id],
    ['joann@example.com', address],
    ['jo+ann@example.com', address],
    ['jo.ann@example.com', address],
    ["jo'ann@example.com", address],
    ['ann@example.com.au', address],
    ['ann@example.community', address],
    ['jo%61nn@example.com', address],
    ['joann%40example.com', address],
    ['ann%40example.com%2Eau', address],
    ['пользователь-71', 'пользователь-7'],
    ['суперпользователь-7', 'пользователь-7'],
    [`${id}é`, id],
    [`${id}\u0301`, id],
    ['rene\u0301e-12345', 'rene\u0301e-1234'],
    ['andre\u0301', 'andre'],
    ['maria-jose\u0301', 'maria-jose'],
    ['ren\u00e9-12345', 'rene\u0301-12345'],
    [`${id}\u{1F600}`, id],
    [`${id}\u200B0`, id],
    [`\u{10400}${id}`, id],
    ['mailto:joann@example.com', address],
    ['mailto:jo.ann@example.com', address],
    [`mailto:${address}.au`, address],
    [`x-mailto:${address}`, address],
    [`eu:${address}`, address],
    [`tel:${id}`, id],
    ['tel:+49151123456789', '+4915112345678'],
    ['tel:+4915112345678', '15112345678'],
    ['hotel:015112345678', '015112345678'],
    ['eu:015112345678', '015112345678'],
  ])('is not found in %j, which is another one', (other, identifier) => {
    for (const text of [other, `Order of ${other}, by phone`]) {
      expect(namesOneOf(body({ text }), null, [identifier])).toBe(false);
      expect(namesOneOf(body({ text: JSON.stringify({ text }) }), null, [identifier])).toBe(false);
      expect(namesOneOf(body({ text: `?x=${encodeURIComponent(text)}` }), null, [identifier])).toBe(false);
      const escaped = escapedJson({ text });
      expect(namesOneOf(Buffer.from(escaped), null, [identifier])).toBe(false);
      expect(namesOneOf(Buffer.from(`broken ${escaped}`), null, [identifier])).toBe(false);
    }
  });
});

test('a value that is an id and a full stop is another id', () => {
  expect(namesOneOf(body({ user: 'customer-1.' }), null, ['customer-1'])).toBe(false);
  expect(namesOneOf(body({ note: 'Order of customer-1.' }), null, ['customer-1'])).toBe(true);
});

/** Generates an id, and another one that contains it or is a different normalisation of it. */
const anyPair = fc
  .record({
    core: fc.string({
      unit: fc.constantFrom(...'a b c X Y 0 1 9 - _ . @ + : | é e\u0301 ж 山 \u{10400}'.split(' ')),
      minLength: 6,
      maxLength: 10,
    }),
    before: fc.string({
      unit: fc.constantFrom(...'a Z 9 - _ . @ + : | é ж \u0301 山'.split(' ')),
      maxLength: 3,
    }),
    after: fc.string({
      unit: fc.constantFrom(...'a Z 9 - _ . @ + : | é ж \u0301 山'.split(' ')),
      maxLength: 3,
    }),
    kind: fc.constantFrom('longer', 'longer', 'longer', 'nfc', 'nfd'),
  })
  // An id begins and ends with a letter or a digit.
  .map(({ core, before, after, kind }) => {
    const id = `u${core}7`;
    const other = kind === 'longer' ? `${before}${id}${after}` : id.normalize(kind === 'nfc' ? 'NFC' : 'NFD');
    return { id, other };
  })
  .filter(
    ({ id, other }) => id !== other && /[\p{L}\p{N}\p{M}]$/u.test(other) && /^[\p{L}\p{N}]/u.test(other),
  );

/** The ways in which a provider may state a text. */
const WRITTEN: Readonly<Record<string, (text: string) => Buffer>> = {
  'a value': (text) => body({ user: text }),
  'a name of a field': (text) => body({ [text]: 1 }),
  'a sentence': (text) => body({ note: `Order of ${text}, by phone.` }),
  'the end of a sentence': (text) => body({ note: `Order of ${text}.` }),
  'a URL': (text) => body({ url: `https://example.com/u/${encodeURIComponent(text)}?a=1` }),
  'a form': (text) => Buffer.from(`user=${encodeURIComponent(text)}&a=1`),
  'JSON in a text': (text) => body({ data: JSON.stringify({ user: text }) }),
  'escaped JSON': (text) => Buffer.from(escapedJson({ user: text })),
  'escaped JSON in a text': (text) => body({ data: escapedJson({ user: text }) }),
  'broken JSON': (text) => Buffer.from(`${escapedJson({ user: text })},`),
};

// @promise erased-only-own-bodies
test('a body names the person of an id however it is written, and never one whose id contains it or is written alike', () => {
  fc.assert(
    fc.property(anyPair, fc.constantFrom(...Object.keys(WRITTEN)), ({ id, other }, way) => {
      const write = WRITTEN[way] ?? body;
      expect(namesOneOf(write(id), null, [id])).toBe(true);
      expect(namesOneOf(write(other), null, [id])).toBe(false);
      // The search of the database finds the bodies to compare by this part.
      expect(write(id).includes(plainPartOf(id))).toBe(true);
    }),
    { numRuns: 2_000, seed: 1 },
  );
});

const named = (fields: Partial<Parameters<typeof expectedEvent>[0]>) =>
  expectedEvent({ sourceEventId: 'event', kind: 'purchase', occurredAt: 0, ...fields });

test('a placeholder beside a user id names nobody', () => {
  expect(identifiersOf(named({ userIds: ['guest', 'user-1'] })).users).toEqual(['user-1']);
  expect(identifiersOf(named({ userIds: ['guest', 'null'] })).users).toEqual(['guest', 'null']);
});

test('a short text of a webhook that names a user is compared only where it is an identifier', () => {
  const event = named({ userIds: ['gold'], userKeys: ['sub_1'] });
  const texts = ['gold', 'sub_1', 'user-12345678'];
  const value = { user: 'gold', level: 'iron', note: 'user-12345678', key: 'sub_1' };
  expect(identifyingTexts(body(value), event).toSorted()).toEqual(texts);
  expect(identifyingTexts(body(value), null)).toContain('iron');
  expect(namesOneOf(body(value), event, ['iron'])).toBe(false);
  expect(namesOneOf(body(value), event, ['gold'])).toBe(true);
});

test('what links a user to a payment by the reference of the payment is no key of the user', () => {
  const links = ['sub_12345', 'in_12345'].map((key) => ({ key, customerUserId: 'person' }));
  const paymentAliases = [{ store: 'stripe', aliasRef: 'pi_12345', paymentRef: 'in_12345' }];
  expect(identifiersOf(named({ userLinks: links, paymentAliases }))).toEqual({
    users: ['person'],
    keys: ['sub_12345'],
  });
});

const isPerson = (userId: string) => userId === 'person' || userId === 'guest';
const isOwnKey = (key: string) => key === 'sub_of_person';
const keys = ['sub_12345', 'cus_12345'];
const anonymous = '$RCAnonymousID:1';

test.each<[string, Parameters<typeof named>[0], readonly string[]]>([
  [
    'the person ties all its keys',
    { userIds: ['person'], userKeys: keys, anonymousUserIds: [anonymous] },
    [...keys, anonymous],
  ],
  [
    'the person by a link ties all its keys',
    { userLinks: keys.map((key) => ({ key, customerUserId: 'person' })) },
    keys,
  ],
  [
    'only a key of the person ties its other keys',
    { userKeys: ['sub_of_person', 'cus_12345'] },
    ['sub_of_person', 'cus_12345'],
  ],
  [
    'another user beside the person ties only the ids of the SDK, which are of one customer',
    { userIds: ['person', 'other'], userKeys: keys, anonymousUserIds: [anonymous] },
    [anonymous],
  ],
  ['only another user ties no key', { userIds: ['other'], userKeys: ['sub_of_person', 'cus_12345'] }, []],
  ['nobody ties no key', { userKeys: keys }, []],
  ['a placeholder ties no key', { userIds: ['guest'], userKeys: keys }, []],
  [
    'the person ties no short key and no placeholder',
    { userIds: ['person'], userKeys: ['sub', 'undefined'] },
    [],
  ],
])('an event that names %s', (_, fields, tied) => {
  expect(tiedKeys(named(fields), isPerson, isOwnKey)).toEqual(tied);
});

test.each<[string, 'of others only' | 'not of others only', Parameters<typeof named>[0]]>([
  ['another user', 'of others only', { userIds: ['other'] }],
  [
    'another user by a link',
    'of others only',
    { userLinks: [{ key: 'sub_12345', customerUserId: 'other' }] },
  ],
  ['two other users of a transfer', 'of others only', { transfer: { from: ['other'], to: ['third'] } }],
  ['the person', 'not of others only', { userIds: ['person'] }],
  ['the person beside another user', 'not of others only', { userIds: ['other', 'person'] }],
  [
    'the person as the giver of a purchase',
    'not of others only',
    { transfer: { from: ['person'], to: ['other'] } },
  ],
  [
    'the person as the receiver of a purchase',
    'not of others only',
    { transfer: { from: ['other'], to: ['person'] } },
  ],
  ['no user', 'not of others only', { userKeys: keys }],
])('an event that names %s is %s', (_, whose, fields) => {
  expect(isOfOthers(named(fields), isPerson)).toBe(whose === 'of others only');
});

test('a body without an event is not of others only', () => {
  expect(isOfOthers(null, isPerson)).toBe(false);
});

test('the users of a transfer, on both sides, are users of its event, each once', () => {
  const transfer = { from: ['giver', 'user-1'], to: ['receiver', 'user-1'] };
  expect(identifiersOf(named({ userIds: ['user-1'], transfer })).users.toSorted()).toEqual([
    'giver',
    'receiver',
    'user-1',
  ]);
});

const payment = { store: 'stripe', currency: 'USD', amountMinor: 999, usdCents: 999 };

test.each<[string, Parameters<typeof named>[0], readonly string[]]>([
  ['a payment', { payment: { ...payment, ref: 'in_1' } }, ['in_1']],
  [
    'a refund',
    {
      adjustment: { ...payment, kind: 'refund', state: 'applied', rank: 1, ref: 're_1', paymentRef: 'pi_1' },
    },
    ['pi_1'],
  ],
  [
    'a second reference of a payment',
    { paymentAliases: [{ store: 'stripe', aliasRef: 'pi_1', paymentRef: 'in_1' }] },
    ['in_1', 'pi_1'],
  ],
  [
    'a code',
    { codes: [{ store: 'stripe', paymentRef: 'in_1', namespace: 'stripe', value: 'HAZEL20' }] },
    ['in_1'],
  ],
  ['nothing that was paid', {}, []],
])(
  'the body of %s is recognised by its references of payments, however short they are',
  (_, fields, refs) => {
    const event = named({ ...fields, userIds: ['user-1'] });
    expect(referencesOf(event).toSorted()).toEqual(refs);
    expect(identifyingTexts(body({}), event)).toEqual(['user-1', ...referencesOf(event)]);
    for (const ref of refs) expect(namesOneOf(body({}), event, [ref])).toBe(true);
  },
);

test('of many texts those that an event states as identifiers are compared first, and no more than were asked for', () => {
  const event = named({
    userIds: ['user-1'],
    userKeys: ['sub_1'],
    payment: { ...payment, ref: 'in_1' },
  });
  const value = { first: 'text-12345678', second: 'text-23456789' };
  const texts = identifyingTexts(body(value), event, 4);
  expect(texts).toHaveLength(4);
  expect(texts.slice(0, 3)).toEqual(['user-1', 'sub_1', 'in_1']);
  expect(identifyingTexts(body(value), event, 2)).toEqual(['user-1', 'sub_1']);
});

test.each([0, 1, 3, 100])('of a body with more texts than %i only that many are returned', (most) => {
  const names = Object.fromEntries(Array.from({ length: 9 }, (_, n) => [`field-of-body-${n}`, `text ${n}`]));
  const texts = textsOf(body([names, 'the last one']), most);
  expect(texts).toHaveLength(Math.min(19, most));
  expect(new Set(texts).size).toBe(texts.length);
});

test('of a body only its texts and its long numbers and names of fields are compared', () => {
  expect(textsOf(body([['a'], null, true, false, {}, [], 12_345_678, 'b', { c: 'a' }])).toSorted()).toEqual([
    '12345678',
    'a',
    'b',
  ]);
  expect(textsOf(Buffer.from('no JSON'))).toEqual([]);
});

test.each([
  ['customer-1', 'customer'],
  ['x-customer-1', 'customer'],
  ['$RCAnonymousID:87c6049c58069238', '87c6049c58069238'],
  ['ann.b@example.com', 'example'],
  ['гость-7', '7'],
  ['пользователь', ''],
  ['', ''],
])(
  'a body that names %j is searched for by its longest part that every encoder writes alike, %j',
  (identifier, part) => {
    expect(plainPartOf(identifier)).toBe(part);
  },
);
