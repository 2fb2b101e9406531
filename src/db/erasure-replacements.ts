import type { SubjectKey } from '../domain/erasure.ts';
import type { AppId, ErasureId, EventId, PaymentId } from '../domain/ids.ts';
import { usersOf } from './erasure-state.ts';
import type { ErasedKind } from './erasure-state.ts';
import type { Fragment, Sql, Statements } from './sql.ts';

/** The identifiers of a person, and what stands for them from now on. */
export interface Replacements {
  readonly id: ErasureId;
  readonly appId: AppId;
  /** Null to replace keys only. */
  readonly user: string | null;
  readonly pseudonym: string;
  readonly keys: readonly (SubjectKey & { readonly replacement: string })[];
}

/**
 * Replaces a person's identifiers in rows, in one transaction. Of two rows that become the same, the one
 * with the identifier stays: a fact that arrived after the mark stored the other one under the pseudonym, which did not lead to the
 * first one yet. The numbers of replaced rows are added to the counts of the erasure. Running it again finds nothing to replace.
 */
export async function replaceInRows(sql: Sql, person: Replacements): Promise<void> {
  await sql.forManyRows().transaction(async (tx) => {
    // Before any other row: evaluations lock a payment first, too.
    const payments = await lockPayments(tx, person);
    const devices = await replaceDevices(tx, person);
    const transfers = await replaceTransfers(tx, person);
    await addCounts(tx, person.id, {
      bindings: await replaceBindings(tx, person),
      payments: await replacePayers(tx, person),
      transfers: transfers.count,
      providerKeys:
        (await replacePaymentKeys(tx, person)) +
        (await replaceSubscriptionCodes(tx, person)) +
        (await replaceLinks(tx, person)),
      commissions: await replaceInCommissions(tx, person, payments),
      events: await replaceInEvents(tx, person, [
        ...payments.map(({ eventId }) => eventId),
        ...transfers.eventIds,
      ]),
      ...devices,
    });
  });
}

/** Runs a write that returns a row for each row that it changes, and returns their number. */
async function count(writing: Promise<readonly object[]>): Promise<number> {
  return (await writing).length;
}

const keysOf = (tx: Statements, keys: Replacements['keys']) => tx.fragment`
  (select source, "userKey" as user_key, replacement
     from jsonb_to_recordset(${tx.json(keys)}) k (source text, "userKey" text, replacement text))`;

/** The texts that stand where a user id stands, each once: the user id, and keys that codes bound in place of one. */
const wordsOf = (
  tx: Statements,
  { user, pseudonym, keys }: Pick<Replacements, 'user' | 'pseudonym' | 'keys'>,
) => {
  const words = new Map(keys.map(({ userKey, replacement }) => [userKey, replacement]));
  if (user !== null) words.set(user, pseudonym);
  return tx.fragment`
    (select * from unnest(${[...words.keys()]}::text[], ${[...words.values()]}::text[]) w (word, replacement))`;
};

interface HeldPayment {
  readonly id: PaymentId;
  readonly eventId: EventId;
}

/**
 * Locks the person's payments, under all their references, in the order of evaluations and raises their versions: an evaluation that has read the user id
 * appends nothing and reads again. Those without a binding are marked for another evaluation: one that was recorded under the user
 * id while the binding received the pseudonym did not find it.
 */
async function lockPayments(
  tx: Statements,
  { appId, user, pseudonym, keys }: Replacements,
): Promise<HeldPayment[]> {
  const ids = await tx<{ id: PaymentId }>`
    with named as materialized (
      select payment_id from payment_users
       where app_id = ${appId} and customer_user_id = any(${usersOf(user, pseudonym)}::text[])
      union
      select x.payment_id
        from ${keysOf(tx, keys)} k
        join payment_user_keys x on x.app_id = ${appId} and x.user_key in (k.user_key, k.replacement) and x.source = k.source
    )
    -- The commission of an invoice can have the user whom only its charge names.
    select q.id
      from named
     cross join lateral (select * from payments x where x.id = named.payment_id offset 0) n
     cross join lateral same_payment(n.app_id, n.environment, n.store, array[n.ref]) q
     union
    select payment_id from named`;
  const payments = await tx<HeldPayment>`
    select p.id, p.event_id from payments p where p.id = any(${ids.map(({ id }) => id)}::text[]) order by p.id for update`;
  await tx`
    update payments
       set version = version + 1,
           recheck_since = case when environment = 'production' and binding_id is null then now() else recheck_since end
     where id = any(${payments.map(({ id }) => id)}::text[])`;
  return payments;
}

/** Replaces the ids of the person's devices, and clears their clicks. A device that others use keeps its id. */
async function replaceDevices(
  tx: Statements,
  { appId, user }: Replacements,
): Promise<Pick<Record<ErasedKind, number>, 'devices' | 'clicks' | 'identities' | 'testReports'>> {
  // Of two erasures of users of one device, the later one finds the row of the earlier one deleted.
  await tx`
    select from identities
     where app_id = ${appId} and device_id in (select device_id from identities where app_id = ${appId} and customer_user_id = ${user})
     order by device_id, customer_user_id for update`;
  const devices = await tx<{ deviceId: string; replacement: string }>`
    select d.device_id, 'erased:' || replace(gen_random_uuid()::text, '-', '') as replacement
      from (select device_id from identities where app_id = ${appId} and customer_user_id = ${user}
            union select device_id from test_identities where app_id = ${appId} and customer_user_id = ${user}
            -- The SDK for servers makes it of the user id.
            union select device_id from attributions
                   where app_id = ${appId} and device_id in ('srv_' || ${user}::text, 'srv_' || encode(sha256(convert_to(${user}::text, 'UTF8')), 'hex'))) d
     where not exists (select from identities i
                        where i.app_id = ${appId} and i.device_id = d.device_id and i.customer_user_id <> ${user})
       and not exists (select from test_identities i
                        where i.app_id = ${appId} and i.device_id = d.device_id and i.customer_user_id <> ${user})`;
  const d = tx.fragment`
    (select "deviceId" as device_id, replacement
       from jsonb_to_recordset(${tx.json(devices)}) d ("deviceId" text, replacement text)) d`;
  // One statement: a losing touch references the attribution of its device by the id of the device.
  const touches = await tx<{ clickId: string | null }>`
    with installs as (
      update attributions t set device_id = d.replacement from ${d}
       where t.app_id = ${appId} and t.device_id = d.device_id
      returning t.click_id
    ), losing as (
      update losing_touches l set device_id = d.replacement from ${d}
       where l.app_id = ${appId} and l.device_id = d.device_id
      returning l.click_id
    )
    select click_id from installs union all select click_id from losing`;
  const testInstalls = await tx<{ clickId: string | null }>`
    delete from test_attributions t using ${d}
     where t.app_id = ${appId} and t.device_id = d.device_id
    returning t.click_id`;
  const clickIds = [...touches, ...testInstalls].flatMap(({ clickId }) => clickId ?? []);
  // No trigger deletes the hash of the address of a click that only a test install has found: no device has claimed it.
  await tx`delete from deferred_clicks where click_id = any(${clickIds}::text[])`;
  const clicks = await count(tx`
    update clicks c
       set ip_hash = null, user_agent = null, claim_token = gen_random_uuid(),
           claimed_by_device = coalesce((select d.replacement from ${d} where d.device_id = c.claimed_by_device), c.claimed_by_device)
     where c.id = any(${clickIds}::text[])
    returning 1`);
  const identities = await count(tx`
    delete from identities where app_id = ${appId} and customer_user_id = ${user} returning 1`);
  const testIdentities = await count(tx`
    delete from test_identities where app_id = ${appId} and customer_user_id = ${user} returning 1`);
  return {
    devices: touches.length,
    clicks,
    identities,
    testReports: testIdentities + testInstalls.length,
  };
}

/** Returns the user and the keys, which stand for a user where no event names one. */
const namesOf = ({ user, keys }: Pick<Replacements, 'user' | 'keys'>): string[] => [
  ...(user === null ? [] : [user]),
  ...keys.map(({ userKey }) => userKey),
];

/** The binding of a key, whichever provider it was bound for. */
const boundKey = (sql: Statements, appId: AppId, userKey: Fragment) => sql.fragment`
  select x.id from bindings x where x.app_id = ${appId} and x.customer_user_id = ${userKey} and x.key_source is not null offset 0`;

/** Replaces the user, and keys that codes bound in place of a user. */
async function replaceBindings(
  tx: Statements,
  { appId, user, pseudonym, keys }: Replacements,
): Promise<number> {
  // A later fact may have bound a pseudonym since it was marked. The binding from before keeps the user or the key.
  await tx`
    update bindings b set customer_user_id = k.replacement || '~' || replace(gen_random_uuid()::text, '-', '')
      from ${keysOf(tx, keys)} k
     cross join lateral (${boundKey(tx, appId, tx.fragment`k.user_key`)}) earlier
     cross join lateral (${boundKey(tx, appId, tx.fragment`k.replacement`)}) later
     where b.id = later.id`;
  await tx`
    update bindings set customer_user_id = ${pseudonym} || '~' || replace(gen_random_uuid()::text, '-', '')
     where app_id = ${appId} and customer_user_id = ${pseudonym}
       and exists (select from bindings where app_id = ${appId} and customer_user_id = ${user})`;
  // A reason may name the person.
  await tx`
    update manual_attributions set reason = null
     where reason is not null and binding_id = any(array(
       select b.id::text from bindings b
        where b.app_id = ${appId} and b.customer_user_id = any(${namesOf({ user, keys })}::text[])
          and (b.customer_user_id = ${user} or b.key_source is not null)))`;
  const ofKeys = await count(tx`
    update bindings b set customer_user_id = k.replacement
      from ${keysOf(tx, keys)} k
     cross join lateral (${boundKey(tx, appId, tx.fragment`k.user_key`)}) own
     where b.id = own.id
    returning 1`);
  const ofUser = await count(tx`
    update bindings set customer_user_id = ${pseudonym} where app_id = ${appId} and customer_user_id = ${user}
    returning 1`);
  return ofKeys + ofUser;
}

async function replacePayers(tx: Statements, { appId, user, pseudonym }: Replacements): Promise<number> {
  await tx`
    delete from payment_users u
     where u.app_id = ${appId} and u.customer_user_id = ${pseudonym}
       and exists (select from payment_users x
                    where x.app_id = ${appId} and x.customer_user_id = ${user} and x.payment_id = u.payment_id)`;
  return await count(tx`
    update payment_users set customer_user_id = ${pseudonym} where app_id = ${appId} and customer_user_id = ${user}
    returning 1`);
}

async function replacePaymentKeys(tx: Statements, { appId, keys }: Replacements): Promise<number> {
  await tx`
    delete from payment_user_keys u using ${keysOf(tx, keys)} k
     where u.app_id = ${appId} and u.user_key = k.replacement and u.source = k.source
       and exists (select from payment_user_keys x
                    where x.app_id = ${appId} and x.user_key = k.user_key and x.payment_id = u.payment_id and x.source = k.source)`;
  return await count(tx`
    update payment_user_keys u set user_key = k.replacement from ${keysOf(tx, keys)} k
     where u.app_id = ${appId} and u.user_key = k.user_key and u.source = k.source
    returning 1`);
}

interface SubscriptionCode {
  readonly environment: string;
  readonly source: string;
  readonly userKey: string;
  readonly namespace: string;
  readonly value: string;
  readonly usedAt: number;
  readonly customerUserId: string | null;
  readonly createdAt: number;
}

/** Replaces the user and the keys of subscriptions that began with a code. Of rows that become the same one stays. */
async function replaceSubscriptionCodes(
  tx: Statements,
  { appId, user, pseudonym, keys }: Replacements,
): Promise<number> {
  const removed = await tx<SubscriptionCode>`
    delete from subscription_codes c
     where c.app_id = ${appId}
       and (c.customer_user_id = any(${namesOf({ user, keys })}::text[])
            or exists (select from ${keysOf(tx, keys)} k where k.user_key = c.user_key and k.source = c.source))
    returning environment, source, user_key, namespace, value, epoch_ms(used_at) as used_at, customer_user_id, created_at`;
  const replaced = removed.map((row) => ({
    ...row,
    userKey:
      keys.find((k) => k.source === row.source && k.userKey === row.userKey)?.replacement ?? row.userKey,
    customerUserId:
      row.customerUserId === user
        ? pseudonym
        : (keys.find((k) => k.source === row.source && k.userKey === row.customerUserId)?.replacement ??
          row.customerUserId),
  }));
  if (replaced.length > 0)
    await tx`
      insert into subscription_codes (app_id, environment, source, user_key, namespace, value, used_at, customer_user_id, created_at)
      select ${appId}::text, r.environment, r.source, r."userKey", r.namespace, r.value, to_timestamp(r."usedAt" / 1000.0), r."customerUserId",
             to_timestamp(r."createdAt" / 1000.0)
        from jsonb_to_recordset(${tx.json(replaced)}) r (environment text, source text, "userKey" text, namespace text, value text,
                                                       "usedAt" bigint, "customerUserId" text, "createdAt" bigint)
      on conflict do nothing`;
  return removed.length;
}

/** Replaces the user and the keys in links between them. A key of the person may be linked to another erased user. */
async function replaceLinks(tx: Statements, { appId, user, pseudonym, keys }: Replacements): Promise<number> {
  await tx`
    delete from user_links l using ${keysOf(tx, keys)} k, user_links x
     where l.app_id = ${appId} and l.environment = any('{production,sandbox}'::text[])
       and l.user_key = k.replacement and l.source = k.source
       and x.app_id = ${appId} and x.environment = l.environment and x.source = l.source and x.user_key = k.user_key`;
  const ofKeys = await count(tx`
    update user_links l
       set user_key = k.replacement,
           customer_user_id = case l.customer_user_id when ${user} then ${pseudonym} else l.customer_user_id end
      from ${keysOf(tx, keys)} k
     where l.app_id = ${appId} and l.environment = any('{production,sandbox}'::text[])
       and l.user_key = k.user_key and l.source = k.source
    returning 1`);
  const ofUser = await count(tx`
    update user_links set customer_user_id = ${pseudonym} where app_id = ${appId} and customer_user_id = ${user}
    returning 1`);
  return ofKeys + ofUser;
}

async function replaceTransfers(
  tx: Statements,
  { appId, user, pseudonym }: Replacements,
): Promise<{ readonly count: number; readonly eventIds: readonly EventId[] }> {
  const superfluous = await count(tx`
    delete from user_transfers t
     where t.app_id = ${appId} and t.customer_user_id = ${user}
       and exists (select from user_transfers x where x.app_id = ${appId} and x.customer_user_id = ${pseudonym}
                                                  and x.role = t.role and x.event_id = t.event_id)
    returning 1`);
  const replaced = await tx<{ eventId: EventId }>`
    update user_transfers set customer_user_id = ${pseudonym} where app_id = ${appId} and customer_user_id = ${user}
    returning event_id`;
  return { count: superfluous + replaced.length, eventIds: replaced.map(({ eventId }) => eventId) };
}

async function replaceInCommissions(
  tx: Statements,
  { user, pseudonym, keys }: Replacements,
  payments: readonly HeldPayment[],
): Promise<number> {
  return await count(tx`
    update commissions c set customer_user_id = w.replacement
      from ${wordsOf(tx, { user, pseudonym, keys })} w
     where c.payment_id = any(${payments.map(({ id }) => id)}::text[]) and c.customer_user_id = w.word
    returning 1`);
}

async function replaceInEvents(
  tx: Statements,
  { user, pseudonym, keys }: Replacements,
  eventIds: readonly EventId[],
): Promise<number> {
  return await count(tx`
    update events e set customer_user_id = w.replacement
      from ${wordsOf(tx, { user, pseudonym, keys })} w
     where e.id = any(${eventIds}::text[]) and e.customer_user_id = w.word
    returning 1`);
}

async function addCounts(
  tx: Statements,
  id: ErasureId,
  counts: Readonly<Partial<Record<ErasedKind, number>>>,
): Promise<void> {
  await tx`
    update erasures s
       set counts = s.counts || (select jsonb_object_agg(a.kind, coalesce((s.counts->>a.kind)::bigint, 0) + a.rows::bigint)
                                   from jsonb_each_text(${tx.json(counts)}) a (kind, rows))
     where s.id = ${id}`;
}
