import { recordClick, recordClicks } from '../db/clicks.ts';
import type { ClickFact, RecordedClick } from '../db/clicks.ts';
import { isConnectionFailure } from '../db/sql.ts';
import type { Sql } from '../db/sql.ts';

/** Clicks that one statement records at most. */
const BATCH = 100;
/** Statements in flight at one time: the next one is prepared while another waits for its commit. */
const IN_FLIGHT = 2;

interface Waiter {
  readonly click: ClickFact;
  readonly resolve: (recorded: RecordedClick | undefined | Promise<RecordedClick | undefined>) => void;
  readonly reject: (error: unknown) => void;
}

/** Records a click. Resolves after its commit, with undefined when the link is unknown, inactive or its affiliate removed. */
export type ClickRecorder = (click: ClickFact) => Promise<RecordedClick | undefined>;

/**
 * Creates a recorder that shares statements: clicks that arrive while a statement runs wait and are recorded together by
 * the next one. So a click waits for at most two statements, and a lone one for none. Admission limits how many wait.
 */
export function createClickRecorder(sql: Sql): ClickRecorder {
  const waiting: Waiter[] = [];
  let inFlight = 0;

  /** Takes the clicks that waited longest. Those with a token that is in the batch already stay for the next one. */
  function takeBatch(): Waiter[] {
    const tokens = new Set<string>();
    const batch: Waiter[] = [];
    const left: Waiter[] = [];
    for (const waiter of waiting.splice(0)) {
      const token = `${waiter.click.appId} ${waiter.click.claimToken.toLowerCase()}`;
      if (batch.length === BATCH || tokens.has(token)) left.push(waiter);
      else batch.push(waiter);
      tokens.add(token);
    }
    waiting.push(...left);
    return batch;
  }

  async function record(batch: readonly Waiter[]): Promise<void> {
    try {
      const outcomes = await recordClicks(
        sql,
        batch.map(({ click }) => click),
      );
      for (const [index, { click, resolve }] of batch.entries()) {
        const outcome = outcomes[index] ?? 'again';
        if (outcome === 'again') resolve(recordClick(sql, click));
        else resolve(outcome === 'not_found' ? undefined : outcome);
      }
    } catch (error) {
      // A row that Postgres refuses must not fail the others. A database that is away fails all.
      for (const { click, resolve, reject } of batch) {
        if (batch.length === 1 || isConnectionFailure(error)) reject(error);
        else resolve(recordClick(sql, click));
      }
    }
  }

  function flush(): void {
    while (inFlight < IN_FLIGHT && waiting.length > 0) {
      inFlight += 1;
      void record(takeBatch()).finally(() => {
        inFlight -= 1;
        flush();
      });
    }
  }

  return async (click) =>
    await new Promise((resolve, reject) => {
      waiting.push({ click, resolve, reject });
      flush();
    });
}
