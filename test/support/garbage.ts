import * as fc from 'fast-check';
import type { Provider } from '../../src/providers/provider.ts';
import { fixture, fixtureNames } from './provider-fixtures.ts';

/** Replaces the part of `value` at `path` by `by`. Each step of the path is the index of a key. */
function replacedAt(value: unknown, path: readonly number[], by: unknown): unknown {
  const [step, ...rest] = path;
  if (step === undefined || typeof value !== 'object' || value === null) return by;
  const entries = Object.entries(value);
  const picked = entries[step % Math.max(entries.length, 1)];
  if (picked === undefined) return by;
  const [key, child] = picked;
  const changed = replacedAt(child, rest, by);
  if (Array.isArray(value)) return value.map((item: unknown, at) => (String(at) === key ? changed : item));
  return { ...value, [key]: changed };
}

/** Generates almost valid bodies: a fixture with one changed value. */
export function mutatedFixtures(provider: Provider): fc.Arbitrary<Buffer> {
  const bodies = fixtureNames(provider.name).map((name): unknown =>
    JSON.parse(fixture(provider.name, name).toString()),
  );
  const path = fc.array(fc.nat(60), { minLength: 1, maxLength: 6 });
  const something = fc.oneof(
    fc.jsonValue({ maxDepth: 2 }),
    fc.constantFrom<unknown>(
      null,
      undefined,
      '',
      -1,
      0.5,
      1e300,
      '\u0000',
      '\ud800',
      [],
      {},
      'x'.repeat(2000),
    ),
  );
  return fc
    .tuple(fc.constantFrom(...bodies), path, something)
    .map(([body, at, by]) => Buffer.from(JSON.stringify(replacedAt(body, at, by)) ?? ''));
}

/** Deep enough that a recursive function such as JSON.stringify runs out of stack. */
const DEPTH = 8000;
const NESTED_TEXT = `${'['.repeat(DEPTH)}${']'.repeat(DEPTH)}`;
const NESTED_MARK = '(a deeply nested value)';

interface Place {
  /** As `replacedAt` takes it. */
  readonly path: readonly number[];
  /** The names of the keys on the path. */
  readonly name: string;
}

/** Returns the places of all values in `value`. */
function placesIn(value: unknown): readonly Place[] {
  const self = { path: [], name: '' };
  if (typeof value !== 'object' || value === null) return [self];
  const children = Object.entries(value).flatMap(([key, child], at) =>
    placesIn(child).map(({ path, name }) => ({ path: [at, ...path], name: `${key}.${name}` })),
  );
  return [self, ...children];
}

/** Returns, for each kind of fixture and each of its places, a body with a deeply nested value at that place. */
export function nestedFixtures(provider: Provider): ReadonlyMap<string, Buffer> {
  const bodies = new Map<string, Buffer>();
  for (const fixtureName of fixtureNames(provider.name)) {
    const kind = fixtureName.split('.', 2).join('.');
    const value: unknown = JSON.parse(fixture(provider.name, fixtureName).toString());
    for (const { path, name } of placesIn(value)) {
      // Printing the nested value itself would run out of stack here.
      const text = JSON.stringify(replacedAt(value, path, NESTED_MARK));
      const body = text.replace(`"${NESTED_MARK}"`, NESTED_TEXT);
      if (!bodies.has(`${kind} ${name}`)) bodies.set(`${kind} ${name}`, Buffer.from(body));
    }
  }
  return bodies;
}

/** Generates any body: bytes, JSON of any shape, and almost valid bodies. */
export function anyBody(provider: Provider): fc.Arbitrary<Buffer> {
  return fc.oneof(
    fc.uint8Array({ maxLength: 300 }).map((bytes) => Buffer.from(bytes)),
    fc.json({ maxDepth: 4 }).map((text) => Buffer.from(text)),
    mutatedFixtures(provider),
  );
}

function isValidAmount(
  amount: { amountMinor: number; usdCents: number | null; currency: string } | null,
): boolean {
  if (amount === null) return true;
  const { amountMinor, usdCents, currency } = amount;
  return (
    Number.isSafeInteger(amountMinor) &&
    amountMinor >= 0 &&
    (usdCents === null || (Number.isSafeInteger(usdCents) && usdCents >= 0)) &&
    /^[A-Z]{3}$/.test(currency)
  );
}

/** Returns whether the result of parsing is valid: amounts are whole and positive, and ids can be stored. */
export function parsesSafely(provider: Provider, body: Buffer): boolean {
  const result = provider.parse(body);
  if (result.outcome === 'failed') return result.reason.length > 0 && result.reason.length < 400;
  const { event } = result;
  if (event === null) return result.outcome === 'ignored';
  const texts = [event.sourceEventId, ...event.userIds, ...event.userKeys, event.productId ?? 'none'];
  return (
    isValidAmount(event.payment) &&
    isValidAmount(event.adjustment) &&
    (event.payment === null || event.payment.amountMinor > 0) &&
    !(event.payment !== null && event.adjustment !== null) &&
    Number.isSafeInteger(event.occurredAt) &&
    Number.isFinite(new Date(event.occurredAt).getTime()) &&
    texts.every((text) => text.length > 0 && text.length <= 255 && !/[\p{Surrogate}\p{Cc}]/u.test(text))
  );
}
