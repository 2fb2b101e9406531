import { ApplicationFailure, ApplicationFailureCategory } from '@temporalio/common';
import type { Logger } from 'pino';
import { findPaymentsToRecheck, loadPayments } from '../src/db/payments.ts';
import type { NewCommission } from '../src/db/payments.ts';
import { findConvertiblePayments, importRates } from '../src/db/rates.ts';
import { isConnectionFailure } from '../src/db/sql.ts';
import type { Sql } from '../src/db/sql.ts';
import { fetchRatesFile, RatesAddressWrong, RatesUnavailable } from '../src/rates/fetch-rates.ts';
import { readRatesFile } from '../src/rates/read-rates-file.ts';
import type { EvaluationLimits } from '../src/domain/evaluate-payment.ts';
import type { ConvertPage, RatesResult } from '../src/domain/workflow-contracts.ts';
import { evaluateAndApply } from './evaluate.ts';
import { parseId } from './parse-id.ts';

export interface RatesActivityDeps {
  /** The operator's limits; the defaults of the domain if absent. */
  readonly limits?: EvaluationLimits | undefined;
  readonly sql: Sql;
  readonly logger: Logger;
  /** Address of the daily file; null when none is fetched. */
  readonly ratesUrl: string | null;
  readonly onCommissions: (commissions: readonly NewCommission[]) => void;
}

const PAGE = 50;

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
     * Evaluates one page of payments; the first page also those that an alias marked. A payment that fails is logged
     * and does not stop the others.
     */
    convertPage: async (after) => {
      const ids = await findConvertiblePayments(sql, after === null ? null : parseId('payment', after), PAGE);
      const marked = after === null ? await findPaymentsToRecheck(sql, 0, PAGE) : [];
      const paymentIds = [...new Set([...marked, ...ids])];
      const payments = paymentIds.length === 0 ? [] : await loadPayments(sql, { paymentIds });
      let failed = 0;
      for (const payment of payments) {
        try {
          onCommissions((await evaluateAndApply(sql, payment, null, { limits })).commissions);
        } catch (error) {
          if (isConnectionFailure(error)) throw error;
          failed += 1;
          const { paymentId } = payment;
          logger.error({
            paymentId,
            err: error,
            msg: 'a payment that waited for an exchange rate or another evaluation could not be evaluated',
          });
        }
      }
      const evaluated = payments.length - failed;
      if (evaluated > 0)
        logger.info({
          evaluated,
          msg: 'payments that waited for an exchange rate or another evaluation were evaluated',
        });
      return { next: ids.length === PAGE ? (ids.at(-1) ?? null) : null, evaluated, failed };
    },
  };
}
