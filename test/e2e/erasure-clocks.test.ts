import { createHash } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { readBacklog } from '../../src/db/backlog.ts';
import { newId } from '../../src/db/new-id.ts';
import { requestReprocessing } from '../../src/db/reprocess.ts';
import { DAY_MS, MINUTE_MS } from '../../src/domain/time.ts';
import { startErasing } from '../support/erasing.ts';
import type { Erasing } from '../support/erasing.ts';

const YEARS_MS = 730 * DAY_MS;
const sha256 = (text: string) => createHash('sha256').update(text).digest('base64url');

let erasing: Erasing;

beforeAll(async () => {
  erasing = await startErasing();
});
afterAll(async () => {
  await erasing?.api.close();
});

/** Runs `work` while the clock of this process is wrong by `ms`. */
async function withClock<T>(ms: number, work: () => Promise<T>): Promise<T> {
  const real = Date.now;
  Date.now = () => real() + ms;
  try {
    return await work();
  } finally {
    Date.now = real;
  }
}

const nextPage = async (id: string) => await erasing.activities(erasing.sql, MINUTE_MS).erasePage(id);
const isAMinute = ({ done, waitMs }: { done: boolean; waitMs: number }) =>
  !done && waitMs > 0 && waitMs <= MINUTE_MS;

/** Opens the erasure of a new person, whose first search ends while the clock of the process is wrong by `ms`. */
async function searchOnce(ms: number): Promise<{ id: string; userId: string }> {
  const { userId } = await erasing.newPerson();
  await erasing.purchase(userId);
  const { id } = await erasing.open(userId);
  await withClock(ms, async () => await erasing.searchOnce({ id }));
  return { id, userId };
}

describe('an erasure waits for its second search', () => {
  // @promise database-clock
  test.each([
    ['ahead', YEARS_MS],
    ['behind', -YEARS_MS],
  ])(
    'for a minute of the clock of the database, also in a process whose clock is years %s',
    async (_, ms) => {
      const { id, userId } = await searchOnce(ms);
      expect(isAMinute(await nextPage(id))).toBe(true);
      expect(isAMinute(await withClock(ms, async () => await nextPage(id)))).toBe(true);
      await erasing.sql`update erasures set settles_at = now() where id = ${id}`;
      for (let page = { done: false, waitMs: 0 }; !page.done;) {
        page = await withClock(ms, async () => await nextPage(id));
        expect(page.waitMs).toBe(0);
      }
      await erasing.expectErased([userId]);
    },
  );

  // @promise database-clock
  test('for a minute from now where a wrong clock has stored an end that is years away', async () => {
    const { id } = await searchOnce(0);
    await erasing.sql`update erasures set settles_at = now() + interval '2 years' where id = ${id}`;
    expect(isAMinute(await nextPage(id))).toBe(true);
    const { waitMs } = await erasing.sql.one<{ waitMs: number }>`
      select extract(epoch from settles_at - now())::float8 * 1000 as wait_ms from erasures where id = ${id}`;
    expect(waitMs).toBeLessThanOrEqual(MINUTE_MS);
  });
});

test('the backlog has the age of the oldest erasure that is not complete, by its latest request that began the search again', async () => {
  const { id } = await searchOnce(0);
  await erasing.sql`update erasures set requested_at = now() - interval '2 days' where id = ${id}`;
  const { openErasures, oldestErasureSeconds } = await readBacklog(erasing.sql);
  expect(openErasures).toBeGreaterThan(0);
  expect(Math.round(oldestErasureSeconds / 86_400)).toBe(2);
  await erasing.sql`update erasures set reopened_at = now() where id = ${id}`;
  expect((await readBacklog(erasing.sql)).oldestErasureSeconds).toBeLessThan(3_600);
});

// @promise database-clock
test('the second search of a process whose clock is years behind finds a plan of a reprocess run', async () => {
  const other = await startErasing();
  try {
    const { userId } = await other.newPerson();
    await other.purchase(userId);
    await other.sql`update deliveries set received_at = received_at - interval '1 day'`;
    const { id, pseudonym } = await other.open(userId);
    await other.searchOnce({ id });
    const run = newId('reprocessRun');
    const all = { dryRun: true, deliveryId: null, from: null, to: null };
    await requestReprocessing(other.sql, { id: run, appId: other.appId, ...all });
    await other.sql`
      with planned as (
        insert into reprocess_changes (app_id, reprocess_run_id, delivery_id, received_at, changes, appends)
        select app_id, ${run}, id, received_at, '[{}]', true from deliveries
        returning delivery_id
      )
      insert into reprocess_names (reprocess_run_id, delivery_id, name, provides)
      select ${run}, delivery_id, ${sha256(`user ${userId}`)}, true from planned`;
    await other.sql`update erasures set settles_at = now()`;
    await withClock(-YEARS_MS, async () => await other.complete({ id }));
    expect(await other.sql`select name from reprocess_names`).toEqual([
      { name: sha256(`user ${pseudonym}`) },
    ]);
  } finally {
    await other.api.close();
  }
});
