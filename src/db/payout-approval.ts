import type { AppId } from '../domain/ids.ts';
import type { Statements } from './sql.ts';

/** Whether an app wants each payment to be approved by another key. A single export has no second approver. */
export async function needsAnotherApprover(sql: Statements, appId: AppId): Promise<boolean> {
  const app = await sql.maybe`select from apps where id = ${appId} and payout_approval = 'another_key'`;
  return app !== undefined;
}
