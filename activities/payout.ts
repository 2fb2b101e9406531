import type { Logger } from 'pino';
import { findPayoutRequest, findWaitingRequests, settlePayoutRequest } from '../src/db/payout-requests.ts';
import { storePayoutCsv } from '../src/db/payout-csv.ts';
import { inSpan } from '../src/config/tracing.ts';
import type { Sql } from '../src/db/sql.ts';
import { isId } from '../src/domain/ids.ts';
import type { PayoutRequestId } from '../src/domain/ids.ts';
import type { WorkEvents } from './work-events.ts';

export interface PayoutActivityDeps extends Pick<WorkEvents, 'onSettled'> {
  readonly sql: Sql;
  readonly logger: Logger;
}

/** The most other requests that are settled with one, and the time after which no further one begins, ms. */
const OTHER_REQUESTS = 50;
const OTHER_REQUESTS_MS = 3_000;

export interface PayoutActivities {
  settlePayoutRequest(requestId: string): Promise<string>;
}

/** The activities of the payout workflow. */
export function createPayoutActivities({ sql, logger, onSettled }: PayoutActivityDeps): PayoutActivities {
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
