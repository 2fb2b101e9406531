import { listAppIds } from '../../src/db/apps.ts';
import { checkLedger } from '../../src/db/ledger-checks/index.ts';
import { connect } from '../../src/db/sql.ts';
import { eventually } from '../../test/support/eventually.ts';
import type { Variables } from '../compose.ts';
import { say } from '../run-tool.ts';
import type { Stops } from './haproxy.ts';
import type { LoadResult } from './load.ts';
import { environmentHere } from './servers.ts';
import type { Shop } from './story.ts';

/** Throws if anything was lost or doubled. `bad` has what clients saw. */
export async function checkBooks(
  variables: Variables,
  shop: Shop,
  { clients, seconds, purchases: sent, clicked, retries, counts, bad }: LoadResult,
  stops: Stops,
): Promise<void> {
  // The story had one.
  const purchases = sent + 1;
  const sql = connect({ url: environmentHere('migrations', variables)['MIGRATIONS_DATABASE_URL'] ?? '' });
  stops.push(() => sql.close());
  await eventually(
    'every delivery has its outcome',
    async () => {
      const { n } = await sql.one<{
        n: number;
      }>`select count(*)::int as n from deliveries where completed_at is null`;
      return n === 0;
    },
    60_000,
  );
  const found = await sql.one<Record<string, number>>`
    select (select count(*)::int from payments) as payments,
           (select count(*)::int from commissions) as earned,
           (select coalesce(sum(amount_cents), 0)::bigint from commissions) as cents,
           (select count(*)::int from (select payment_id from commissions group by payment_id having count(*) > 1) d) as doubled,
           (select count(*)::int from clicks where claim_token = any(${clicked}::text[]::uuid[])) as clicks`;
  const wanted = {
    payments: purchases,
    earned: purchases,
    cents: purchases * 200,
    doubled: 0,
    clicks: clicked.length,
  };
  for (const [name, value] of Object.entries(wanted)) {
    if (found[name] !== value) bad.push(`${name}: ${found[name]} instead of ${value}`);
  }
  const rest = await shop.payOut();
  const { paid } = await sql.one<{ paid: number }>`
    select coalesce(sum(amount_cents), 0)::bigint as paid from commissions where payout_id is not null`;
  if (paid !== wanted.cents)
    bad.push(`paid ${paid} instead of ${wanted.cents} cents; the last export: ${rest.slice(0, 300)}`);
  const checks = await checkLedger(sql, await listAppIds(sql));
  bad.push(...checks.filter(({ ok }) => !ok).map(({ name }) => `ledger check ${name}`));
  say(
    `${clients} clients for ${seconds.toFixed(0)} s: ${purchases} purchases, ${clicked.length} clicks, ${retries} retries by clients`,
  );
  const responses = [...counts].map(([name, n]) => `${name}: ${n}`).toSorted();
  say(`responses: ${responses.join(', ')}`);
  if (bad.length > 0) throw new Error(`${bad.length} problems:\n${bad.slice(0, 20).join('\n')}`);
  say('Nothing was lost or doubled, and every 5xx was a 503 with Retry-After.');
}
