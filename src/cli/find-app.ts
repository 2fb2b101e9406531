import { listAppIds } from '../db/apps.ts';
import type { Sql } from '../db/sql.ts';
import type { AppId } from '../domain/ids.ts';
import { CommandFailedError } from './output.ts';

/** Returns the id of the app that the operator named. Throws `CommandFailedError` when there is none. */
export async function findApp(sql: Sql, named: string): Promise<AppId> {
  const appId = (await listAppIds(sql)).find((id) => id === named);
  if (appId === undefined) throw new CommandFailedError(`There is no app ${named}.`);
  return appId;
}
