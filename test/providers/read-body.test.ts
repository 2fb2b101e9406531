import { describe, expect, test } from '@jest/globals';
import * as z from 'zod';
import * as read from '../../src/providers/shared/read-body.ts';

/** Returns what a field reads as, or the reason why it fails. */
function readAs<T>(schema: z.ZodType<T>, value: unknown, at?: string): unknown {
  const result = read.readAs(schema, value, at);
  return result.ok ? result.value : result.reason;
}

const FAULT = { id: 'the body is missing or not an id of 1 to 255 characters' };
/** The end of the year 9997. */
const LATEST_MS = Date.UTC(9997, 11, 31, 23, 59, 59, 999);

describe('bytes', () => {
  test('a JSON object in UTF-8 is read', () => {
    const body = Buffer.from('{"a":"5 €"}');
    expect(read.readJsonObject(body)).toEqual({ ok: true, value: { a: '5 €' } });
  });

  test.each([
    ['in another encoding', Buffer.from([0x7b, 0x22, 0xe9, 0x22, 0x7d]), 'the body is not UTF-8 text'],
    ['that is not JSON', Buffer.from('{"a":'), 'the body is not JSON'],
    ['of a list', Buffer.from('[1]'), 'the body is not a JSON object'],
    ['of a text', Buffer.from('"a"'), 'the body is not a JSON object'],
    ['of null', Buffer.from('null'), 'the body is not a JSON object'],
  ])('a body %s is refused, and the reason quotes nothing', (_, body, reason) => {
    expect(read.readJsonObject(body)).toEqual({ ok: false, reason });
  });
});

describe('the reason of a failure', () => {
  const schema = z.object({
    a: z.string(),
    b: z.object({ c: z.number() }),
    d: z.array(z.boolean()),
    e: z.int(),
  });

  test('a reason names each wrong field and what was expected, and no values', () => {
    const wrong = { a: 'x', b: { c: 'hazel@example.com' }, d: [true, 7], e: 1 };
    expect(readAs(schema, wrong)).toBe('b.c is missing or not a number; d.1 is missing or not a boolean');
    expect(readAs(schema, { ...wrong, b: null, d: 1 }, 'data')).toBe(
      'data.b is missing or not an object; data.d is missing or not an array',
    );
    expect(readAs(schema, null)).toBe('the body is missing or not an object');
    expect(readAs(schema, null, 'data')).toBe('data is missing or not an object');
  });

  test('a reason names three fields at most', () => {
    expect(readAs(schema, {})).toBe(
      'a is missing or not a string; b is missing or not an object; d is missing or not an array',
    );
  });

  test('a reason does not describe an expected form that is more than a type', () => {
    expect(readAs(z.string().min(9), 'hazel')).toBe('the body is missing or not of the expected form');
  });
});

describe('an id', () => {
  test.each([['a'], ['x'.repeat(255)], ['GPA.7777-7777..3'], [' é ']])('%j is an id', (text) => {
    expect(readAs(read.id, text)).toBe(text);
    expect(readAs(read.optionalId, text)).toBe(text);
    expect(readAs(read.ids, ['', text, 7])).toEqual([text]);
  });

  test.each([
    ['nothing', undefined],
    ['an empty text', ''],
    ['spaces', '  '],
    ['256 characters', 'x'.repeat(256)],
    ['a number', 7],
    ['a text with a NUL', 'a\u0000'],
    ['a text with a line end', 'a\nb'],
    ['a text with half a character', 'a\ud800'],
  ])('%s is not an id', (_, value) => {
    expect(readAs(read.id, value)).toBe(FAULT.id);
    expect(readAs(read.optionalId, value)).toBeNull();
    expect(readAs(read.ids, [value])).toEqual([]);
  });

  test('a value that is not a list has no ids', () => {
    expect(readAs(read.ids, undefined)).toEqual([]);
    expect(readAs(read.ids, 'abc')).toEqual([]);
  });

  test('a user id may be a safe integer', () => {
    const idOf = (value: unknown) => read.userMetadata.parse({ app_user_id: value }).app_user_id;
    expect(idOf('user-1')).toBe('user-1');
    expect(idOf(4711)).toBe('4711');
    expect(idOf(2 ** 53)).toBeNull();
    expect(idOf(1.5)).toBeNull();
    expect(idOf('')).toBeNull();
    expect(idOf(true)).toBeNull();
  });
});

test('an object that is missing, null, a list or text is read as empty', () => {
  const schema = read.part({ a: read.optionalText });
  expect(readAs(schema, { a: 'x' })).toEqual({ a: 'x' });
  for (const value of [undefined, null, [], ['x'], 'x', 7])
    expect(readAs(schema, value)).toEqual({ a: null });
});

test('a list that is missing or of another type is read as empty', () => {
  const schema = read.items(read.id);
  expect(readAs(schema, ['a', 'b'])).toEqual(['a', 'b']);
  for (const value of [undefined, null, {}, 'x']) expect(readAs(schema, value)).toEqual([]);
});

test('a text is read as text, and a flag only from true', () => {
  expect([readAs(read.optionalText, 'x'), readAs(read.optionalText, 7)]).toEqual(['x', null]);
  for (const value of ['true', 1, null, undefined, false]) expect(readAs(read.flag, value)).toBe(false);
  expect(readAs(read.flag, true)).toBe(true);
});

describe('an instant', () => {
  test.each([
    [0, 0],
    [1_772_443_800_000, 1_772_443_800_000],
    [LATEST_MS, LATEST_MS],
    [LATEST_MS + 1, null],
    [-1, null],
    [0.5, null],
    ['1772443800000', null],
    [undefined, null],
  ])('the epoch milliseconds %p are read as %p', (value, expected) => {
    expect(readAs(read.optionalEpochMs, value)).toBe(expected);
    expect(readAs(read.epochMs, value)).toBe(expected ?? 'the body is missing or not a time in milliseconds');
  });

  const LATEST_SECONDS = Math.floor(LATEST_MS / 1000);
  test.each([
    [0, 0],
    [1_772_443_800, 1_772_443_800_000],
    [LATEST_SECONDS, LATEST_SECONDS * 1000],
    [LATEST_SECONDS + 1, null],
    [-1, null],
    [0.5, null],
    [undefined, null],
  ])('the epoch seconds %p are read as %p ms', (value, expected) => {
    expect(readAs(read.optionalEpochSeconds, value)).toBe(expected);
    expect(readAs(read.epochSeconds, value)).toBe(expected ?? 'the body is missing or not a time in seconds');
  });

  const NOON = Date.UTC(2026, 2, 2, 12);
  test.each<[unknown, number | null]>([
    ['2026-03-02T12:00:00Z', NOON],
    ['2026-03-02t12:00:00z', NOON],
    ['2026-03-02T12:00:00.5Z', NOON + 500],
    ['2026-03-02T12:00:00.181999Z', NOON + 181],
    [`2026-03-02T12:00:00.${'1'.repeat(43)}Z`, NOON + 111],
    [`2026-03-02T12:00:00.${'1'.repeat(44)}Z`, null],
    ['2026-03-02T14:00:00+02:00', NOON],
    ['2026-03-02T14:30:00+0230', NOON],
    ['2026-03-02T07:00:00-05:00', NOON],
    ['9997-12-31T23:59:59.999Z', LATEST_MS],
    ['9998-01-01T00:00:00Z', null],
    ['1969-12-31T23:59:59Z', null],
    ['2026-13-02T12:00:00Z', null],
    ['2026-02-29T12:00:00Z', null],
    ['2028-02-29T12:00:00Z', Date.UTC(2028, 1, 29, 12)],
    ['2026-03-02T12:00:5678Z', null],
    ['2026-03-02T12:00:00', null],
    ['2026-03-02T12:00:00.Z', null],
    ['2026-03-02T12:00Z', null],
    ['2026-03-02 12:00:00Z', null],
    ['x2026-03-02T12:00:00Z', null],
    ['2026-03-02T12:00:00Zx', null],
    ['2026-03-02T12:00:00+2', null],
    ['12026-03-02T12:00:00Z', null],
    [NOON, null],
    [undefined, null],
  ])('the time text %p is read as %p', (value, expected) => {
    expect(readAs(read.optionalTimeText, value)).toBe(expected);
    expect(readAs(read.timeText, value)).toBe(
      expected ?? 'the body is missing or not a time with its time zone',
    );
  });
});

test('a currency of three letters is read in upper case', () => {
  expect([readAs(read.currencyCode, 'eur'), readAs(read.currencyCode, 'USD')]).toEqual(['EUR', 'USD']);
  for (const value of ['euro', 'eu', 'e1r', ' eur', 7, null, ['eur']]) {
    expect(readAs(read.currencyCode, value)).toBe('the body is missing or not a currency code');
  }
});

test.each<[unknown, number | null]>([
  ['0', 0],
  ['1149', 1149],
  ['-20', -20],
  ['9007199254740991', Number.MAX_SAFE_INTEGER],
  ['9007199254740992', null],
  ['0'.repeat(16), 0],
  ['0'.repeat(17), null],
  ['1.5', null],
  ['+1', null],
  [' 1', null],
  ['1 ', null],
  ['', null],
  ['--1', null],
  ['1e3', null],
  [1149, null],
  [undefined, null],
])('the minor-unit text %p is read as %p', (value, expected) => {
  expect(readAs(read.optionalMinorText, value)).toBe(expected);
  expect(readAs(read.minorText, value)).toBe(
    expected ?? 'the body is missing or not the text of a whole amount',
  );
});

test('distinct candidates keep their order, without nulls and repeats', () => {
  expect(read.distinct(['b', null, 'a', 'b', null, 'c'])).toEqual(['b', 'a', 'c']);
});

test.each([
  ['invoice.paid', 'invoice.paid'],
  ['NON_RENEWING_PURCHASE', 'NON_RENEWING_PURCHASE'],
  ['a', 'a'],
  [`a${'_'.repeat(59)}`, `a${'_'.repeat(59)}`],
  [`a${'_'.repeat(60)}`, '(unreadable name)'],
  ['hazel@example.com', '(unreadable name)'],
  ['hazel bought', '(unreadable name)'],
  ['_a', '(unreadable name)'],
  ['4 a', '(unreadable name)'],
  ['', '(unreadable name)'],
])('the event type %j appears as %j in a reason', (type, named) => {
  expect(read.typeName(type)).toBe(named);
});
