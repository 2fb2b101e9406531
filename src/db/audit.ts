import type { PolicyTerms } from '../domain/policy.ts';
import type { ActorKind, AuditAction, AuditedObject } from '../domain/audit.ts';
import { isId } from '../domain/ids.ts';
import type { AccountId, AffiliateId, AppId, Id, KeyId, SessionId } from '../domain/ids.ts';
import { matchesOf, PAGE_EXAMINES, pageOf, pageOfExamined, positionInstant } from './page.ts';
import type { Examined, Page, Position } from './page.ts';
import { instant } from './sql.ts';
import type { Sql, Statements } from './sql.ts';

/**
 * A condition that names who makes the changes of the statement, for the triggers that write audit rows. It is always true. A
 * statement that changes an audited table has it among the conditions of its rows (docs/audit.md).
 */
export function acting(sql: Statements) {
  return sql.fragment`acting_as(${sql.actor}::text)`;
}

/** A change, and who made it. */
export interface AuditRow {
  readonly id: Id<'audit'>;
  readonly changedAt: number;
  /** Null for what belongs to the account. */
  readonly appId: AppId | null;
  readonly actorKind: ActorKind;
  readonly keyId: KeyId | null;
  readonly sessionId: SessionId | null;
  /** The creator who made the change. */
  readonly affiliateId: AffiliateId | null;
  readonly actorLabel: string | null;
  readonly action: AuditAction;
  readonly objectKind: AuditedObject;
  readonly objectId: string;
  readonly objectLabel: string | null;
  /** The fields that changed. Null for a new object. */
  readonly before: Readonly<Record<string, unknown>> | null;
  readonly after: Readonly<Record<string, unknown>>;
  /** The present names of what the row has only the id of, by the ids. */
  readonly names: Readonly<Record<string, string>>;
  /** What a new version of a policy says, and the one before it. Null for other rows. */
  readonly terms: ChangedTerms | null;
  readonly requestId: string | null;
}

interface ChangedTerms {
  /** Null for the first version. */
  readonly before: PolicyTerms | null;
  readonly after: PolicyTerms;
}

/** The filters of the list. Null selects all rows. The change was made in `from ≤ t < to`. */
export interface AuditFilter {
  readonly appId: AppId | null;
  readonly actorKind: ActorKind | null;
  readonly keyId: KeyId | null;
  readonly action: AuditAction | null;
  readonly objectKind: AuditedObject | null;
  readonly objectId: string | null;
  readonly from: number | null;
  readonly to: number | null;
  /** Only changes of these apps, and none of the account: what a member sees who is limited to them. */
  readonly onlyApps: readonly AppId[] | null;
}

/** The filters of which one selects the index. The rows of the index are examined for all others, except the range. */
const INDEXED = ['objectId', 'keyId', 'appId'] as const;

function conditions(sql: Sql, filter: AuditFilter) {
  return {
    appId: sql.fragment`and a.app_id = ${filter.appId}`,
    actorKind: sql.fragment`and a.actor_kind = ${filter.actorKind}`,
    keyId: sql.fragment`and a.key_id = ${filter.keyId}`,
    action: sql.fragment`and a.action = ${filter.action}`,
    objectKind: sql.fragment`and a.object_kind = ${filter.objectKind}`,
    objectId: sql.fragment`and a.object_id = ${filter.objectId}`,
    from: sql.fragment`and a.changed_at >= ${instant(filter.from ?? 0)}`,
    to: sql.fragment`and a.changed_at < ${instant(filter.to ?? 0)}`,
    onlyApps: sql.fragment`and a.app_id = any(${[...(filter.onlyApps ?? [])]}::text[])`,
  } satisfies Record<keyof AuditFilter, unknown>;
}

type StoredRow = Omit<AuditRow, 'names' | 'terms'>;

/** The kinds of ids whose names a reader of an audit row needs. */
const NAMED = ['affiliate', 'group', 'policy', 'payout', 'key'] as const;

/** Returns the ids of creators, groups, policies, payouts and keys that a row has without a name. */
function idsWithoutName({ objectId, objectLabel, before, after }: StoredRow): string[] {
  const values = [...Object.values({ ...before }), ...Object.values(after)];
  if (objectLabel === null) values.push(objectId);
  return values.filter(
    (value): value is string => typeof value === 'string' && NAMED.some((kind) => isId(kind, value)),
  );
}

/**
 * Returns the present names of creators, groups, policies and keys, and who was paid by payouts, by their ids. Only of the account: a caller can
 * enter an id of another one, such as for a campaign. Of an app, only if the reader sees it (`onlyApps`).
 */
async function findNames(
  sql: Sql,
  accountId: AccountId,
  ids: readonly string[],
  onlyApps: readonly AppId[] | null,
): Promise<(readonly [id: string, name: string])[]> {
  if (ids.length === 0) return [];
  const wanted = [...new Set(ids)];
  const isSeen = onlyApps === null ? sql.fragment`` : sql.fragment`and a.id = any(${[...onlyApps]}::text[])`;
  const found = await sql<{ id: string; name: string }>`
    select f.id::text, f.name
      from affiliates f join apps a on a.id = f.app_id
     where f.id = any(${wanted}::text[]) and a.account_id = ${accountId} ${isSeen}
     union all
    select g.id::text, g.name
      from affiliate_groups g join apps a on a.id = g.app_id
     where g.id = any(${wanted}::text[]) and a.account_id = ${accountId} ${isSeen}
     union all
    select p.id::text, p.name
      from policies p join apps a on a.id = p.app_id
     where p.id = any(${wanted}::text[]) and a.account_id = ${accountId} ${isSeen}
     union all
    select p.id::text, p.affiliate_name
      from payouts p join apps a on a.id = p.app_id
     where p.id = any(${wanted}::text[]) and a.account_id = ${accountId} ${isSeen}
     union all
    select k.id::text, coalesce(k.label, k.display)
      from account_keys k
     where k.id = any(${wanted}::text[]) and k.account_id = ${accountId}`;
  return found.map(({ id, name }) => [id, name] as const);
}

/** Returns what versions of policies say, and those before them, by the ids of the versions. */
async function findTerms(sql: Sql, rows: readonly StoredRow[]): Promise<ReadonlyMap<string, ChangedTerms>> {
  const ids = rows
    .filter(({ objectKind }) => objectKind === 'policy_version')
    .map(({ objectId }) => objectId);
  if (ids.length === 0) return new Map();
  const found = await sql<ChangedTerms & { readonly id: string }>`
    select v.id, v.terms as after,
           (select p.terms from policy_versions p where p.policy_id = v.policy_id and p.version = v.version - 1) as before
      from policy_versions v where v.id = any(${ids}::text[])`;
  return new Map(found.map(({ id, before, after }) => [id, { before, after }]));
}

/** Adds to rows the names of what they have only the id of, and the terms of policies. */
async function withDetails<T extends StoredRow>(
  sql: Sql,
  accountId: AccountId,
  rows: readonly T[],
  onlyApps: readonly AppId[] | null,
): Promise<(T & Pick<AuditRow, 'names' | 'terms'>)[]> {
  const terms = await findTerms(sql, rows);
  const idsOfRows = rows.map(idsWithoutName);
  const found = await findNames(sql, accountId, idsOfRows.flat(), onlyApps);
  return rows.map((row, index) => ({
    ...row,
    names: Object.fromEntries(found.filter(([id]) => idsOfRows[index]?.includes(id))),
    terms: terms.get(row.objectId) ?? null,
  }));
}

/**
 * Returns a page of the changes of an account, the last first. An index selects the range and one of the object, the key and
 * the app. A page with other filters examines at most `examines` rows of it and may have fewer than `limit`.
 */
export async function listAudit(
  sql: Sql,
  accountId: AccountId,
  filter: AuditFilter,
  after: Position<number> | null,
  limit: number,
  examines = PAGE_EXAMINES,
): Promise<Page<AuditRow, number>> {
  const all = conditions(sql, filter);
  const given = (Object.keys(all) as (keyof AuditFilter)[]).filter((name) => filter[name] !== null);
  const indexed = new Set<keyof AuditFilter>(['from', 'to']);
  const chosen = INDEXED.find((name) => filter[name] !== null);
  if (chosen !== undefined) indexed.add(chosen);
  const joined = (names: readonly (keyof AuditFilter)[]) =>
    names.reduce((text, name) => sql.fragment`${text} ${all[name]}`, sql.fragment``);
  const others = given.filter((name) => !indexed.has(name));
  const from =
    after === null
      ? sql.fragment``
      : sql.fragment`and (a.changed_at, a.id) < (${positionInstant(sql, after.sortKey)}, ${after.id})`;
  const rows = await sql<StoredRow & Position<number> & Examined>`
    with walked as (
      select a.*, row_number() over (order by a.changed_at desc, a.id desc) as examined
        from audit_rows a
       where a.account_id = ${accountId} ${joined(given.filter((name) => indexed.has(name)))} ${from}
       order by a.changed_at desc, a.id desc limit ${others.length === 0 ? limit + 1 : examines}
    ), page as (
      ${matchesOf(sql, sql.fragment`walked a`, sql.fragment`true ${joined(others)}`, sql.fragment`changed_at desc, id desc`, { limit, examines })}
    )
    select id, changed_at, app_id, actor_kind, key_id, session_id, affiliate_id, actor_label, action, object_kind, object_id,
           object_label, before, after, request_id, is_match, examined,
           (extract(epoch from changed_at) * 1000000)::bigint as sort_key
      from page
     order by examined`;
  const page: Page<StoredRow, number> =
    others.length === 0 ? pageOf(rows, limit) : pageOfExamined(rows, limit, examines);
  return { ...page, rows: await withDetails(sql, accountId, page.rows, filter.onlyApps) };
}
