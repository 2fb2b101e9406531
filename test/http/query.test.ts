import { expect, test } from '@jest/globals';
import * as z from 'zod';
import { readQuery } from '../../src/http/query.ts';
import { readInput } from '../../src/http/read-input.ts';

// @promise linear-query
test('a query of a hundred thousand parameters is read in time proportional to its length', () => {
  const query = readQuery({ querystring: `${'a&'.repeat(100_000)}b=%20c+d` });
  expect(query['a']).toHaveLength(100_000);
  expect(query['b']).toBe(' c d');
});

// @promise linear-query
test('the quadratic query of the framework is not read', async () => {
  const ctx = {
    path: '/apps',
    querystring: 'limit=5&limit=6',
    get query(): never {
      throw new Error('ctx.query was read');
    },
  };
  const schema = z.object({ limit: z.array(z.string()) });
  const limits = { now: 0, bodyLimitBytes: 0 };
  const { query } = await readInput({ query: schema }, ctx as never, {} as never, limits);
  expect(query).toEqual({ limit: ['5', '6'] });
});
