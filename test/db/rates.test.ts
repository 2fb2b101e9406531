import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { findConvertiblePayments, importRates } from '../../src/db/rates.ts';
import type { PaymentId } from '../../src/domain/ids.ts';
import { DAY_MS } from '../../src/domain/time.ts';
import { createTestDatabase } from '../support/database.ts';
import type { TestDatabase } from '../support/database.ts';
import { runOn } from '../support/postgres-admin.ts';

let database: TestDatabase;

beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(async () => {
  await database.drop();
});

const id = (n: number) => `pmt_0${String(n).padStart(25, '0')}`;

/** Inserts waiting payments of one currency as bare rows: number and instant. */
async function wait(currency: string, payments: readonly (readonly [number, string])[]): Promise<void> {
  const rows = payments.map(
    ([n, at]) =>
      `('${id(n)}', 'app_01h455vb4pex5vsknk084sn02q', 'production', 's', '${n}', 'evt_01h455vb4pex5vsknk084sn02q',
        '${currency}', 1, '${at}', false, 'missing_exchange_rate')`,
  );
  await runOn(
    database.url,
    `set session_replication_role = replica;
     insert into payments (id, app_id, environment, store, ref, event_id, currency, amount_minor, occurred_at,
                           only_anonymous_user, likely_cause) values ${rows.join(', ')}`,
  );
}

async function pagesOf(limit: number): Promise<PaymentId[][]> {
  const pages: PaymentId[][] = [];
  for (let after: PaymentId | null = null; ; after = pages.at(-1)?.at(-1) ?? null) {
    const page: PaymentId[] = await findConvertiblePayments(database.sql, after, limit);
    pages.push(page);
    if (page.length < limit) return pages;
  }
}

describe('payments that wait for a rate', () => {
  test('each payment with a rate is found once, for any page length, and payments without a rate never', async () => {
    await wait('SEK', [
      [7, '2026-02-11T12:00:00Z'],
      [3, '2026-02-11T00:00:00Z'],
      [5, '2026-02-11T23:59:59Z'],
      [2, '2026-02-12T00:00:00Z'],
      [9, '2026-02-18T23:59:59Z'],
      [1, '2026-02-19T00:00:00Z'],
      [4, '2026-02-10T23:59:59Z'],
    ]);
    await wait('NOK', [[6, '2026-02-11T00:00:00Z']]);
    await wait('AUD', [[8, '2026-02-11T00:00:00Z']]);
    expect(await pagesOf(3)).toEqual([[]]);
    const rate = { day: '2026-02-11', units: '1', worthUsd: '0.1' };
    await importRates(database.sql, {
      source: 'operator',
      rates: [
        { ...rate, currency: 'SEK' },
        { ...rate, currency: 'AUD' },
      ],
    });
    const expected = [8, 3, 5, 7, 2, 9].map(id);
    for (const limit of [1, 2, 3, 4, 5, 6, 7]) {
      const pages = await pagesOf(limit);
      expect(pages.flat()).toEqual(expected);
      expect(pages.every((page) => page.length <= limit)).toBe(true);
    }
  });
});

describe('an import', () => {
  test('two concurrent imports leave all rates of one of them', async () => {
    const rates = (worthUsd: string) =>
      Array.from({ length: 500 }, (_, n) => ({
        currency: 'GBP',
        day: new Date(Date.UTC(2024, 0, 1) + n * DAY_MS).toISOString().slice(0, 10),
        units: '1',
        worthUsd,
      }));
    await Promise.all([
      importRates(database.sql, { source: 'ecb', rates: rates('1.1') }),
      importRates(database.sql, { source: 'ecb', rates: rates('1.2').toReversed() }),
    ]);
    const found = await database.sql<{ worth: string; n: number }>`
      select worth_usd::text as worth, count(*) as n from exchange_rates where currency = 'GBP' group by 1`;
    expect(found).toEqual([{ worth: expect.any(String), n: 500 }]);
  });

  test('an import with a rate that the table refuses stores nothing', async () => {
    const good = { currency: 'PLN', day: '2026-02-11', units: '1', worthUsd: '0.25' };
    const bad = { ...good, currency: 'CZK', units: '0' };
    await expect(importRates(database.sql, { source: 'ecb', rates: [good, bad] })).rejects.toThrow();
    expect(await database.sql`select * from exchange_rates where currency in ('PLN', 'CZK')`).toEqual([]);
  });
});
