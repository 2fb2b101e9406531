import type { DeliveryId } from '../domain/ids.ts';
import { identifierHasher } from './erased-identifiers.ts';
import { instant } from './sql.ts';
import { usersOf, addedCounts } from './erasure-state.ts';
import type { ErasureDeps, OpenErasure } from './erasure-state.ts';

/** How much of the stored webhooks a page reads beside its last one: a process and Postgres have to hold it at once. */
const PAGE_BYTES = 8 * 2 ** 20;

/** A delivery that may name the person. */
export interface SearchedDelivery {
  readonly deliveryId: DeliveryId;
  readonly provider: string;
  /** Null when it was removed, or is encrypted. */
  readonly body: Buffer | null;
  /** The provider's keys of its payment, if all bodies are read. */
  readonly userKeys: readonly string[];
  /** Whether the event of the delivery belongs to the person, or only its body may name the person. */
  readonly isCertain: boolean;
  readonly isDone: boolean;
}

export interface SearchedPage {
  readonly deliveries: readonly SearchedDelivery[];
  /** The last delivery of the page. Null at the end. */
  readonly lastAt: number | null;
  readonly lastId: DeliveryId | null;
  /** Whether the app has reprocess runs, whose plans may have names of the person. */
  readonly hasRuns: boolean;
}

/**
 * Returns the deliveries of the next page that may name the person: those with an event or a payment of the person, and those
 * whose body contains one of `parts`, or all if `parts` is null. A payment with one of `refs` is the person's, but an event of it
 * that names another user is not. A page is in the order of receipt, has `limit` deliveries at most, and ends earlier after many bytes.
 */
export async function searchDeliveries(
  { sql }: ErasureDeps,
  erasure: OpenErasure,
  {
    refs,
    parts,
    limit,
    overlapMs,
  }: {
    readonly refs: readonly string[];
    readonly parts: readonly string[] | null;
    readonly limit: number;
    readonly overlapMs: number;
  },
): Promise<SearchedPage> {
  const { id, appId, pseudonym, subject, requestedAt, reopenedAt, scannedAt, scannedId, settlesAt } = erasure;
  const users = usersOf(subject.customerUserId, pseudonym);
  const from = scannedAt ?? (settlesAt === null ? 0 : (reopenedAt ?? requestedAt) - overlapMs);
  const { deliveries, ...page } = await sql.forManyRows().one<
    Omit<SearchedPage, 'deliveries'> & {
      deliveries: readonly (Omit<SearchedDelivery, 'body'> & { body: string | null })[];
    }
  >`
    with listed as materialized (
      select d.id, d.provider, d.received_at, d.completed_at is not null as is_done
        from deliveries d
       where d.app_id = ${appId} and d.signature_valid
         and (d.received_at, d.id::text) > (
               coalesce((select s.scanned_at from erasures s where s.id = ${id}), ${instant(from)}::timestamptz), ${scannedId ?? ''}::text)
       order by d.received_at, d.id limit ${limit}
    ), page as materialized (
      select id, provider, received_at, is_done
        from (select l.*, coalesce(sum(octet_length(b.body)) over (order by l.received_at, l.id rows between unbounded preceding and 1 preceding), 0) as bytes_before
                from listed l left join lateral (select * from delivery_bodies x where x.delivery_id = l.id offset 0) b on true) measured
       where bytes_before < ${PAGE_BYTES}
    ), found as (
      select p.id, p.provider, p.is_done, case when b.encryption_key_id is null then b.body end as body,
             case when ${parts === null}
                  then array(select k.user_key from payments y join payment_user_keys k on k.payment_id = y.id
                              where y.app_id = ${appId} and y.environment = e.environment and y.store = e.store
                                and y.ref = e.payment_ref)
                  else '{}' end as user_keys,
             coalesce(e.customer_user_id = any(${users}::text[]), false)
               or (coalesce(e.payment_ref = any(${[...refs]}::text[]), false)
                   and (e.customer_user_id is null or is_pseudonym(${appId}, e.customer_user_id))) as is_certain
        from page p
        left join lateral (select * from events x where x.delivery_id = p.id offset 0) e on true
        left join lateral (select * from delivery_bodies x where x.delivery_id = p.id offset 0) b on true
    )
    select coalesce((
             select jsonb_agg(jsonb_build_object('deliveryId', id, 'provider', provider, 'isDone', is_done, 'isCertain', is_certain, 'userKeys', user_keys,
                                                 'body', encode(body, 'base64')))
               from found
              where is_certain
                 or ${parts === null} or exists (select from unnest(${[...(parts ?? [])]}::text[]) n where position(convert_to(n, 'UTF8') in body) > 0)), '[]') as deliveries,
           (select epoch_ms(received_at) from page order by received_at desc, id desc limit 1) as last_at,
           (select id from page order by received_at desc, id desc limit 1) as last_id,
           exists (select from reprocess_runs r where r.app_id = ${appId}) as has_runs`;
  const decoded = deliveries.map(({ body, ...delivery }) => ({
    ...delivery,
    body: body === null ? null : Buffer.from(body, 'base64'),
  }));
  return { ...page, deliveries: decoded };
}

/** Returns those of the texts that are identifiers of an erasure, with their kinds. */
export async function findErasedTexts(
  { sql, secretBox }: ErasureDeps,
  { id, appId }: Pick<OpenErasure, 'id' | 'appId'>,
  texts: readonly string[],
): Promise<ReadonlyMap<string, ReadonlySet<string>>> {
  const hash = await identifierHasher(sql, secretBox);
  const byHash = new Map(texts.map((text) => [hash(appId, text).toString('hex'), text]));
  const rows = await sql<{ hash: string; kinds: readonly string[] }>`
    select encode(hash, 'hex') as hash, array_agg(kind order by kind) as kinds from erased_identifiers
     where app_id = ${appId} and erasure_id = ${id}
       and hash = any(array(select decode(h, 'hex') from unnest(${[...byHash.keys()]}::text[]) h))
     group by hash`;
  return new Map(rows.map((row) => [byHash.get(row.hash) ?? '', new Set(row.kinds)]));
}

/**
 * Removes the bodies of the person's deliveries that have an outcome, replaces the user id in their events, notes those that
 * have none, and moves the search on, by one statement. The position stays if the search has begun again meanwhile.
 */
export async function eraseDeliveries(
  { sql }: ErasureDeps,
  { id, subject, pseudonym, revision }: OpenErasure,
  {
    done,
    waiting,
    histories,
    position,
  }: {
    readonly done: readonly DeliveryId[];
    readonly waiting: readonly DeliveryId[];
    readonly histories: number;
    /** The last delivery of the page. Null to leave the position as it is. */
    readonly position: { readonly at: number; readonly id: DeliveryId } | null;
  },
): Promise<void> {
  await sql.forManyRows()`
    with removed as (
      delete from delivery_bodies where delivery_id = any(${[...done]}::text[]) returning 1
    ), reported as (
      update events set customer_user_id = ${pseudonym}
       where delivery_id = any(${[...done, ...waiting]}::text[]) and customer_user_id = ${subject.customerUserId}
      returning 1
    )
    update erasures s
       set counts = ${addedCounts(sql, [
         ['bodies', sql.fragment`removed`],
         ['events', sql.fragment`reported`],
         ['histories', sql.fragment`generate_series(1, ${histories}::int)`],
       ])},
           waiting = array(select w from unnest(s.waiting || ${[...waiting]}::text[]) w
                            where w <> all(${[...done]}::text[]) group by w order by w),
           scanned_at = ${position === null ? sql.fragment`scanned_at` : sql.fragment`case when s.revision = ${revision} then coalesce((select d.received_at from deliveries d where d.id = ${position.id}), ${instant(position.at)}::timestamptz) else s.scanned_at end`},
           scanned_id = ${position === null ? sql.fragment`scanned_id` : sql.fragment`case when s.revision = ${revision} then ${position.id} else s.scanned_id end`}
     where s.id = ${id}`;
}
