import type { Client } from './connection.ts';
import { NoResponse } from './connection.ts';
import { sendStatement } from './driver.ts';
import type { Send } from './driver.ts';

/** What a transaction came to. An error leaves the connection usable: the transaction was rolled back. */
export type Outcome<T> = { readonly result: T } | { readonly error: unknown };

/** How long a transaction may wait for this process between two statements, ms. Then Postgres ends it and frees its locks. */
export const IDLE_IN_TRANSACTION_MS = 10_000;

/**
 * Runs `work` in a transaction of a connection. `begin` starts it, `hold` keeps the driver from replacing the connection: on a
 * new one, the rest of the work would run outside of the transaction. Throws if the connection failed; whether the transaction
 * was committed is then unknown.
 */
export async function runTransaction<T>(
  client: Client,
  { begin, hold }: { readonly begin: string; readonly hold: () => void },
  work: (send: Send) => Promise<T>,
): Promise<Outcome<T>> {
  let isBusy = false;
  let hasEnded = false;
  const send: Send = async (...statement) => {
    if (isBusy) throw new Error('a transaction runs one statement at a time: await each');
    if (hasEnded) throw new Error('the transaction has ended: its statements cannot be used any more');
    isBusy = true;
    try {
      return await sendStatement(client, ...statement);
    } finally {
      isBusy = false;
    }
  };
  let result: T;
  try {
    await client.unsafe(begin);
    hold();
    result = await work(send);
    if (isBusy) throw new Error('a transaction ended before one of its statements: await each');
  } catch (error) {
    hasEnded = true;
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
