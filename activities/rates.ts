import { ApplicationFailure, ApplicationFailureCategory } from '@temporalio/common';
import type { Logger } from 'pino';
import { recordDuty } from '../src/db/duties.ts';
import { importRates } from '../src/db/rates.ts';
import type { Sql } from '../src/db/sql.ts';
import { fetchRatesFile, RatesAddressWrong, RatesUnavailable } from '../src/rates/fetch-rates.ts';
import { readRatesFile } from '../src/rates/read-rates-file.ts';

export interface RatesActivityDeps {
  readonly sql: Sql;
  readonly logger: Logger;
  /** Address of the daily file; null when none is fetched. */
  readonly ratesUrl: string | null;
}

/** What a fetch of exchange rates found, in rates; `off` when no address is configured. */
export type RatesResult =
  | { readonly status: 'off' }
  | {
      readonly status: 'imported';
      readonly rates: number;
      readonly added: number;
      readonly changed: number;
      readonly kept: number;
    };

export interface RatesActivities {
  fetchRates(): Promise<RatesResult>;
}

/** The activities of the rates workflow. */
export function createRatesActivities({ sql, logger, ratesUrl }: RatesActivityDeps): RatesActivities {
  return {
    fetchRates: async () => {
      if (ratesUrl === null) return { status: 'off' };
      try {
        const file = readRatesFile(await fetchRatesFile(ratesUrl), Date.now());
        const imported = await importRates(sql, file);
        await recordDuty(sql, 'rates');
        logger.info({ rates: file.rates.length, ...imported, msg: 'exchange rates imported' });
        return { status: 'imported', rates: file.rates.length, ...imported };
      } catch (error) {
        if (!(error instanceof RatesUnavailable)) throw error;
        const nonRetryable = error instanceof RatesAddressWrong;
        const message = nonRetryable ? `${error.message} Fix RATES_URL.` : error.message;
        logger.warn({ msg: `exchange rates not fetched: ${message} Sales in US dollars need none.` });
        // Benign: the SDK would log a stack of this code, which says nothing about the bank's server.
        throw ApplicationFailure.create({
          message,
          type: error.name,
          nonRetryable,
          category: ApplicationFailureCategory.BENIGN,
        });
      }
    },
  };
}
