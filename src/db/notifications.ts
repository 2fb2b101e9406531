import { setTimeout as sleep } from 'node:timers/promises';
import postgres from 'postgres';
import { driverAddress } from '../config/database-url.ts';
import type { Sql } from './sql.ts';

/** The channels of `NOTIFY`. */
export type Channel = 'tributary_results';

/** Sends a payload to every process that listens, after everything that was committed before. */
export async function notify(sql: Sql, channel: Channel, payload: string): Promise<void> {
  await sql`select pg_notify(${channel}, ${payload})`;
}

/** `LISTEN` is repeated this often: it proves that the connection works, and subscribes a new one. */
const CHECK_MS = 5_000;
const RETRY_MS = 200;
const RESPOND_WITHIN_MS = 3_000;

export interface NotificationListener {
  /** Whether notifications arrive as far as is known. */
  readonly isListening: () => boolean;
  readonly stop: () => Promise<void>;
}

type Client = ReturnType<typeof postgres>;

/** Notifications of a connection. Not in the driver's types. */
function notificationOption(onNotify: (channel: string, payload: string) => void): object {
  return { onnotify: onNotify };
}

/**
 * Calls `onPayload` with every payload that a channel receives, on a connection of its own. A connection that dies or is
 * silent is replaced; payloads are lost until then, so callers need another source. The driver's own `listen` is not
 * used: it gives up when the database is unavailable while it subscribes again.
 */
export function listenTo(
  { url, channel }: { readonly url: string; readonly channel: Channel },
  onPayload: (payload: string) => void,
): NotificationListener {
  const { url: address, ssl } = driverAddress(url);
  const stopping = new AbortController();
  let isListening = false;
  let current: Client | undefined;
  let wake = new AbortController();

  function open(): Client {
    const client = postgres(address, {
      ssl,
      max: 1,
      idle_timeout: 0,
      max_lifetime: null,
      connect_timeout: 3,
      fetch_types: false,
      onnotice: () => {},
      connection: { application_name: 'tributary notifications' },
      ...notificationOption((name, payload) => {
        if (name === channel) onPayload(payload);
      }),
      onclose: () => {
        if (client !== current) return;
        isListening = false;
        wake.abort();
      },
    });
    return client;
  }

  async function subscribe(): Promise<boolean> {
    current ??= open();
    const client = current;
    const late = new AbortController();
    try {
      const subscribed = (async () => {
        await client.unsafe(`listen ${channel}`);
        const [row] = await client.unsafe("select current_setting('transaction_read_only') as read_only");
        // A server that was demoted sends nothing more; the name may lead to the new primary by now.
        return row?.['read_only'] === 'off';
      })();
      const isLate = sleep(RESPOND_WITHIN_MS, false, { signal: late.signal });
      if (await Promise.race([subscribed, isLate])) return true;
      subscribed.catch(() => {});
    } catch {
      // The connection failed, or the database refused it: the next attempt opens another.
    } finally {
      late.abort();
    }
    current = undefined;
    await client.end({ timeout: 0 }).catch(() => {});
    return false;
  }

  async function run(): Promise<void> {
    while (!stopping.signal.aborted) {
      wake = new AbortController();
      isListening = (await subscribe()) && !wake.signal.aborted;
      const signal = AbortSignal.any([stopping.signal, wake.signal]);
      if (isListening) await sleep(CHECK_MS, undefined, { signal }).catch(() => {});
      if (!isListening) await sleep(RETRY_MS, undefined, { signal: stopping.signal }).catch(() => {});
    }
  }

  const running = run();
  return {
    isListening: () => isListening,
    stop: async () => {
      stopping.abort();
      await running;
      isListening = false;
      const client = current;
      current = undefined;
      await client?.end({ timeout: 0 }).catch(() => {});
    },
  };
}
