import type { Logger } from 'pino';
import type { SecretBox } from '../src/config/secret-box.ts';
import {
  addSubjectKeys,
  eraseDeliveries,
  eraseReprocessNames,
  eraseRows,
  findErasedTexts,
  findOpenErasure,
  findWaitingDeliveries,
  finishErasure,
  searchDeliveries,
  settleErasure,
} from '../src/db/erasures.ts';
import type { OpenErasure, SearchedDelivery } from '../src/db/erasures.ts';
import type { Sql } from '../src/db/sql.ts';
import { namesOneOf, plainPartOf, textsOf } from '../src/domain/erasure.ts';
import type { DeliveryId, ErasureId } from '../src/domain/ids.ts';
import { MINUTE_MS } from '../src/domain/time.ts';
import type { ErasePage } from '../src/domain/workflow-contracts.ts';
import { workflowIds } from '../src/domain/workflow-ids.ts';
import { throwIfCancelled } from './cancellation.ts';
import { parseId } from './parse-id.ts';

export interface ErasureActivityDeps {
  readonly sql: Sql;
  readonly secretBox: SecretBox;
  readonly logger: Logger;
  /**
   * Deletes the history of a closed workflow. Returns `open` for one that still runs, which is left alone, and `absent` for one
   * that Temporal does not have.
   */
  readonly deleteHistory: (workflowId: string) => Promise<'deleted' | 'open' | 'absent'>;
  /** How long the second search waits, ms: longer than any statement that was running at the request. A minute by default. */
  readonly settleMs?: number | undefined;
}

export interface ErasureActivities {
  erasePage(erasureId: string): Promise<ErasePage>;
}

/** Deliveries of one page. */
const PAGE = 500;
/** The same when all their bodies are read. */
const PAGE_BY_HASH = 100;
/** How long one run of the activity goes on with the next part, ms. */
const PARTS_MS = 1_000;
/** How far back the second search goes. No statement and no delivery's receipt takes longer. */
const OVERLAP_MS = 5 * MINUTE_MS;

/** The activity of the erase workflow. */
export function createErasureActivities(deps: ErasureActivityDeps): ErasureActivities {
  const { sql, logger, deleteHistory, settleMs = MINUTE_MS } = deps;

  /** Removes the bodies and histories of the person's deliveries. Those without an outcome wait, and those that still run. */
  async function eraseAll(
    erasure: OpenErasure,
    found: readonly Pick<SearchedDelivery, 'deliveryId' | 'isDone'>[],
    position: { readonly at: number; readonly id: DeliveryId } | null,
  ): Promise<void> {
    let histories = 0;
    const done: DeliveryId[] = [];
    const waiting: DeliveryId[] = [];
    for (const { deliveryId, isDone } of found) {
      throwIfCancelled();
      const history = isDone ? await deleteHistory(workflowIds.delivery(deliveryId)) : 'open';
      if (history === 'deleted') histories += 1;
      (history === 'open' ? waiting : done).push(deliveryId);
    }
    await eraseDeliveries(deps, erasure, { done, waiting, histories, position });
  }

  /**
   * Returns the deliveries whose bodies or rows name the person by a keyed hash. The rows of the keys that they name follow with
   * the next search.
   */
  async function namedByHash(
    erasure: OpenErasure,
    deliveries: readonly SearchedDelivery[],
  ): Promise<SearchedDelivery[]> {
    const textsOfEach = deliveries.map(({ body, userKeys }) => [
      ...(body === null ? [] : textsOf(body, Infinity)),
      ...userKeys,
    ]);
    const erased = await findErasedTexts(deps, erasure, [...new Set(textsOfEach.flat())]);
    const keys = deliveries.flatMap(({ provider }, n) =>
      (textsOfEach[n] ?? [])
        .filter((text) => erased.get(text) === 'key')
        .map((userKey) => ({ source: provider, userKey })),
    );
    await addSubjectKeys(deps, erasure, keys);
    return deliveries.filter((_, n) => textsOfEach[n]?.some((text) => erased.has(text)));
  }

  /** Does the next part of an erasure. Returns whether the erasure is done, and how long the next part has to wait. */
  async function nextPart(erasureId: ErasureId): Promise<ErasePage> {
    const erasure = await findOpenErasure(deps, erasureId);
    if (erasure === undefined) return { done: true, waitMs: 0 };
    const { settlesAt, scannedAt } = erasure;
    if (settlesAt !== null && settlesAt > Date.now()) {
      return { done: false, waitMs: settlesAt - Date.now() };
    }
    // Both searches begin with the rows: the first after a request that died, the second after what was being written.
    if (scannedAt === null) await eraseRows(deps, erasure);
    const current = (await findOpenErasure(deps, erasureId)) ?? erasure;
    const { customerUserId, keys } = current.subject;
    const identifiers = [
      ...(customerUserId === null ? [] : [customerUserId]),
      ...keys.map(({ userKey }) => userKey),
    ];
    const page = await searchDeliveries(deps, current, {
      parts: current.byHash ? null : identifiers.map(plainPartOf),
      limit: current.byHash ? PAGE_BY_HASH : PAGE,
      overlapMs: OVERLAP_MS,
    });
    const hashed = current.byHash ? await namedByHash(current, page.deliveries) : [];
    // Hashes find whole texts only, these also what stands within a longer text.
    const plain = page.deliveries.filter(({ body }) => body !== null && namesOneOf(body, identifiers));
    const named = [...hashed, ...plain];
    const { lastAt, lastId } = page;
    if (lastAt !== null && lastId !== null) {
      if (page.hasRuns) {
        // The page itself may have added keys.
        const searching = current.byHash ? ((await findOpenErasure(deps, erasureId)) ?? current) : current;
        await eraseReprocessNames(deps, searching, { from: current.scannedAt ?? 0, to: lastAt });
      }
      const all = new Set(named);
      const found = page.deliveries.filter((delivery) => delivery.isCertain || all.has(delivery));
      await eraseAll(current, found, { at: lastAt, id: lastId });
      return { done: false, waitMs: 0 };
    }
    if (settlesAt === null) {
      await settleErasure(sql, current, Date.now() + settleMs);
      return { done: false, waitMs: settleMs };
    }
    await eraseAll(current, await findWaitingDeliveries(sql, erasureId), null);
    const left = await findWaitingDeliveries(sql, erasureId);
    if (left.length > 0) {
      logger.info({
        erasureId,
        waiting: left.length,
        msg: 'an erasure waits for deliveries without an outcome',
      });
      return { done: false, waitMs: settleMs };
    }
    await finishErasure(sql, current);
    const isDone = (await findOpenErasure(deps, erasureId)) === undefined;
    if (isDone) logger.info({ erasureId, msg: 'an erasure is complete' });
    return { done: isDone, waitMs: 0 };
  }

  return {
    /** Does the next parts of an erasure, for about a second: a task of a worker costs more than most parts. */
    erasePage: async (id) => {
      const erasureId = parseId('erasure', id);
      const endsAt = performance.now() + PARTS_MS;
      for (;;) {
        throwIfCancelled();
        const part = await nextPart(erasureId);
        if (part.done || part.waitMs > 0 || performance.now() > endsAt) return part;
      }
    },
  };
}
