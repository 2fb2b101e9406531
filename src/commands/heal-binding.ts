import { markHealedIfNothingToHeal } from '../db/bindings.ts';
import type { AppId, BindingId } from '../domain/ids.ts';
import type { CommandDeps } from './deps.ts';

/** Starts the re-evaluation of a user's earlier payments, if there may be any. Call it after the binding is committed. */
export async function healBinding(
  { sql, workflows }: Pick<CommandDeps, 'sql' | 'workflows'>,
  bindingId: BindingId,
  appId: AppId,
): Promise<void> {
  if (!(await markHealedIfNothingToHeal(sql, bindingId))) workflows.healBinding(bindingId, appId);
}
