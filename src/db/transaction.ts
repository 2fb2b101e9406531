import { isAnswer, NoResponse } from './connection.ts';
import type { Client } from './connection.ts';
import { sendStatement } from './driver.ts';
import type { Send } from './driver.ts';

/** What a transaction came to. An error leaves the connection usable: the transaction was rolled back. */
export type Outcome<T> = { readonly result: T } | { readonly error: unknown };

/** How long a transaction may wait for this process between two statements, ms. Then Postgres ends it and frees its locks. */
export const IDLE_IN_TRANSACTION_MS = 10_000;

/**
 * Runs `work` in a transaction of a connection. `begin` starts it, `hold` keeps the driver from replacing the connection: on a
 * new one, the rest of the work would run outside of the transaction. Throws if the connection failed, or if Postgres refused the
 * commit. Whether the transaction was committed is unknown if the connection failed.
 */
export async function runTransaction<T>(
  client: Client,
  { begin, hold }: { readonly begin: string; readonly hold: () => void },
  work: (send: Send) => Promise<T>,
): Promise<Outcome<T>> {
  let isBusy = false;
  let hasEnded = false;
  /** Why the connection has failed. It gets no other statement, because the driver would wait for its answer for ever. */
  let lost: { readonly error: unknown } | undefined;
  const answered = async <R>(sent: PromiseLike<R>): Promise<R> => {
    try {
      return await sent;
    } catch (error) {
      if (!isAnswer(error)) lost = { error };
      throw error;
    }
  };
  const send: Send = async (...statement) => {
    if (isBusy) throw new Error('a transaction runs one statement at a time: await each');
    if (hasEnded) throw new Error('the transaction has ended: its statements cannot be used any more');
    if (lost !== undefined) throw lost.error;
    isBusy = true;
    try {
      return await answered(sendStatement(client, ...statement));
    } finally {
      isBusy = false;
    }
  };
  let result: T;
  try {
    await answered(client.unsafe(begin));
    hold();
    result = await work(send);
    if (isBusy) throw new Error('a transaction ended before one of its statements: await each');
    if (lost !== undefined) throw lost.error;
  } catch (error) {
    hasEnded = true;
    // The end of the connection rolls back.
    if (lost !== undefined) throw lost.error;
    try {
      await client.unsafe('rollback');
    } catch {
      throw new NoResponse('the connection of a transaction failed', { cause: error });
    }
    return { error };
  }
  hasEnded = true;
  const { command } = await client.unsafe('commit');
  // Postgres answers to the commit of a failed transaction that it was rolled back, without an error.
  if (command !== 'COMMIT')
    return { error: new Error('a transaction went on after one of its statements had failed') };
  return { result };
}
