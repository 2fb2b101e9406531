import { setImmediate as turn, setTimeout as sleep } from 'node:timers/promises';
import postgres from 'postgres';
import { driverAddress } from '../config/database-url.ts';
import { Connection, NoResponse } from './connection.ts';
import { socketOption } from './driver.ts';
import type { Sql } from './sql.ts';

/** The channels of `NOTIFY`. */
export type Channel = 'tributary_results';

/** Sends a payload to every process that listens, after everything that was committed before. */
export async function notify(sql: Sql, channel: Channel, payload: string): Promise<void> {
  await sql`select pg_notify(${channel}, ${payload})`;
}

/** `LISTEN` is repeated this often: it proves that the connection works, ms. */
const CHECK_MS = 5_000;
/** After this time without an answer another connection logs in, ms. The first one is kept until that one listens. */
const RESPOND_WITHIN_MS = 3_000;
/** How long a login and its first `LISTEN` may take, ms: one that began on a lost network never ends. */
const LOGIN_MS = 3_000;
/** One of several logins may take longer: on a machine without processor time it takes its time, ms. */
const PATIENT_LOGIN_MS = 30_000;
/** The pause after the first failure, ms. Each is twice as long as the one before, up to `LONGEST_PAUSE_MS`. */
const PAUSE_MS = 200;
const LONGEST_PAUSE_MS = 3_000;
/** Time is counted in steps of this length, ms. */
const STEP_MS = 100;

export interface NotificationListener {
  /** Whether notifications arrive as far as is known. */
  readonly isListening: () => boolean;
  readonly stop: () => Promise<void>;
}

export interface ListenOptions {
  readonly url: string;
  readonly channel: Channel;
  /** See `CHECK_MS`. */
  readonly checkMs?: number;
  /** See `RESPOND_WITHIN_MS`. */
  readonly respondWithinMs?: number;
}

/** Notifications of a connection. Not in the driver's types. */
function notificationOption(onNotify: (channel: string, payload: string) => void): object {
  return { onnotify: onNotify };
}

/**
 * Waits in the time of the event loop, which stands still while the loop is held up: what has arrived meanwhile is read first. Returns
 * early when the signal is aborted.
 */
async function waitInLoop(ms: number, signal: AbortSignal): Promise<void> {
  for (let leftMs = ms; leftMs > 0 && !signal.aborted;) {
    const before = performance.now();
    await sleep(Math.min(leftMs, STEP_MS), undefined, { signal }).catch(() => {});
    leftMs -= Math.min(performance.now() - before, 2 * STEP_MS);
    // After the answers that have arrived.
    await turn();
  }
}

/**
 * Calls `onPayload` with every payload that a channel receives, on a connection of its own. A connection that dies is replaced, and so
 * is a silent one as soon as another one listens: a slow database keeps it, because a login costs the server more than an answer.
 * Payloads are lost until then, so callers need another source. The driver's own `listen` is not used: it gives up when the database is
 * unavailable while it subscribes again.
 */
export function listenTo(
  { url, channel, checkMs = CHECK_MS, respondWithinMs = RESPOND_WITHIN_MS }: ListenOptions,
  onPayload: (payload: string) => void,
): NotificationListener {
  const { url: address, ssl } = driverAddress(url);
  const stopping = new AbortController();
  let isListening = false;
  let current: Connection | undefined;
  let pauseMs = PAUSE_MS;
  /** How long the next answer is waited for before another connection logs in, ms: longer where the last one took its time. */
  let patienceMs = respondWithinMs;
  /** Aborted when the current connection is closed. */
  let closed = new AbortController();

  function open(): Connection {
    let sockets = 0;
    const connection = new Connection((openSocket) =>
      postgres(address, {
        ssl,
        max: 1,
        ...socketOption((destination) => {
          sockets += 1;
          // The driver would log in again and again without a pause while a server closes its connections.
          if (sockets > destination.host.length) throw new NoResponse('the connection was closed');
          return openSocket(destination);
        }),
        idle_timeout: 0,
        max_lifetime: null,
        connect_timeout: PATIENT_LOGIN_MS / 1_000,
        fetch_types: false,
        onnotice: () => {},
        connection: { application_name: 'tributary notifications' },
        ...notificationOption((name, payload) => {
          if (name === channel) onPayload(payload);
        }),
        onclose: () => {
          connection.discard();
          if (connection !== current) return;
          isListening = false;
          closed.abort();
        },
      }),
    );
    return connection;
  }

  /** Waits after a failure, longer each time. */
  async function pause(signal: AbortSignal): Promise<void> {
    const ms = pauseMs;
    pauseMs = Math.min(LONGEST_PAUSE_MS, 2 * ms);
    await waitInLoop(ms, signal);
  }

  /** Logs in until a connection listens, and returns it. Undefined when the signal is aborted before. */
  async function logIn(signal: AbortSignal): Promise<Connection | undefined> {
    let found: Connection | undefined;
    const success = new AbortController();
    const ended = AbortSignal.any([signal, success.signal]);
    const attempt = async (withinMs: number): Promise<void> => {
      const connection = open();
      const answered = new AbortController();
      const isUp = waitInLoop(withinMs, AbortSignal.any([ended, answered.signal])).then(() => false);
      const listens = await Promise.race([listensOn(connection, channel), isUp]);
      answered.abort();
      if (listens && !ended.aborted) {
        found = connection;
        success.abort();
      } else {
        connection.discard();
      }
    };
    let patient: Promise<void> | undefined;
    while (!ended.aborted) {
      if (patient === undefined) {
        patient = attempt(PATIENT_LOGIN_MS).finally(() => {
          patient = undefined;
        });
        await Promise.race([patient, waitInLoop(LOGIN_MS, ended)]);
      } else {
        await attempt(LOGIN_MS);
      }
      if (!ended.aborted) await pause(ended);
    }
    return found;
  }

  /**
   * Returns a connection that listens: `connection` if it still works, or the first new one that listens before it has answered. Undefined
   * if `connection` has failed.
   */
  async function check(connection: Connection): Promise<Connection | undefined> {
    const answered = new AbortController();
    const askedAt = performance.now();
    const answer = listensOn(connection, channel).finally(() => {
      const tookMs = performance.now() - askedAt;
      patienceMs = Math.min(PATIENT_LOGIN_MS, Math.max(respondWithinMs, 2 * tookMs));
      answered.abort();
    });
    const signal = AbortSignal.any([stopping.signal, answered.signal]);
    await waitInLoop(patienceMs, signal);
    isListening &&= signal.aborted;
    const other = await logIn(signal);
    if (other !== undefined) return other;
    return stopping.signal.aborted || (await answer) ? connection : undefined;
  }

  async function run(): Promise<void> {
    while (!stopping.signal.aborted) {
      const before = current;
      const next = before === undefined ? await logIn(stopping.signal) : await check(before);
      if (next !== before) before?.discard();
      current = next?.isDiscarded === true ? undefined : next;
      isListening = current !== undefined;
      if (isListening) {
        closed = new AbortController();
        await sleep(checkMs, undefined, { signal: AbortSignal.any([stopping.signal, closed.signal]) }).catch(
          () => {},
        );
        if (!closed.signal.aborted) pauseMs = PAUSE_MS;
      }
      if (current === undefined || current.isDiscarded) {
        current = undefined;
        await pause(stopping.signal);
      }
    }
  }

  const running = run();
  return {
    isListening: () => isListening,
    stop: async () => {
      stopping.abort();
      await running;
      isListening = false;
      current?.discard();
    },
  };
}

/** Returns whether a connection listens on a server that accepts writes: one that was demoted sends nothing more. Never throws. */
async function listensOn({ client }: Connection, channel: Channel): Promise<boolean> {
  try {
    // Sent together: a slow server is waited for once.
    const [, [row]] = await Promise.all([
      client.unsafe(`listen ${channel}`),
      client.unsafe("select current_setting('transaction_read_only') as read_only"),
    ]);
    return row?.['read_only'] === 'off';
  } catch {
    return false;
  }
}
