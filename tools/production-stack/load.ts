import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { send } from './http.ts';
import type { Answer } from './http.ts';
import { click } from './story.ts';
import type { Shop } from './story.ts';

/** What clients of a shop have sent and received. */
export interface LoadResult {
  readonly clients: number;
  readonly seconds: number;
  readonly purchases: number;
  /** The claim tokens of the clicks. */
  readonly clicked: readonly string[];
  /** How often a client sent something again. */
  readonly retries: number;
  /** The number of responses by request and status. */
  readonly counts: ReadonlyMap<string, number>;
  /** Answers that no client may get, and connections that failed. */
  readonly bad: string[];
}

/** How long a client tries one thing again, as providers do for days. */
const MOST_MS = 90_000;

/**
 * Starts clients that send webhooks, clicks, reads and exports, as providers and clients do: again after a 503, a 502, or a failed
 * connection. Returns a function that ends them.
 */
export function startLoad(shop: Shop, clients: number): () => Promise<LoadResult> {
  const { base, appId, key, users, exportRoute, purchase } = shop;
  const startedAt = Date.now();
  const counts = new Map<string, number>();
  const bad: string[] = [];
  const clicked: string[] = [];
  let [purchases, retries] = [0, 0];
  const state = { isRunning: true };
  const count = (name: string, { status, retryAfter, text }: Answer) => {
    counts.set(`${name} ${status}`, (counts.get(`${name} ${status}`) ?? 0) + 1);
    if (status >= 500 && !(status === 503 && retryAfter !== undefined)) bad.push(`${name} ${status} ${text}`);
  };
  const untilDone = async (name: string, attempt: () => Promise<Answer>) => {
    const until = Date.now() + MOST_MS;
    for (;;) {
      const answer = await attempt().catch((error: unknown) => {
        bad.push(`${name}: the connection failed: ${String(error)}`);
        return undefined;
      });
      if (answer !== undefined) count(name, answer);
      if (answer !== undefined && answer.status < 500) return;
      if (Date.now() > until) throw new Error(`${name} failed for ${MOST_MS / 1_000} s`);
      retries += 1;
      await sleep(200);
    }
  };
  const authorization = `Bearer ${key}`;
  const turns = async (turn: number) => {
    switch (turn % 6) {
      case 0:
      case 1:
      case 2: {
        const user = users[turn % users.length] ?? '';
        purchases += 1;
        await untilDone('webhook', purchase(user));
        break;
      }
      case 3: {
        const claimToken = randomUUID();
        await untilDone('click', async () => await click(base, appId, claimToken));
        clicked.push(claimToken);
        break;
      }
      case 4: {
        const headers = { authorization };
        await untilDone('read', async () => await send(base, 'GET', `/apps/${appId}/overview`, { headers }));
        break;
      }
      default: {
        const headers = { authorization, 'idempotency-key': randomUUID() };
        await untilDone('export', async () => await send(base, 'POST', exportRoute, { headers }));
      }
    }
  };
  const client = async (n: number) => {
    for (let turn = n; state.isRunning; turn += 1) await turns(turn);
  };
  const running = Array.from({ length: clients }, async (_, n) => await client(n));
  return async () => {
    state.isRunning = false;
    await Promise.all(running);
    const seconds = (Date.now() - startedAt) / 1_000;
    return { clients, seconds, purchases, clicked, retries, counts, bad };
  };
}
