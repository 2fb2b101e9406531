import type { Logger } from 'pino';
import { findPaymentsToRecheck } from '../src/db/payments.ts';
import { recordDuty } from '../src/db/duties.ts';
import { isDatabaseUnavailable } from '../src/db/errors.ts';
import { findConvertiblePayments } from '../src/db/rates.ts';
import type { Sql } from '../src/db/sql.ts';
import type { EvaluationLimits } from '../src/domain/evaluation.ts';
import { evaluateInTime } from './evaluate.ts';
import { parseId } from './parse-id.ts';
import type { WorkEvents } from './work-events.ts';

export interface ConvertActivityDeps extends Pick<WorkEvents, 'onCommissions' | 'onBindings'> {
  /** The operator's limits; the defaults of the domain if absent. */
  readonly limits?: EvaluationLimits | undefined;
  readonly sql: Sql;
  readonly logger: Logger;
  /** After which time a page begins no further payments, ms. */
  readonly convertPageMs?: number;
}

const PAGE = 50;
/** The position of a page of marked payments: until when they were marked, epoch ms. */
const MARKED_PAGE = /^marked:(\d+)$/;

/** Payments that waited for an exchange rate or another evaluation. */
export interface ConvertResult {
  readonly evaluated: number;
  /** Payments that failed, which stay unchanged, and searches that did. Each is logged. */
  readonly failed: number;
}

export interface ConvertPage extends ConvertResult {
  /** Where the next page begins; null after the last, and before the first. */
  readonly next: string | null;
}

export interface ConvertActivities {
  convertPage(after: string | null): Promise<ConvertPage>;
}

/** The activities of the convert workflow. */
export function createConvertActivities({
  sql,
  logger,
  limits,
  onCommissions,
  onBindings,
  convertPageMs,
}: ConvertActivityDeps): ConvertActivities {
  /** Runs one of the two searches. One that fails, such as one that takes too long, does not stop the payments of the other. */
  async function search<T>(what: string, find: () => Promise<readonly T[]>) {
    try {
      return { found: await find(), failure: null };
    } catch (error) {
      if (isDatabaseUnavailable(error)) throw error;
      logger.warn({ err: error, msg: `payments that ${what} were not found; a later run searches again` });
      return { found: [], failure: error };
    }
  }

  return {
    /**
     * Evaluates one page: first the marked payments, until none is left that was marked before the first page was read,
     * then those whose missing rate has arrived. Throws if it can find neither.
     */
    convertPage: async (after) => {
      const [, until] = after?.match(MARKED_PAGE) ?? [];
      const isMarkedPage = after === null || until !== undefined;
      const markedUntil = until === undefined ? null : Number(until);
      const recheck = async () =>
        isMarkedPage ? await findPaymentsToRecheck(sql, { markedUntil, limit: PAGE }) : [];
      const { found: marked, failure } = await search('wait for another evaluation', recheck);
      const moreMarked = marked.length === PAGE;
      const afterPayment = isMarkedPage ? null : parseId('payment', after);
      const convert = async () => (moreMarked ? [] : await findConvertiblePayments(sql, afterPayment, PAGE));
      const { found: ids, failure: convertFailure } = await search('have got their rate', convert);
      if (failure !== null && convertFailure !== null) throw failure;
      const failures = [failure, convertFailure].filter((each) => each !== null).length;
      const paymentIds = [...new Set([...marked.map(({ id }) => id), ...ids])];
      const deps = { sql, logger, limits, onCommissions, onBindings };
      const { evaluated, failed: unevaluated, done } = await evaluateInTime(deps, paymentIds, convertPageMs);
      const left = new Set(paymentIds.slice(done));
      const failed = unevaluated + failures;
      if (evaluated > 0)
        logger.info({
          evaluated,
          msg: 'payments that waited for an exchange rate or another evaluation were evaluated',
        });
      // There may be pages for hours. Where nothing but failures is left, the duty is not done.
      if (failures === 0 && (evaluated > 0 || unevaluated === 0)) await recordDuty(sql, 'conversions');
      const nextMarked = `marked:${markedUntil ?? marked[0]?.readAt}`;
      if (moreMarked || marked.some(({ id }) => left.has(id))) return { next: nextMarked, evaluated, failed };
      // Those with a rate come last, in the order of their positions. Only marked ones may have taken all the time.
      const firstLeft = ids.findIndex((id) => left.has(id));
      if (firstLeft !== -1) return { next: ids[firstLeft - 1] ?? nextMarked, evaluated, failed };
      return { next: ids.length === PAGE ? (ids.at(-1) ?? null) : null, evaluated, failed };
    },
  };
}
