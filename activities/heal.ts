import type { Logger } from 'pino';
import { findBinding, markHealed } from '../src/db/healing.ts';
import { findWaitingPayments } from '../src/db/payments.ts';
import type { Sql } from '../src/db/sql.ts';
import { bindSignedInUsers, findSignedInUsers } from '../src/db/signed-in-users.ts';
import { bindTransfers } from '../src/db/transfers.ts';
import type { EvaluationLimits } from '../src/domain/evaluation.ts';
import { evaluateInTime } from './evaluate.ts';
import { parseId } from './parse-id.ts';
import type { WorkEvents } from './work-events.ts';

export interface HealActivityDeps extends Pick<WorkEvents, 'onCommissions' | 'onBindings'> {
  /** The operator's limits; the defaults of the domain if absent. */
  readonly limits?: EvaluationLimits | undefined;
  readonly sql: Sql;
  readonly logger: Logger;
  /** After which time a page begins no further payments, ms. */
  readonly healPageMs?: number;
}

const PAGE = 50;

export interface HealActivities {
  healPage(bindingId: string, after: string | null): Promise<string | null>;
}

/** The activities of the heal workflow. */
export function createHealActivities({
  sql,
  logger,
  limits,
  onCommissions,
  onBindings,
  healPageMs,
}: HealActivityDeps): HealActivities {
  return {
    /**
     * Re-evaluates one page of the user's waiting payments. The first page also binds the users to whom the user
     * transferred purchases, and those who have the key that the binding has. Returns where the next page begins, or
     * null after the last.
     */
    healPage: async (id, after) => {
      const bindingId = parseId('binding', id);
      const afterPayment = after === null ? null : parseId('payment', after);
      const binding = await findBinding(sql, bindingId);
      if (binding === undefined) return null;
      const { appId, customerUserId, keySource } = binding;
      if (after === null) {
        onBindings(await bindTransfers(sql, appId, { giver: customerUserId }), appId);
        if (keySource !== null) {
          const users = await findSignedInUsers(sql, bindingId);
          onBindings(await bindSignedInUsers(sql, appId, users), appId);
        }
      }
      const page = await findWaitingPayments(sql, appId, customerUserId, afterPayment, PAGE);
      const { commissions: healed, done } = await evaluateInTime(
        { sql, logger, limits, onCommissions, onBindings },
        page,
        healPageMs,
      );
      if (healed > 0) logger.info({ bindingId, healed, msg: 'earlier payments were attributed' });
      const last = page[done - 1];
      if (last !== undefined && (page.length === PAGE || done < page.length)) return last;
      await markHealed(sql, bindingId);
      return null;
    },
  };
}
