import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { runAdmin } from '../../src/cli/admin.ts';
import { noSecretsKeys } from '../support/no-secrets-keys.ts';
import { importRates as writeRates } from '../../src/db/rates.ts';
import { DAY_MS } from '../../src/domain/time.ts';
import { backgroundQueue } from '../../temporal/names.ts';
import { eventually } from '../support/eventually.ts';
import { setUpFounder } from '../support/founder.ts';
import type { Founder } from '../support/founder.ts';
import { runOn } from '../support/postgres-admin.ts';
import { bodyOf, stripeInvoicePaid, stripeRefund } from '../support/provider-fixtures.ts';
import { startTestService } from '../support/service.ts';
import type { TestService } from '../support/service.ts';
import { expectConsistentLedger } from '../support/consistent-ledger.ts';

/** A Wednesday so long ago that its commissions are due. */
const WEDNESDAY = Date.UTC(2026, 1, 11);
const dayOf = (at: number) => new Date(at).toISOString().slice(0, 10);

let service: TestService;
let founder: Founder;
let folder: string;

beforeAll(async () => {
  service = await startTestService({ settings: { relay: { overdueMs: 300, pauseMs: 200 } } });
  founder = await setUpFounder(service);
  folder = await mkdtemp(path.join(tmpdir(), 'tributary-rates-'));
});
afterAll(async () => {
  await rm(folder, { recursive: true });
  await service.close();
});

/** Imports these lines by `tributary rates import`. */
async function importRates(...lines: string[]): Promise<void> {
  const file = path.join(folder, 'rates.csv');
  await writeFile(file, lines.join('\n'));
  let message = '';
  const status = await runAdmin(['rates', 'import', file], {
    openDatabase: async () => ({
      url: service.database.url,
      ownerUrl: service.database.url,
      close: async () => {},
    }),
    secretsKeys: noSecretsKeys,
    findService: async () => null,
    stdout: () => {},
    stderr: (text) => void (message += text),
  });
  expect({ status, message }).toMatchObject({ status: 0 });
}

const importOwn = (...lines: string[]) => importRates('date,currency,usd_rate', ...lines);

/** Delivers an invoice of a user and waits until it is evaluated. Returns the id of the event. */
async function pay(
  userId: string,
  amount: number,
  currency: string,
  occurredAt: number,
  over: Parameters<typeof stripeInvoicePaid>[0] = {},
): Promise<string> {
  const response = await founder.stripe(
    bodyOf(stripeInvoicePaid({ userId, amount, currency, occurredAt, ...over })),
  );
  expect(response.status).toBe(200);
  const { eventId = '' } = response.body;
  // On a busy machine the response may be `pending`.
  await eventually('the delivery has an outcome', async () => {
    const { completed } = await service.sql.one<{ completed: boolean }>`
      select completed_at is not null as completed from deliveries where event_id = ${eventId}`;
    return completed;
  });
  return eventId;
}

interface Outcome {
  readonly cause: string | null;
  readonly baseCents: number | null;
  readonly shown: string | null;
  readonly units: string | null;
  readonly worthUsd: string | null;
  readonly source: string | null;
  readonly commissions: readonly number[];
}

async function outcomeOf(eventId: string): Promise<Outcome> {
  return await service.sql.one<Outcome>`
    select e.likely_cause as cause, e.amount_cents as base_cents, e.fx_rate::text as shown, e.fx_units::text as units,
           e.fx_worth_usd::text as worth_usd, e.fx_source as source,
           coalesce((select jsonb_agg(c.amount_cents order by c.id) from commissions c
                      join payments p on p.id = c.payment_id where p.event_id = e.id), '[]') as commissions
      from events e where e.id = ${eventId}`;
}

const WAITING: Outcome = {
  cause: 'missing_exchange_rate',
  baseCents: null,
  shown: null,
  units: null,
  worthUsd: null,
  source: null,
  commissions: [],
};

const waitUntilEarned = (eventId: string) =>
  eventually('the payment has earned', async () => (await outcomeOf(eventId)).commissions.length > 0);

describe('payments without a rate', () => {
  // @promise reference-rate
  test('a payment without a rate earns after an import, to the cent, and stores rate and source', async () => {
    const user = await founder.customer();
    const euros = await pay(user, 1_999, 'eur', WEDNESDAY + DAY_MS / 2);
    const yen = await pay(user, 1_500, 'jpy', WEDNESDAY + DAY_MS / 2);
    expect(await outcomeOf(euros)).toEqual(WAITING);
    await importRates('Date, USD, JPY, ', '11 February 2026, 1.0558, 162.34, ');
    await waitUntilEarned(euros);
    await waitUntilEarned(yen);
    // 19.99 × 1.0558 = 21.105442, and a fifth of 2111 cents; 1500 / 162.34 × 1.0558 = 9.7554…, and a fifth of 976.
    expect(await outcomeOf(euros)).toEqual({
      cause: null,
      baseCents: 2_111,
      shown: '1.0558',
      units: '1',
      worthUsd: '1.0558',
      source: 'ecb 2026-02-11',
      commissions: [422],
    });
    expect(await outcomeOf(yen)).toEqual({
      cause: null,
      baseCents: 976,
      shown: '0.00650363434767',
      units: '162.34',
      worthUsd: '1.0558',
      source: 'ecb 2026-02-11',
      commissions: [195],
    });
  });

  // @promise missing-rate-waits
  test('a payment without a rate earns when the rate was imported while the service was stopped', async () => {
    const user = await founder.customer();
    const eventId = await pay(user, 1_000, 'sek', WEDNESDAY);
    service = await service.restart(() => importOwn(`${dayOf(WEDNESDAY)},SEK,0.1`));
    founder.url = service.url;
    founder.sql = service.sql;
    await waitUntilEarned(eventId);
    expect(await outcomeOf(eventId)).toMatchObject({ baseCents: 100, source: 'operator 2026-02-11' });
  });

  // @promise rate-of-seven-days
  test('a payment uses the rate of its day, else the latest of the seven days before, and no other', async () => {
    const user = await founder.customer();
    const at = {
      firstSecond: WEDNESDAY,
      lastSecond: WEDNESDAY + DAY_MS - 1_000,
      saturday: WEDNESDAY + 3 * DAY_MS,
      secondBefore: WEDNESDAY - 1_000,
    };
    const events: Record<string, string> = {};
    for (const [name, occurredAt] of Object.entries(at)) {
      events[name] = await pay(user, 10_000, 'nok', occurredAt);
    }
    await importOwn(`${dayOf(WEDNESDAY)},NOK,0.09`, `${dayOf(WEDNESDAY + 2 * DAY_MS)},NOK,0.08`);
    for (const name of ['firstSecond', 'lastSecond', 'saturday']) await waitUntilEarned(events[name] ?? '');
    const sources: Record<string, string | null> = {};
    for (const [name, eventId] of Object.entries(events)) sources[name] = (await outcomeOf(eventId)).source;
    expect(sources).toEqual({
      firstSecond: 'operator 2026-02-11',
      lastSecond: 'operator 2026-02-11',
      saturday: 'operator 2026-02-13',
      secondBefore: null,
    });
    expect(await outcomeOf(events['secondBefore'] ?? '')).toEqual(WAITING);
  });

  // @promise rate-of-seven-days
  test('a rate that is seven days old applies, one that is eight days old does not', async () => {
    const user = await founder.customer();
    const seven = await pay(user, 10_000, 'dkk', WEDNESDAY + 8 * DAY_MS - 1_000);
    const eight = await pay(user, 10_000, 'dkk', WEDNESDAY + 8 * DAY_MS);
    await importOwn(`${dayOf(WEDNESDAY)},DKK,0.14`);
    await waitUntilEarned(seven);
    expect(await outcomeOf(eight)).toEqual(WAITING);
    // The same limit applies to the first evaluation.
    expect((await outcomeOf(await pay(user, 10_000, 'dkk', WEDNESDAY + 8 * DAY_MS - 2_000))).source).toBe(
      'operator 2026-02-11',
    );
    expect(await outcomeOf(await pay(user, 10_000, 'dkk', WEDNESDAY + 8 * DAY_MS + 1_000))).toEqual(WAITING);
  });

  // @promise rate-frozen
  test('a conversion stays frozen after a later import, and its refund uses the frozen rate', async () => {
    const user = await founder.customer();
    await importOwn(`${dayOf(WEDNESDAY)},CHF,1.1`);
    const paymentIntentId = 'pi_frozen';
    const invoiceId = 'in_frozen';
    const eventId = await pay(user, 1_000, 'chf', WEDNESDAY, {
      invoiceId,
      legacy: { chargeId: 'ch_frozen', paymentIntentId },
    });
    const before = await outcomeOf(eventId);
    expect(before).toMatchObject({ baseCents: 1_100, commissions: [220] });
    await importOwn(`${dayOf(WEDNESDAY)},CHF,2.2`);
    await founder.stripe(
      bodyOf(stripeRefund({ paymentIntentId, amount: 500, currency: 'chf', occurredAt: WEDNESDAY })),
    );
    await eventually('the refund is booked', async () => (await outcomeOf(eventId)).commissions.length === 2);
    expect(await outcomeOf(eventId)).toEqual({ ...before, commissions: [220, -110] });
    expect((await outcomeOf(await pay(user, 1_000, 'chf', WEDNESDAY))).baseCents).toBe(2_200);
  });

  test('an import converts several pages of payments, and a payment that fails does not block the others', async () => {
    const user = await founder.customer();
    const events: string[] = [];
    for (let n = 0; n < 12; n += 1) {
      const paid = [1, 2, 3, 4, 5, 6].map((k) => pay(user, 1_000 + 6 * n + k, 'thb', WEDNESDAY - n * DAY_MS));
      events.push(...(await Promise.all(paid)));
    }
    const [broken = ''] = events;
    await runOn(
      service.database.url,
      `create function test_breaks() returns trigger language plpgsql as $$ begin raise exception 'the test broke this row'; end $$;
       create trigger test_breaks before insert on commissions for each row when (new.event_id = '${broken}')
         execute function test_breaks();`,
    );
    await importOwn(
      ...Array.from({ length: 12 }, (_, n) => `${dayOf(WEDNESDAY - n * DAY_MS)},THB,0.0${10 + n}`),
    );
    await Promise.all(events.slice(1).map(waitUntilEarned));
    expect((await outcomeOf(broken)).cause).toBe('missing_exchange_rate');
    await runOn(service.database.url, 'drop trigger test_breaks on commissions; drop function test_breaks()');
    await waitUntilEarned(broken);
  });

  test('payments concurrent with imports of their rates all earn', async () => {
    const user = await founder.customer();
    const paid: Promise<string>[] = [];
    const imports: Promise<unknown>[] = [];
    for (let n = 0; n < 10; n += 1) {
      const occurredAt = WEDNESDAY - 10 * n * DAY_MS;
      paid.push(...[1, 2, 3, 4].map(() => pay(user, 1_000, 'zar', occurredAt)));
      const rate = { currency: 'ZAR', day: dayOf(occurredAt), units: '1', worthUsd: '0.06' };
      imports.push(writeRates(service.sql, { source: 'operator', rates: [rate] }));
    }
    const events = await Promise.all(paid);
    await Promise.all(imports);
    await Promise.all(events.map(waitUntilEarned));
    await expectConsistentLedger(service.sql);
  });
});

describe('fetching rates', () => {
  let feed: { status: number; body: Buffer | string };
  let requests = 0;
  const server = createServer((_, response) => {
    requests += 1;
    response.writeHead(feed.status).end(feed.body);
  });
  let ratesUrl: string;
  beforeAll(async () => {
    await new Promise<void>((resolve) => {
      server.listen(0, '127.0.0.1', resolve);
    });
    ratesUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}/eurofxref.zip`;
  });
  afterAll(() => {
    server.closeAllConnections();
    server.close();
  });

  test('a wrong RATES_URL fails the workflow with one sentence and is not requested again that day', async () => {
    const other = await startTestService({ settings: { ratesUrl } });
    try {
      feed = { status: 404, body: 'not here' };
      requests = 0;
      const run = { taskQueue: backgroundQueue(other.taskQueue), workflowId: `rates:${other.taskQueue}` };
      await expect(other.temporal.workflow.execute('rates', run)).rejects.toMatchObject({
        cause: {
          message: expect.stringMatching(
            /^No exchange rates today: 127\.0\.0\.1:\d+ responded with 404\. Fix RATES_URL\.$/,
          ),
        },
      });
      expect(requests).toBe(1);

      feed = { status: 200, body: '<html>Sorry</html>' };
      const handle = await other.temporal.workflow.start('rates', run);
      await eventually('the UI shows the failed attempt with its reason', async () => {
        const { raw } = await handle.describe();
        return raw.pendingActivities?.[0]?.lastFailure?.message === 'it is HTML or XML, not CSV.';
      });
      await handle.terminate();
      expect(await other.sql`select * from exchange_rates`).toEqual([]);
    } finally {
      await other.close();
    }
  });

  test('a service without RATES_URL fetches no rates', async () => {
    const run = { taskQueue: backgroundQueue(service.taskQueue), workflowId: `rates:${service.taskQueue}` };
    expect(await service.temporal.workflow.execute('rates', run)).toEqual({ status: 'off' });
  });
});
