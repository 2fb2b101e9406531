import type { Logger } from 'pino';
import {
  closeAbandonedRequests,
  findPayoutRequest,
  matureCommission,
  matureOverdue,
  settlePayoutRequest,
} from '../src/db/ledger.ts';
import { storePayoutCsvHash } from '../src/db/payout-csv.ts';
import type { Sql } from '../src/db/sql.ts';
import { isId } from '../src/domain/ids.ts';
import type { PayoutRequestId } from '../src/domain/ids.ts';
import { parseId } from './parse-id.ts';

export interface LedgerActivityDeps {
  readonly sql: Sql;
  readonly logger: Logger;
  /** Called after the commit of a payout request's outcome. */
  readonly onSettled: (requestId: PayoutRequestId) => void;
}

/** Commissions that one statement matures. */
const SWEEP_PAGE = 1_000;
/** Pages of one sweep; the next sweep continues. */
const SWEEP_PAGES = 100;

export interface LedgerActivities {
  matureCommission(commissionId: string): Promise<'matured' | 'unchanged'>;
  sweepOverdue(): Promise<number>;
  settlePayoutRequest(requestId: string): Promise<string>;
}

/** The activities of the hold, sweep and payout workflows. */
export function createLedgerActivities({ sql, logger, onSettled }: LedgerActivityDeps): LedgerActivities {
  return {
    matureCommission: async (commissionId) =>
      (await matureCommission(sql, parseId('commission', commissionId))) ? 'matured' : 'unchanged',

    sweepOverdue: async () => {
      let matured = 0;
      for (let page = 0; page < SWEEP_PAGES; page += 1) {
        const count = await matureOverdue(sql, SWEEP_PAGE);
        matured += count;
        if (count < SWEEP_PAGE) break;
      }
      await closeAbandonedRequests(sql);
      if (matured > 0) logger.info({ matured, msg: 'the sweep matured overdue commissions' });
      return matured;
    },

    settlePayoutRequest: async (id) => {
      // A signal sent by hand may contain anything and must not fail the workflow.
      if (typeof id !== 'string' || !isId('payoutRequest', id)) return 'unknown';
      const requestId: PayoutRequestId = id;
      await settlePayoutRequest(sql, requestId);
      const request = await findPayoutRequest(sql, requestId);
      if (request?.payoutId) await storePayoutCsvHash(sql, request.appId, request.payoutId);
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
