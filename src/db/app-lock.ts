import type { AppId } from '../domain/ids.ts';
import type { Statements } from './sql.ts';

/**
 * Waits until no other transaction holds the lock of the app, and holds it until the end of this one. For changes that
 * depend on what the app has already, e.g. its current secret. Rows that reference the app are inserted meanwhile.
 */
export async function lockApp(tx: Statements, appId: AppId): Promise<void> {
  await tx`select from apps where id = ${appId} for no key update`;
}
