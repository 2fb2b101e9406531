import type { Logger } from 'pino';
import {
  closeAbandonedRequests,
  findPayoutRequest,
  matureCommission,
  matureOverdue,
  settlePayoutRequest,
} from '../src/db/ledger.ts';
import { storePayoutCsv } from '../src/db/payout-csv.ts';
import { inSpan } from '../src/config/tracing.ts';
import type { Sql } from '../src/db/sql.ts';
import { isId } from '../src/domain/ids.ts';
import type { PayoutRequestId } from '../src/domain/ids.ts';
import type { SweepPage } from '../src/domain/workflow-contracts.ts';
import { parseId } from './parse-id.ts';

export interface LedgerActivityDeps {
  readonly sql: Sql;
  readonly logger: Logger;
  /** Commissions that one page of a sweep matures; 1,000 by default. */
  readonly sweepPage?: number;
  /** Called after the commit of a payout request's outcome. */
  readonly onSettled: (requestId: PayoutRequestId) => void;
}

/** Commissions that one page of a sweep matures, in one statement. */
export const SWEEP_PAGE = 1_000;

export interface LedgerActivities {
  matureCommission(commissionId: string): Promise<'matured' | 'unchanged'>;
  sweepPage(): Promise<SweepPage>;
  settlePayoutRequest(requestId: string): Promise<string>;
}

/** The activities of the hold, sweep and payout workflows. */
export function createLedgerActivities({
  sql,
  logger,
  onSettled,
  sweepPage = SWEEP_PAGE,
}: LedgerActivityDeps): LedgerActivities {
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

    settlePayoutRequest: async (id) => {
      // A signal sent by hand may contain anything and must not fail the workflow.
      if (typeof id !== 'string' || !isId('payoutRequest', id)) return 'unknown';
      const requestId: PayoutRequestId = id;
      await inSpan('settlePayoutRequest', {}, async () => await settlePayoutRequest(sql, requestId));
      const request = await findPayoutRequest(sql, requestId);
      if (request?.payoutId) await storePayoutCsv(sql, request.appId, request.payoutId);
      onSettled(requestId);
      logger.info({
        payoutRequestId: requestId,
        status: request?.status,
        payoutId: request?.payoutId,
        msg: 'payout request settled',
      });
      return request?.status ?? 'unknown';
    },
  };
}
