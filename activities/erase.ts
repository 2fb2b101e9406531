import type { Logger } from 'pino';
import type { SecretBox } from '../src/config/secret-box.ts';
import { addErasedKeys, identifierHasher } from '../src/db/erased-identifiers.ts';
import {
  findOpenErasure,
  findWaitingDeliveries,
  finishErasure,
  repeatSearch,
  settleErasure,
} from '../src/db/erasures.ts';
import { addSubjectKeys } from '../src/db/erasure-state.ts';
import { eraseReprocessNames, eraseRows, findSearched } from '../src/db/erasure-rows.ts';
import { eraseDeliveries, findErasedTexts, searchDeliveries } from '../src/db/erasure-deliveries.ts';
import type { OpenErasure } from '../src/db/erasure-state.ts';
import type { SearchedDelivery, SearchedPage } from '../src/db/erasure-deliveries.ts';
import type { Sql } from '../src/db/sql.ts';
import {
  identifyingTexts,
  isOfOthers,
  namesOneOf,
  plainPartOf,
  textsOf,
  tiedKeys,
} from '../src/domain/erasure.ts';
import type { SubjectKey } from '../src/domain/erasure.ts';
import type { NormalizedEvent } from '../src/domain/events.ts';
import type { DeliveryId, ErasureId } from '../src/domain/ids.ts';
import { MINUTE_MS } from '../src/domain/time.ts';
import { workflowIdOf } from '../src/domain/workflow-id.ts';
import { eventIn } from '../src/providers/index.ts';
import { throwIfCancelled } from './cancellation.ts';
import { parseId } from './parse-id.ts';

export interface EraseActivityDeps {
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

/** Where an erasure is after a page. */
export interface ErasePage {
  readonly done: boolean;
  /** How long to wait before the next page. */
  readonly waitMs: number;
}

export interface EraseActivities {
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

/** Returns a function that returns the event of a delivery's body, or null. It reads each body once, when it is asked for. */
function eventReader(): (delivery: SearchedDelivery) => NormalizedEvent | null {
  const events = new Map<SearchedDelivery, NormalizedEvent | null>();
  return (delivery) => {
    const known = events.get(delivery);
    if (known !== undefined) return known;
    const { provider, body } = delivery;
    const event = body === null ? null : eventIn(provider, body);
    events.set(delivery, event);
    return event;
  };
}

/** What a page of a search needs to know of the person. */
interface PageSearch {
  readonly erasure: OpenErasure;
  readonly page: SearchedPage;
  readonly eventOf: (delivery: SearchedDelivery) => NormalizedEvent | null;
  readonly isPerson: (userId: string) => boolean;
}

/** The activity of the erase workflow. */
export function createEraseActivities(deps: EraseActivityDeps): EraseActivities {
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
      const history = isDone ? await deleteHistory(workflowIdOf('delivery', deliveryId)) : 'open';
      if (history === 'deleted') histories += 1;
      (history === 'open' ? waiting : done).push(deliveryId);
    }
    await eraseDeliveries(deps, erasure, { done, waiting, histories, position });
  }

  /**
   * Returns the deliveries whose bodies or rows name the person by a keyed hash, and the person's keys among their texts. The rows
   * of those keys follow with the next search.
   */
  async function namedByHash({
    erasure,
    page: { deliveries },
    eventOf,
    isPerson,
  }: PageSearch): Promise<{ named: SearchedDelivery[]; keys: SubjectKey[] }> {
    const textsOfEach = deliveries.map(({ body, userKeys }) => [
      ...(body === null ? [] : textsOf(body, Infinity)),
      ...userKeys,
    ]);
    const erased = await findErasedTexts(deps, erasure, [...new Set(textsOfEach.flat())]);
    const named: SearchedDelivery[] = [];
    const keys: SubjectKey[] = [];
    for (const [n, delivery] of deliveries.entries()) {
      if (textsOfEach[n]?.some((text) => erased.has(text)) !== true) continue;
      const { provider, body, userKeys } = delivery;
      const event = eventOf(delivery);
      const ofOthers = isOfOthers(event, isPerson);
      const texts = [...(body === null ? [] : identifyingTexts(body, event, Infinity)), ...userKeys];
      const own = texts.filter((text) => {
        const kinds = erased.get(text);
        return kinds !== undefined && (!ofOthers || kinds.has('user'));
      });
      if (own.length > 0) named.push(delivery);
      if (ofOthers) continue;
      const ownKeys = own.filter((text) => erased.get(text)?.has('key') === true);
      keys.push(...ownKeys.map((userKey) => ({ source: provider, userKey })));
    }
    await addSubjectKeys(deps, erasure, keys);
    return { named, keys };
  }

  /** Marks the keys that found deliveries tie to the person: the search runs again for those that are new. */
  async function followKeys(
    { erasure, eventOf, isPerson }: PageSearch,
    found: readonly SearchedDelivery[],
    keys: readonly SubjectKey[],
  ): Promise<void> {
    const known = new Set(keys.map(({ userKey }) => userKey));
    const tied = found.flatMap((delivery) => {
      const event = eventOf(delivery);
      const ofEvent = event === null ? [] : tiedKeys(event, isPerson, (key) => known.has(key));
      return ofEvent.map((userKey) => ({ source: delivery.provider, userKey }));
    });
    const added = new Map(
      tied.filter(({ userKey }) => !known.has(userKey)).map((key) => [`${key.source} ${key.userKey}`, key]),
    );
    await addErasedKeys(sql, deps.secretBox, erasure.appId, sql.fragment`${erasure.id}`, [...added.values()]);
  }

  /** Has the second search wait. */
  async function settle(erasure: OpenErasure): Promise<ErasePage> {
    await settleErasure(sql, erasure, settleMs);
    return { done: false, waitMs: settleMs };
  }

  /** Does the next part of an erasure. Returns whether the erasure is done, and how long the next part has to wait. */
  async function nextPart(erasureId: ErasureId): Promise<ErasePage> {
    const erasure = await findOpenErasure(deps, erasureId);
    if (erasure === undefined) return { done: true, waitMs: 0 };
    const { settlesAt, settlesInMs, scannedAt, byHash, appId } = erasure;
    // A clock that was wrong has stored this end: the wait begins again, so that no workflow sleeps for longer than it should.
    if (settlesInMs !== null && settlesInMs > settleMs) return await settle(erasure);
    if (settlesInMs !== null && settlesInMs > 0) return { done: false, waitMs: settlesInMs };
    // Both searches begin with the rows: the first after a request that died, the second after what was being written.
    const { keys, refs } =
      scannedAt === null ? await eraseRows(deps, erasure) : await findSearched(deps, erasure);
    const { customerUserId } = erasure.subject;
    const user = customerUserId === null ? [] : [customerUserId];
    const identifiers = [...user, ...keys.map(({ userKey }) => userKey)];
    const parts = identifiers.map(plainPartOf);
    const page = await searchDeliveries(deps, erasure, {
      refs,
      parts: byHash ? null : parts,
      limit: byHash ? PAGE_BY_HASH : PAGE,
      overlapMs: OVERLAP_MS,
    });
    const hash = await identifierHasher(sql, deps.secretBox);
    const isPerson = (userId: string) => hash(appId, userId).toString('hex') === erasure.userHash;
    const search = { erasure, page, eventOf: eventReader(), isPerson };
    const hashed = byHash ? await namedByHash(search) : { named: [], keys: [] };
    // A hash matches a whole text only. This search also finds an identifier inside a longer text. Another user's webhook does not
    // become the person's by a key in it.
    const plain = page.deliveries.filter((delivery) => {
      const { body } = delivery;
      if (body === null || !parts.some((part) => body.includes(part))) return false;
      const event = search.eventOf(delivery);
      return namesOneOf(body, event, isOfOthers(event, isPerson) ? user : identifiers);
    });
    const named = new Set([...hashed.named, ...plain]);
    const found = page.deliveries.filter((delivery) => delivery.isCertain || named.has(delivery));
    const allKeys = [...keys, ...hashed.keys];
    const { lastAt, lastId, hasRuns } = page;
    const searched = { ...erasure, subject: { customerUserId, keys: allKeys } };
    // A plan may have been stored after the first search, also if nothing was delivered since.
    if (hasRuns && (lastAt !== null || (settlesAt !== null && scannedAt === null))) {
      await eraseReprocessNames(deps, searched, { from: scannedAt ?? 0, to: lastAt });
    }
    if (lastAt !== null && lastId !== null) {
      await followKeys(search, found, allKeys);
      await eraseAll(erasure, found, { at: lastAt, id: lastId });
      return { done: false, waitMs: 0 };
    }
    if (await repeatSearch(sql, erasure)) return { done: false, waitMs: 0 };
    if (settlesAt === null) return await settle(erasure);
    await eraseAll(erasure, await findWaitingDeliveries(sql, erasureId), null);
    const left = await findWaitingDeliveries(sql, erasureId);
    if (left.length > 0) {
      logger.info({
        erasureId,
        waiting: left.length,
        msg: 'an erasure waits for deliveries without an outcome',
      });
      return { done: false, waitMs: settleMs };
    }
    const isDone = await finishErasure(sql, erasure);
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
