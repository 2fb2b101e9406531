import type { Logger } from 'pino';
import { findBinding, markHealed } from '../src/db/healing.ts';
import { findWaitingPayments, loadPayments } from '../src/db/payments.ts';
import type { NewCommission } from '../src/db/payments.ts';
import type { Sql } from '../src/db/sql.ts';
import { bindTransfers } from '../src/db/transfers.ts';
import type { BindingId } from '../src/domain/ids.ts';
import { evaluateAndApply } from './evaluate.ts';
import { parseId } from './parse-id.ts';

export interface HealingActivityDeps {
  readonly sql: Sql;
  readonly logger: Logger;
  readonly onCommissions: (commissions: readonly NewCommission[]) => void;
  /** Bindings that were made meanwhile and have to be healed, too. */
  readonly onBindings: (bindings: readonly BindingId[]) => void;
}

const PAGE = 50;

export interface HealingActivities {
  healPage(bindingId: string, after: string | null): Promise<string | null>;
}

/** The activities of the heal workflow. */
export function createHealingActivities({
  sql,
  logger,
  onCommissions,
  onBindings,
}: HealingActivityDeps): HealingActivities {
  return {
    /** Looks again at one page of waiting payments, and first at whom the user gave his purchases to; answers where the next page begins, or null after the last. */
    healPage: async (id, after) => {
      const bindingId = parseId('binding', id);
      const afterPayment = after === null ? null : parseId('payment', after);
      const binding = await findBinding(sql, bindingId);
      if (binding === undefined) return null;
      if (after === null) {
        onBindings(await bindTransfers(sql, binding.appId, { giver: binding.customerUserId }));
      }
      const users = { customerUserIds: [binding.customerUserId], userKeys: [] };
      const page = await findWaitingPayments(sql, binding.appId, users, afterPayment, PAGE);
      let healed = 0;
      for (const payment of page.length === 0 ? [] : await loadPayments(sql, { paymentIds: page })) {
        const { commissions } = await evaluateAndApply(sql, payment, null);
        onCommissions(commissions);
        healed += commissions.length;
      }
      if (healed > 0) logger.info({ bindingId, healed, msg: 'earlier payments found their creator' });
      const last = page.at(-1);
      if (last !== undefined && page.length === PAGE) return last;
      await markHealed(sql, bindingId);
      return null;
    },
  };
}
