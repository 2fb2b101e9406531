import type { Logger } from 'pino';
import { closeAbandonedRequests } from '../src/db/payout-requests.ts';
import { matureCommission, matureOverdue } from '../src/db/maturing.ts';
import type { Sql } from '../src/db/sql.ts';
import { parseId } from './parse-id.ts';

export interface MatureActivityDeps {
  readonly sql: Sql;
  readonly logger: Logger;
  /** Commissions that one page of a sweep matures; 1,000 by default. */
  readonly sweepPage?: number;
}

/** Commissions that one page of a sweep matures, in one statement. */
export const SWEEP_PAGE = 1_000;

/** What one page of a sweep did. */
export interface SweepPage {
  readonly matured: number;
  /** Whether overdue commissions or abandoned payout requests may remain. */
  readonly more: boolean;
}

export interface MatureActivities {
  matureCommission(commissionId: string): Promise<'matured' | 'unchanged'>;
  sweepPage(): Promise<SweepPage>;
}

/** The activities of the hold and sweep workflows. */
export function createMatureActivities({
  sql,
  logger,
  sweepPage = SWEEP_PAGE,
}: MatureActivityDeps): MatureActivities {
  return {
    matureCommission: async (commissionId) =>
      (await matureCommission(sql, parseId('commission', commissionId))) ? 'matured' : 'unchanged',

    /** Matures one page of overdue commissions and closes one page of abandoned payout requests. */
    sweepPage: async () => {
      const matured = await matureOverdue(sql, sweepPage);
      const closed = await closeAbandonedRequests(sql, sweepPage);
      if (matured > 0) logger.info({ matured, msg: 'the sweep matured overdue commissions' });
      return { matured, more: matured === sweepPage || closed === sweepPage };
    },
  };
}
