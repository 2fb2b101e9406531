import { ApplicationFailure, ApplicationFailureCategory } from '@temporalio/common';
import type { Logger } from 'pino';
import { findPaymentsToRecheck } from '../src/db/payments.ts';
import { findConvertiblePayments, importRates } from '../src/db/rates.ts';
import type { Sql } from '../src/db/sql.ts';
import { fetchRatesFile, RatesAddressWrong, RatesUnavailable } from '../src/rates/fetch-rates.ts';
import { readRatesFile } from '../src/rates/read-rates-file.ts';
import type { EvaluationLimits } from '../src/domain/evaluation.ts';
import type { ConvertPage, RatesResult } from '../src/domain/workflow-contracts.ts';
import { evaluateEach } from './evaluate.ts';
import { parseId } from './parse-id.ts';
import type { WorkEvents } from './work-events.ts';

export interface RatesActivityDeps extends Pick<WorkEvents, 'onCommissions'> {
  /** The operator's limits; the defaults of the domain if absent. */
  readonly limits?: EvaluationLimits | undefined;
  readonly sql: Sql;
  readonly logger: Logger;
  /** Address of the daily file; null when none is fetched. */
  readonly ratesUrl: string | null;
}

const PAGE = 50;
/** The position of a page of marked payments: until when they were marked, epoch ms. */
const MARKED_PAGE = /^marked:(\d+)$/;

export interface RatesActivities {
  fetchRates(): Promise<RatesResult>;
  convertPage(after: string | null): Promise<ConvertPage>;
}

/** The activities of the rates and convert workflows. */
export function createRatesActivities({
  sql,
  logger,
  limits,
  ratesUrl,
  onCommissions,
}: RatesActivityDeps): RatesActivities {
  return {
    fetchRates: async () => {
      if (ratesUrl === null) return { status: 'off' };
      try {
        const file = readRatesFile(await fetchRatesFile(ratesUrl), Date.now());
        const imported = await importRates(sql, file);
        logger.info({ rates: file.rates.length, ...imported, msg: 'exchange rates imported' });
        return { status: 'imported', rates: file.rates.length, ...imported };
      } catch (error) {
        if (!(error instanceof RatesUnavailable)) throw error;
        const nonRetryable = error instanceof RatesAddressWrong;
        const message = nonRetryable ? `${error.message} Fix RATES_URL.` : error.message;
        logger.warn({ msg: `exchange rates not fetched: ${message}` });
        // Benign: the SDK would log a stack of this code, which says nothing about the bank's server.
        throw ApplicationFailure.create({
          message,
          type: error.name,
          nonRetryable,
          category: ApplicationFailureCategory.BENIGN,
        });
      }
    },

    /**
     * Evaluates one page: first the marked payments, until none is left that was marked before the first page was read,
     * then those whose missing rate has arrived.
     */
    convertPage: async (after) => {
      const [, until] = after?.match(MARKED_PAGE) ?? [];
      const isMarkedPage = after === null || until !== undefined;
      const markedUntil = until === undefined ? null : Number(until);
      const marked = isMarkedPage ? await findPaymentsToRecheck(sql, { markedUntil, limit: PAGE }) : [];
      const moreMarked = marked.length === PAGE;
      const afterPayment = isMarkedPage ? null : parseId('payment', after);
      const ids = moreMarked ? [] : await findConvertiblePayments(sql, afterPayment, PAGE);
      const paymentIds = [...new Set([...marked.map(({ id }) => id), ...ids])];
      const { evaluated, failed } = await evaluateEach({ sql, logger, limits, onCommissions }, paymentIds);
      if (evaluated > 0)
        logger.info({
          evaluated,
          msg: 'payments that waited for an exchange rate or another evaluation were evaluated',
        });
      const nextMarked = moreMarked ? `marked:${markedUntil ?? marked[0]?.readAt}` : null;
      return { next: nextMarked ?? (ids.length === PAGE ? (ids.at(-1) ?? null) : null), evaluated, failed };
    },
  };
}
