import { describe, expect, test } from '@jest/globals';
import * as fc from 'fast-check';
import {
  isSamePayee,
  maskRecipient,
  PAYEE_METHODS,
  payeeAt,
  RECEIVER_TYPES,
  textOfRecipient,
} from '../../src/domain/payee.ts';
import type { Payee, PayeeVersion } from '../../src/domain/payee.ts';
import { DAY_MS } from '../../src/domain/time.ts';
import { cases } from '../support/rounds.ts';

const SET_AT = Date.UTC(2026, 1, 26);

const first: PayeeVersion = { version: 1, method: 'paypal', countsFrom: SET_AT + 3 * DAY_MS };
const second: PayeeVersion = { version: 2, method: 'wise', countsFrom: SET_AT + 13 * DAY_MS };
const none: PayeeVersion = { version: 2, method: 'none', countsFrom: SET_AT + 13 * DAY_MS };

describe('the payee at an instant', () => {
  test.each([
    ['a creator without a payee', [], 0, { inForce: null, waiting: null, excludedAs: 'no_payee' }],
    [
      'the first payee while it waits',
      [first],
      3 * DAY_MS - 1,
      { inForce: null, waiting: first, excludedAs: 'payee_changed' },
    ],
    [
      'the first payee when its wait ends',
      [first],
      3 * DAY_MS,
      { inForce: first, waiting: null, excludedAs: null },
    ],
    [
      'a changed payee while it waits',
      [first, second],
      13 * DAY_MS - 1,
      { inForce: first, waiting: second, excludedAs: 'payee_changed' },
    ],
    [
      'a changed payee when its wait ends',
      [second, first],
      13 * DAY_MS,
      { inForce: second, waiting: null, excludedAs: null },
    ],
    [
      'a removed payee while its removal waits',
      [first, none],
      12 * DAY_MS,
      { inForce: first, waiting: none, excludedAs: 'payee_changed' },
    ],
    ['a removed payee', [first, none], 13 * DAY_MS, { inForce: none, waiting: null, excludedAs: 'no_payee' }],
    [
      'a later version with a shorter wait than the one before it',
      [{ ...first, countsFrom: SET_AT + 30 * DAY_MS }, second],
      13 * DAY_MS,
      { inForce: second, waiting: null, excludedAs: null },
    ],
  ] as const)('is, for %s, what counts then, beside what waits', (_, versions, after, expected) => {
    expect(payeeAt(versions, SET_AT + after)).toEqual(expected);
  });
});

/** Versions as they are appended: a pause before each, and a wait of its own. */
const history = fc
  .array(
    fc.record({
      method: fc.constantFrom(...PAYEE_METHODS),
      pauseMs: fc.integer({ min: 0, max: 40 * DAY_MS }),
      waitDays: fc.integer({ min: 1, max: 30 }),
    }),
    { maxLength: 8 },
  )
  .map((steps) => {
    let setAt = SET_AT;
    return steps.map(({ method, pauseMs, waitDays }, index) => {
      setAt += pauseMs;
      return { version: index + 1, method, setAt, countsFrom: setAt + waitDays * DAY_MS };
    });
  });
const instants = fc.integer({ min: 0, max: 400 * DAY_MS }).map((after) => SET_AT + after);

describe('of any history', () => {
  // @promise payee-waits
  test('only the latest version is paid to, at least a day after it was set and never while another waits', () => {
    fc.assert(
      fc.property(history, instants, (versions, at) => {
        const known = versions.filter(({ setAt }) => setAt <= at);
        const { inForce, waiting, excludedAs } = payeeAt(known, at);
        const latest = known.at(-1) ?? null;
        const isPayable = latest !== null && latest.method !== 'none' && latest.countsFrom <= at;
        expect(excludedAs === null).toBe(isPayable);
        expect(excludedAs === 'payee_changed').toBe(waiting !== null);
        expect(waiting).toBe(latest !== null && latest.countsFrom > at ? latest : null);
        expect(inForce === null || inForce.setAt + DAY_MS <= at).toBe(true);
        expect(known.filter((one) => one.countsFrom <= at && one.version > (inForce?.version ?? 0))).toEqual(
          [],
        );
      }),
      cases(2_000, 20_000),
    );
  });

  test('the latest version and the latest whose wait has ended decide, in any order of the versions', () => {
    fc.assert(
      fc.property(history, instants, fc.infiniteStream(fc.nat()), (versions, at, random) => {
        const read = [versions.at(-1), versions.findLast(({ countsFrom }) => countsFrom <= at)];
        const needed = [...new Set(read)].filter((one) => one !== undefined);
        expect(payeeAt(needed, at)).toEqual(payeeAt(versions, at));
        const shuffled = versions
          .map((one) => [random.next().value, one] as const)
          .toSorted(([a], [b]) => a - b)
          .map(([, one]) => one);
        expect(payeeAt(shuffled, at)).toEqual(payeeAt(versions, at));
      }),
      cases(1_000, 10_000),
    );
  });
});

const text = fc.string({ minLength: 1, maxLength: 20, unit: 'grapheme' });
const email = fc.emailAddress();
const payees: fc.Arbitrary<Payee> = fc.oneof(
  email.map((address) => ({ method: 'paypal' as const, recipient: { email: address } })),
  fc
    .record({ email, name: text, receiverType: fc.constantFrom(...RECEIVER_TYPES) })
    .map((recipient) => ({ method: 'wise' as const, recipient })),
  fc.record({ name: text, reference: text }).map((recipient) => ({ method: 'other' as const, recipient })),
  fc.constant({ method: 'none' as const, recipient: null }),
);

describe('a recipient', () => {
  // @promise payee-masked
  test.each([
    [{ email: 'ada.lovelace@example.com' }, 'a•••@example.com'],
    [{ email: 'abc@example.com' }, 'a•••@example.com'],
    [{ email: 'ab@example.com' }, '•••@example.com'],
    [{ email: 'a@example.com' }, '•••@example.com'],
    [{ name: 'Ada Lovelace', reference: 'IBAN DE00 1234' }, 'A•••'],
    [{ name: '𝒜da', reference: 'x' }, '𝒜•••'],
    [{ email: '"ada@home"@example.com' }, '"•••@example.com'],
    [{ name: 'Al', reference: 'x' }, '•••'],
  ] as const)('%j is shown as %s', (recipient, masked) => {
    expect(maskRecipient(recipient)).toBe(masked);
  });

  test('shows of a name or of what is before the @ at most the first character', () => {
    fc.assert(
      fc.property(payees, ({ recipient }) => {
        if (recipient === null) return;
        const [shown = ''] = maskRecipient(recipient).split('@');
        expect(shown.replace('•••', '')).toMatch(/^.?$/su);
      }),
      cases(500, 5_000),
    );
  });

  test('is the same only if the method and each of its fields are', () => {
    fc.assert(
      fc.property(payees, payees, (one, other) => {
        expect(isSamePayee(one, structuredClone(one))).toBe(true);
        const entries = (payee: Payee) =>
          Object.entries(payee.recipient ?? {}).toSorted(([a], [b]) => (a < b ? -1 : 1));
        const isEqual =
          one.method === other.method && JSON.stringify(entries(one)) === JSON.stringify(entries(other));
        expect(isSamePayee(one, other)).toBe(isEqual);
      }),
      cases(500, 5_000),
    );
  });

  const paypal: Payee = { method: 'paypal', recipient: { email: 'ada@example.com' } };
  const wise = { email: 'ada@example.com', name: 'Ada Lovelace', receiverType: 'PERSON' } as const;
  const other = { name: 'Ada Lovelace', reference: 'IBAN DE00 1234' };
  const nobody: Payee = { method: 'none', recipient: null };
  const atWise = (over: Partial<Record<keyof typeof wise, string>>) =>
    ({ method: 'wise', recipient: { ...wise, ...over } }) as Payee;
  const elsewhere = (over: Partial<typeof other>): Payee => ({
    method: 'other',
    recipient: { ...other, ...over },
  });

  test.each<[string, Payee, Payee]>([
    ['address at PayPal', paypal, { method: 'paypal', recipient: { email: 'ada@example.org' } }],
    ['address at Wise', atWise({}), atWise({ email: 'ada@example.org' })],
    ['name at Wise', atWise({}), atWise({ name: 'Ada King' })],
    ['kind of receiver at Wise', atWise({}), atWise({ receiverType: 'INSTITUTION' })],
    ['name', elsewhere({}), elsewhere({ name: 'Ada King' })],
    ['account', elsewhere({}), elsewhere({ reference: 'IBAN DE00 1235' })],
    ['method', paypal, atWise({})],
    ['method, and no recipient', nobody, paypal],
  ])('is another one with another %s', (_, before, after) => {
    expect(isSamePayee(before, after)).toBe(false);
    expect(isSamePayee(before, structuredClone(before))).toBe(true);
    expect(isSamePayee(after, structuredClone(after))).toBe(true);
  });

  // It is what is stored, and what the confirmation of a change is computed from.
  test.each<[string | null, Payee]>([
    ['{"email":"ada@example.com"}', paypal],
    ['{"email":"ada@example.com","name":"Ada Lovelace","receiverType":"PERSON"}', atWise({})],
    ['{"name":"Ada Lovelace","reference":"IBAN DE00 1234"}', elsewhere({})],
    [null, nobody],
  ])('is written as %s', (written, payee) => {
    expect(textOfRecipient(payee)).toBe(written);
  });

  test('is the same whatever the order of its fields', () => {
    expect(
      isSamePayee(
        { method: 'other', recipient: { name: 'Ada', reference: 'x' } },
        { method: 'other', recipient: { reference: 'x', name: 'Ada' } },
      ),
    ).toBe(true);
  });
});
