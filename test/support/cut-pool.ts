import { connect } from '../../src/db/sql.ts';
import type { Sql } from '../../src/db/sql.ts';
import { startProxy } from './cuttable-proxy.ts';

/** The mean time between two resets in a first attempt, ms: about as long as a delivery takes. It is longer in each further one. */
const MEAN_PAUSE_MS = 30;
/** More attempts than that mean that it fails for another reason. */
const MOST_ATTEMPTS = 30;

/** A pool whose connections are reset at random moments, in the middle of a statement or of its commit. It does not retry: its callers get the error. */
export interface CutPool {
  readonly sql: Sql;
  /** Runs `work` while connections are reset. Returns undefined if it failed. */
  readonly attempt: <T>(work: () => Promise<T>) => Promise<T | undefined>;
  /** The same, again after each failure, as Temporal does with an activity. */
  readonly untilDone: <T>(work: () => Promise<T>) => Promise<T>;
  /** How often `work` has failed. */
  readonly failures: () => number;
  readonly close: () => Promise<void>;
}

export async function startCutPool(databaseUrl: string): Promise<CutPool> {
  const proxy = await startProxy(databaseUrl);
  const sql = connect({ url: proxy.url, max: 4, patienceMs: 0, applicationName: 'cut' });
  let failures = 0;
  let last: unknown;
  /** Resets the connections again and again, until the function that it returns is called. */
  const resetting = (meanMs: number): (() => void) => {
    let timer: NodeJS.Timeout;
    const wait = () => {
      timer = setTimeout(
        () => {
          proxy.reset();
          wait();
        },
        2 * meanMs * Math.random(),
      );
    };
    wait();
    return () => clearTimeout(timer);
  };
  const attempt = async <T>(work: () => Promise<T>, number = 1): Promise<T | undefined> => {
    const end = resetting(MEAN_PAUSE_MS * number);
    try {
      return await work();
    } catch (error) {
      failures += 1;
      last = error;
      return undefined;
    } finally {
      end();
    }
  };
  return {
    sql,
    attempt,
    untilDone: async (work) => {
      for (let attempts = 1; attempts <= MOST_ATTEMPTS; attempts += 1) {
        const done = await attempt(async () => ({ result: await work() }), attempts);
        if (done !== undefined) return done.result;
      }
      throw new Error(`it failed ${MOST_ATTEMPTS} times in a row`, { cause: last });
    },
    failures: () => failures,
    close: async () => {
      await sql.close();
      await proxy.close();
    },
  };
}
