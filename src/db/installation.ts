import type { InstallationId } from '../domain/ids.ts';
import { newId } from './new-id.ts';
import type { Sql } from './sql.ts';

/**
 * Returns the id of the installation, which names its task queues and Schedules in Temporal. The first service on a
 * database generates it.
 */
export async function findInstallationId(sql: Sql): Promise<InstallationId> {
  await sql`insert into installation (id) values (${newId('installation')}) on conflict do nothing`;
  return (await sql.one<{ id: InstallationId }>`select id from installation`).id;
}
