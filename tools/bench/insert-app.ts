import type pg from 'pg';
import { newId } from '../../src/db/new-id.ts';
import type { AppId } from '../../src/domain/ids.ts';

/** Inserts an app of an account with the settings that the benchmarks use. Returns its id. */
export async function insertApp(client: pg.Client, accountId: string, subdomain = 'bench'): Promise<AppId> {
  const appId = newId('app');
  await client.query(
    `insert into apps (id, account_id, name, commission_rate_bps, attribution_window_days, hold_period_days,
                       deferred_window_minutes, link_subdomain)
     values ($1, $2, 'Bench', 2000, 30, 30, 60, $3)`,
    [appId, accountId, subdomain],
  );
  return appId;
}
