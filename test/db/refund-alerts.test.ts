import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { evaluateAlerts } from '../../src/db/alert-evaluation.ts';
import { recordLedgerFindings } from '../../src/db/ledger-findings.ts';
import { foldRefunds, loadRefunds } from '../../src/db/refund-rollups.ts';
import { foldRollups } from '../../src/db/rollups.ts';
import { instant } from '../../src/db/sql.ts';
import type { AppId } from '../../src/domain/ids.ts';
import { DAY_MS } from '../../src/domain/time.ts';
import { newAffiliate, newApp, startTestApi } from '../support/api.ts';
import type { TestApi, TestApp } from '../support/api.ts';
import { insertEarning, insertReversal } from '../support/ledger.ts';

let api: TestApi;
let app: TestApp;
let creator: string;
const NOON = 12 * 60 * 60 * 1000;
/** Noon of a day (UTC). */
const now = Date.UTC(2026, 10, 26) + NOON;

beforeAll(async () => {
  api = await startTestApi();
});
afterAll(async () => {
  await api.close();
});
beforeEach(async () => {
  app = await newApp(api);
  creator = await newAffiliate(api, app);
});

/** Inserts a payment of so many cents with its revenue. Returns the id of its commission. */
async function pay(cents: number, occurredAt: number): Promise<string> {
  const id = await insertEarning(api, app, {
    affiliateId: creator,
    amountCents: cents / 5,
    occurredAt,
    dueAt: occurredAt,
  });
  await api.sql`
    insert into revenue_entries (payment_id, position, app_id, affiliate_id, amount_cents, occurred_at)
    select payment_id, 1, app_id, affiliate_id, ${cents}, occurred_at from commissions where id = ${id}`;
  return id;
}

/** Gives cents of a payment back. */
async function giveBack(earningId: string, cents: number, occurredAt: number): Promise<void> {
  const reversalId = await insertReversal(api, earningId, { amountCents: cents / 5, occurredAt });
  await api.sql`
    insert into revenue_entries (payment_id, position, app_id, affiliate_id, adjustment_id, amount_cents, occurred_at)
    select c.payment_id, 1 + (select max(position) from revenue_entries e where e.payment_id = c.payment_id), c.app_id, c.affiliate_id,
           c.adjustment_id, ${-cents}, ${instant(occurredAt)}
      from commissions c where c.id = ${reversalId}`;
}

const refunds = async () => (await loadRefunds(api.sql, [app.appId as AppId], now))[0];
const evaluate = async (at = now) =>
  await evaluateAlerts(api.sql, [app.appId as AppId], { providers: [], now: at });
const alerts = async () =>
  await api.sql`select rule, subject, facts, closed_at from alerts where app_id = ${app.appId} order by opened_at, id`;

async function foldAll(): Promise<void> {
  while ((await foldRefunds(api.sql, 3)) > 0);
  while ((await foldRollups(api.sql)) > 0);
}

describe('refunds of an app', () => {
  // @promise alert-refunds
  test('above 5 % and twice the usual share open one alert, whether they are folded or not, and close it when they are usual again', async () => {
    const week: string[] = [];
    for (let n = 0; n < 20; n += 1) week.push(await pay(1_000, now - (n % 6) * DAY_MS));
    for (let n = 0; n < 40; n += 1) await pay(1_000, now - (8 + (n % 19)) * DAY_MS);
    await giveBack(week[0] ?? '', 1_000, now - DAY_MS);
    // 5 % of the week: not above.
    expect(await evaluate()).toEqual({ opened: 0, closed: 0 });
    await giveBack(week[1] ?? '', 500, now);
    const facts = {
      weekRefundedCents: 1_500,
      weekGrossCents: 20_000,
      monthRefundedCents: 1_500,
      monthGrossCents: 60_000,
      weekPayments: 20,
    };
    expect(await refunds()).toMatchObject(facts);
    await foldAll();
    expect(await refunds()).toMatchObject(facts);
    expect(await evaluate()).toEqual({ opened: 1, closed: 0 });
    expect(await evaluate()).toEqual({ opened: 0, closed: 0 });
    expect(await alerts()).toMatchObject([
      {
        rule: 'many_refunds',
        subject: 'refunds',
        facts: { refundedCents: 1_500, grossCents: 20_000, refundBps: 750, usualBps: 250 },
        closedAt: null,
      },
    ]);
    // A week later, none of them counts.
    expect(await evaluate(now + 7 * DAY_MS)).toEqual({ opened: 0, closed: 1 });
  });

  test('open no alert with fewer than 20 payments, or where the share is usual', async () => {
    const week: string[] = [];
    for (let n = 0; n < 19; n += 1) week.push(await pay(1_000, now - DAY_MS));
    for (let n = 0; n < 40; n += 1) await pay(1_000, now - 10 * DAY_MS);
    for (const id of week.slice(0, 5)) await giveBack(id, 1_000, now);
    expect(await evaluate()).toEqual({ opened: 0, closed: 0 });
    const earlier = await pay(1_000, now - 2 * DAY_MS);
    expect(await evaluate()).toEqual({ opened: 1, closed: 0 });
    expect(earlier).toMatch(/^com_/);

    app = await newApp(api);
    creator = await newAffiliate(api, app);
    const all: string[] = [];
    for (let n = 0; n < 40; n += 1) all.push(await pay(1_000, now - (n % 27) * DAY_MS));
    for (const [n, id] of all.entries()) if (n % 4 === 0) await giveBack(id, 1_000, now - (n % 27) * DAY_MS);
    expect(await evaluate()).toEqual({ opened: 0, closed: 0 });
  });

  test('add up to their facts whatever is folded when, also when two processes fold', async () => {
    let seed = 7;
    const random = (below: number) => {
      seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31;
      return seed % below;
    };
    const ids: string[] = [];
    for (let n = 0; n < 12; n += 1) ids.push(await pay(10_000, now - random(27) * DAY_MS));
    for (let n = 0; n < 40; n += 1) {
      await giveBack(ids[random(ids.length)] ?? '', 5 * (1 + random(20)), now - random(27) * DAY_MS);
      if (random(3) === 0) await Promise.all([foldRefunds(api.sql, 4), foldRefunds(api.sql, 4)]);
      if (random(3) === 0) await foldRollups(api.sql);
      const facts = await api.sql.one<{ refunded: number; gross: number }>`
        select coalesce(-sum(amount_cents) filter (where adjustment_id is not null), 0)::float8 as refunded,
               coalesce(sum(amount_cents) filter (where adjustment_id is null), 0)::float8 as gross
          from revenue_entries where app_id = ${app.appId}`;
      expect(await refunds()).toMatchObject({
        monthRefundedCents: facts.refunded,
        monthGrossCents: facts.gross,
      });
    }
  });
});

// @promise alert-ledger
test('a check of the ledger that finds rows opens one alert, and one that finds none any more closes it', async () => {
  const appId = app.appId as AppId;
  const found = async (violations: number, name = 'earnings_are_rate_of_base') => {
    await recordLedgerFindings(api.sql, [{ appId, name, violations }]);
    return await evaluate();
  };
  expect(await found(0)).toEqual({ opened: 0, closed: 0 });
  expect(await found(3)).toEqual({ opened: 1, closed: 0 });
  expect(await found(2, 'paid_rows_have_their_payout')).toEqual({ opened: 0, closed: 0 });
  expect(await alerts()).toMatchObject([
    {
      rule: 'ledger_violated',
      subject: 'ledger',
      facts: { rules: 1, violations: 3, rule: 'earnings_are_rate_of_base' },
      closedAt: null,
    },
  ]);
  expect(await found(0)).toEqual({ opened: 0, closed: 0 });
  expect(await found(0, 'paid_rows_have_their_payout')).toEqual({ opened: 0, closed: 1 });

  // The check itself stores what it finds: a commission that is not its rate of its base.
  const id = await pay(1_000, now);
  await api.sql.transaction(async (tx) => {
    await tx`set local session_replication_role = replica`;
    await tx`update commissions set rate_bps = 2500 where id = ${id}`;
  });
  const check = async () =>
    await api.call<{ ok: boolean }>('GET', `/apps/${appId}/diagnostics/ledger`, { key: app.key });
  expect((await check()).body.ok).toBe(false);
  // An evaluation opens nothing again that was closed at its instant.
  expect(await evaluate(now + 1_000)).toEqual({ opened: 1, closed: 0 });
});
