import { expect, test } from '@jest/globals';
import { createBodyBudget } from '../../src/http/body-budget.ts';
import { ApiError } from '../../src/http/errors.ts';

const KIB = 1024;

// @promise large-bodies-bounded
test('the large bodies of an address take a bounded amount of memory, and a finished one makes room', () => {
  const budget = createBodyBudget({ totalBytes: 1000 * KIB, addressBytes: 250 * KIB });
  const free = budget.reserve('203.0.113.1', 100 * KIB);
  budget.reserve('203.0.113.1', 100 * KIB);
  expect(() => budget.reserve('203.0.113.1', 100 * KIB)).toThrow(ApiError);
  budget.reserve('203.0.113.2', 100 * KIB);
  free();
  budget.reserve('203.0.113.1', 100 * KIB);
});

// @promise large-bodies-bounded
test('all addresses together have a bound, and a body of at most 32 KiB is received beyond it', () => {
  const budget = createBodyBudget({ totalBytes: 100 * KIB, addressBytes: 100 * KIB });
  budget.reserve('203.0.113.1', 100 * KIB);
  expect(() => budget.reserve('203.0.113.2', 33 * KIB)).toThrow(
    expect.objectContaining({ code: 'unavailable' }),
  );
  budget.reserve('203.0.113.2', 32 * KIB);
});

test('the addresses of one IPv6 /64 share their part', () => {
  const budget = createBodyBudget({ totalBytes: 1000 * KIB, addressBytes: 100 * KIB });
  budget.reserve('2001:db8::1', 100 * KIB);
  expect(() => budget.reserve('2001:db8::2', 100 * KIB)).toThrow(ApiError);
});
