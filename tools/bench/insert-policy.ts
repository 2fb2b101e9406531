import type pg from 'pg';
import { newId } from '../../src/db/new-id.ts';

/** Gives an app a policy that is in effect since yesterday: what the service inserts takes effect a minute later at the earliest. */
export async function insertPolicy(client: pg.Client, appId: string): Promise<void> {
  const terms = {
    base: 'proceeds',
    rules: [{ when: { monthsSinceFirst: { below: 12 } }, percentBps: 5000 }, { percentBps: 2000 }],
  };
  const policyId = newId('policy');
  await client.query('begin; set local session_replication_role = replica');
  await client.query(`insert into policies (id, app_id, name) values ($1, $2, 'Bench')`, [policyId, appId]);
  await client.query(
    `insert into policy_versions (id, app_id, policy_id, version, effective_from, terms)
     values ($1, $2, $3, 1, now() - interval '1 day', $4)`,
    [newId('policyVersion'), appId, policyId, terms],
  );
  await client.query(
    `insert into policy_assignments (app_id, position, policy_id, effective_from) values ($1, 1, $2, now() - interval '1 day')`,
    [appId, policyId],
  );
  await client.query(`update apps set policies_from = now() - interval '1 day' where id = $1`, [appId]);
  await client.query('commit');
}
