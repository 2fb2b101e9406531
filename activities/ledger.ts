import type { Logger } from 'pino';
import {
  closeAbandonedRequests,
  findPayoutRequest,
  findWaitingRequests,
  settlePayoutRequest,
} from '../src/db/payout-requests.ts';
import { matureCommission, matureOverdue } from '../src/db/maturing.ts';
import { storePayoutCsv } from '../src/db/payout-csv.ts';
import { inSpan } from '../src/config/tracing.ts';
import type { Sql } from '../src/db/sql.ts';
import { isId } from '../src/domain/ids.ts';
import type { PayoutRequestId } from '../src/domain/ids.ts';
import { parseId } from './parse-id.ts';
import type { WorkEvents } from './work-events.ts';

export interface LedgerActivityDeps extends Pick<WorkEvents, 'onSettled'> {
  readonly sql: Sql;
  readonly logger: Logger;
  /** Commissions that one page of a sweep matures; 1,000 by default. */
  readonly sweepPage?: number;
}

/** Commissions that one page of a sweep matures, in one statement. */
export const SWEEP_PAGE = 1_000;

/** The most other requests that are settled with one, and the time after which no further one begins, ms. */
const OTHER_REQUESTS = 50;
const OTHER_REQUESTS_MS = 3_000;

/** What one page of a sweep did. */
export interface SweepPage {
  readonly matured: number;
  /** Whether overdue commissions or abandoned payout requests may remain. */
  readonly more: boolean;
}

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
  const settle = async (requestId: PayoutRequestId) => {
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
  };
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

    /**
     * Settles a request, and then those for the same affiliate that still wait. After an overload, a workflow may have more
     * signals of requests that were given up than it can work off while a caller waits: a caller must not wait behind them.
     */
    settlePayoutRequest: async (id) => {
      // A signal sent by hand may contain anything and must not fail the workflow.
      if (typeof id !== 'string' || !isId('payoutRequest', id)) return 'unknown';
      const startedAt = performance.now();
      const status = await settle(id);
      for (const other of await findWaitingRequests(sql, id, OTHER_REQUESTS)) {
        if (performance.now() - startedAt > OTHER_REQUESTS_MS) break;
        await settle(other);
      }
      return status;
    },
  };
}
