import { listenTo, notify } from '../src/db/notifications.ts';
import { isRecover } from '../src/db/recovery.ts';
import type { Sql } from '../src/db/sql.ts';
import type { DeliveryOutcome } from '../src/domain/delivery.ts';
import type { DeliveryId, PayoutRequestId } from '../src/domain/ids.ts';

/** A result that another process may wait for. It holds ids only. */
export type SharedResult =
  | { readonly deliveryId: DeliveryId; readonly outcome: DeliveryOutcome }
  | { readonly payoutRequestId: PayoutRequestId };

const CHANNEL = 'tributary_results';

/**
 * Sends a result to the processes that listen, after its commit. It never fails: a lost result costs the one who waits
 * for it a look-up in Temporal.
 */
export function sendResult(sql: Sql, result: SharedResult): void {
  notify(sql, CHANNEL, JSON.stringify(result)).catch(() => {});
}

/** What happens with what arrives. */
export interface ResultHandlers {
  readonly onResult: (result: SharedResult) => void;
  /** Another process asks to recover (`askToRecover`). */
  readonly onRecover: () => void;
}

export interface ResultListener {
  /** Passes on what arrives from now on. */
  readonly passTo: (handlers: ResultHandlers) => void;
  /** Whether results of other processes arrive as far as is known. */
  readonly isListening: () => boolean;
  readonly stop: () => Promise<void>;
}

/** Listens to the results of other processes, and to the request to recover. */
export function listenToResults(databaseUrl: string): ResultListener {
  let handlers: ResultHandlers | undefined;
  const { isListening, stop } = listenTo({ url: databaseUrl, channel: CHANNEL }, (payload) => {
    const result = parse(payload);
    if (result === 'recover') handlers?.onRecover();
    else if (result !== null) handlers?.onResult(result);
  });
  const passTo = (given: ResultHandlers): void => {
    handlers = given;
  };
  return { passTo, isListening, stop };
}

/** Returns null for a payload of another version. */
function parse(payload: string): SharedResult | 'recover' | null {
  try {
    const result = JSON.parse(payload) as Partial<Record<string, unknown>> | null;
    if (isRecover(result)) return 'recover';
    const isKnown =
      (typeof result?.['deliveryId'] === 'string' && typeof result['outcome'] === 'object') ||
      typeof result?.['payoutRequestId'] === 'string';
    return isKnown ? (result as unknown as SharedResult) : null;
  } catch {
    return null;
  }
}
