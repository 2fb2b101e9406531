import type {
  AccountId,
  AffiliateId,
  AppId,
  AttributionId,
  BindingId,
  KeyId,
  ManualAttributionId,
} from '../domain/ids.ts';
import { sourceOfKey } from './attributable-keys.ts';
import { acting } from './audit.ts';
import { isErased } from './erased-identifiers.ts';
import { createdBefore, pageOf } from './page.ts';
import type { Page, Position } from './page.ts';
import { instant } from './sql.ts';
import type { Sql, Statements } from './sql.ts';

/** What a founder said about a user. */
export interface ManualAttribution {
  readonly id: ManualAttributionId;
  readonly customerUserId: string;
  /** Null: later payments belong to nobody. */
  readonly affiliateId: AffiliateId | null;
  readonly affiliateName: string | null;
  /** Whether the user belonged to somebody before: then only later payments change. */
  readonly reassigns: boolean;
  readonly effectiveFrom: number;
  /** How many earlier payments earned by it, and what. */
  readonly payments: number;
  readonly earnedCents: number;
  /** Null once the user was erased. */
  readonly reason: string | null;
  readonly createdAt: number;
  readonly keyId: KeyId;
  readonly keyLabel: string | null;
  readonly keyDisplay: string;
}

export interface NewManualAttribution {
  readonly id: ManualAttributionId;
  readonly attributionId: AttributionId;
  readonly bindingId: BindingId;
  readonly appId: AppId;
  readonly accountId: AccountId;
  readonly keyId: KeyId;
  readonly customerUserId: string;
  /** The keyed hash of the user id. */
  readonly userHash: Buffer;
  readonly affiliateId: AffiliateId | null;
  readonly reason: string;
  /** From when on payments belong to the creator, epoch ms. Null: from now on. */
  readonly from: number | null;
}

/** Why a user is not attributed. `unbound`: there is nobody to take the user from. `lost_race`: somebody else has just bound the user. */
export type Refusal = 'erased' | 'bound' | 'unbound' | 'lost_race';

/** The binding that a manual attribution is about. */
export interface HeldBinding {
  readonly bindingId: BindingId;
  /** 0 for a new one. */
  readonly position: number;
}

/**
 * Binds a user who has no binding, or holds the one that the user has, as part of a transaction that then records the attribution.
 * Undefined for an unknown affiliate.
 */
export async function holdBinding(
  tx: Statements,
  attribution: NewManualAttribution,
): Promise<HeldBinding | Refusal | undefined> {
  const { appId, customerUserId, userHash, affiliateId, from } = attribution;
  const { wasErased } = await tx.one<{ wasErased: boolean }>`
    select ${isErased(tx, appId, [userHash], ['user', 'key'])} as was_erased`;
  if (wasErased) return 'erased';
  const bound = await tx.maybe<{ id: BindingId }>`
    select id from bindings where app_id = ${appId} and customer_user_id = ${customerUserId} for no key update`;
  if (bound !== undefined && from !== null) return 'bound';
  if (bound === undefined && affiliateId === null) return 'unbound';
  if (affiliateId !== null && !(await insertAttribution(tx, attribution))) return undefined;
  if (bound === undefined)
    return (await bind(tx, attribution)) ? { bindingId: attribution.bindingId, position: 0 } : 'lost_race';
  // The first binding of the person, so that no key is added meanwhile.
  await tx`
    select from bindings r join bindings b on r.id = coalesce(b.counts_with, b.id::text) where b.id = ${bound.id} for no key update of r`;
  // With a key, or the only user, all keys of the person that a code bound, and the first binding, whose mark later keys take.
  await tx`
    update bindings b set reassigned_at = now()
      from bindings own
     where own.id = ${bound.id} and b.reassigned_at is null
       and (b.id = own.id or (own.key_source is not null or is_only_user(own, now()))
            and (b.id = own.counts_with or b.key_source is not null and b.counts_with = coalesce(own.counts_with, own.id::text)))`;
  const { position } = await tx.one<{ position: number }>`
    select 1 + coalesce(max(position), 0) as position from manual_attributions where binding_id = ${bound.id}`;
  return { bindingId: bound.id, position };
}

/** Records a manual attribution with what earlier payments earned by it. */
export async function recordManualAttribution(
  tx: Statements,
  { id, appId, attributionId, affiliateId, from, reason, accountId, keyId }: NewManualAttribution,
  { bindingId, position }: HeldBinding,
  { payments, earnedCents }: Pick<ManualAttribution, 'payments' | 'earnedCents'>,
): Promise<ManualAttribution | undefined> {
  await tx`
    insert into manual_attributions (id, app_id, binding_id, position, attribution_id, effective_from, payments, earned_cents, reason,
                                     account_id, key_id)
    select ${id}::text, ${appId}::text, ${bindingId}::text, ${position}::int, ${affiliateId === null ? null : attributionId}::text,
           ${from === null ? tx.fragment`now()` : tx.fragment`${instant(from)}::timestamptz`}, ${payments}::int, ${earnedCents}::bigint,
           ${reason}::text, ${accountId}::text, ${keyId}::text
     where ${acting(tx)}`;
  return await findManualAttribution(tx, appId, id);
}

/** Inserts the attribution to a creator. False for an unknown one, and for a removed one, to whom no install or code attributes either. */
async function insertAttribution(
  tx: Statements,
  { attributionId, appId, affiliateId, from }: NewManualAttribution,
): Promise<boolean> {
  const touchedAt = from === null ? tx.fragment`now()` : tx.fragment`${instant(from)}::timestamptz`;
  const rows = await tx`
    insert into attributions (id, app_id, affiliate_id, match_method, touched_at, first_open_at)
    select ${attributionId}::text, f.app_id, f.id, 'manual', ${touchedAt}, ${touchedAt}
      from affiliates f where f.app_id = ${appId} and f.id = ${affiliateId} and f.status <> 'removed'
    returning id`;
  return rows.length > 0;
}

/** Binds the user; or a subscription or anonymous customer at a provider, if payments have that key and no user has that id. False if somebody else just did. */
async function bind(
  tx: Statements,
  { bindingId, appId, customerUserId, attributionId }: NewManualAttribution,
): Promise<boolean> {
  const rows = await tx`
    insert into bindings (id, app_id, customer_user_id, attribution_id, identified_at, key_source)
    values (${bindingId}, ${appId}, ${customerUserId}, ${attributionId}, now(),
            ${sourceOfKey(tx, tx.fragment`${appId}`, tx.fragment`${customerUserId}`)})
    on conflict (app_id, customer_user_id) do nothing
    returning id`;
  return rows.length > 0;
}

/** The columns of a `ManualAttribution` of a row `m`, by one index look-up for each table. */
const columns = (sql: Statements) => sql.fragment`
  m.id, b.customer_user_id, t.affiliate_id, f.name as affiliate_name, m.position > 0 as reassigns, m.effective_from, m.payments,
  m.earned_cents, m.reason,
  m.created_at, k.id as key_id, k.label as key_label, k.display as key_display`;

const joined = (sql: Statements) => sql.fragment`
  cross join lateral (select customer_user_id from bindings x where x.id = m.binding_id offset 0) b
   left join lateral (select affiliate_id from attributions x where x.id = m.attribution_id offset 0) t on true
   left join lateral (select name from affiliates x where x.id = t.affiliate_id offset 0) f on true
  cross join lateral (select id, label, display from account_keys x where x.id = m.key_id offset 0) k`;

/** Returns a manual attribution. Undefined for an unknown one and for one of another app. */
export async function findManualAttribution(
  sql: Statements,
  appId: AppId,
  id: ManualAttributionId,
): Promise<ManualAttribution | undefined> {
  return await sql.maybe<ManualAttribution>`
    select ${columns(sql)} from manual_attributions m ${joined(sql)} where m.app_id = ${appId} and m.id = ${id}`;
}

/** Returns a page of an app's manual attributions, latest first. */
export async function listManualAttributions(
  sql: Sql,
  appId: AppId,
  after: Position<number> | null,
  limit: number,
): Promise<Page<ManualAttribution, number>> {
  const rows = await sql<ManualAttribution & Position<number>>`
    select ${columns(sql)}, m.sort_key
      from (select *, (extract(epoch from created_at) * 1000000)::bigint as sort_key
              from manual_attributions
             where app_id = ${appId} ${createdBefore(sql, after)}
             order by created_at desc, id desc limit ${limit + 1}) m
      ${joined(sql)}
     order by m.sort_key desc, m.id desc`;
  return pageOf(rows, limit);
}

/** Returns the creator to whom a user's payments belong now. Undefined for a user who belongs to nobody. */
export async function findCreatorOfUser(
  sql: Statements,
  appId: AppId,
  customerUserId: string,
): Promise<{ readonly affiliateId: AffiliateId; readonly affiliateName: string } | undefined> {
  return await sql.maybe`
    select f.id as affiliate_id, f.name as affiliate_name
      from bindings b
      join attributions t on t.id = attribution_at(b, now())
      join affiliates f on f.id = t.affiliate_id
     where b.app_id = ${appId} and b.customer_user_id = ${customerUserId}`;
}
