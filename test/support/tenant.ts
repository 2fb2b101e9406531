import { randomBytes, randomUUID } from 'node:crypto';
import { createAccountKey } from '../../src/db/account-keys.ts';
import { newId } from '../../src/db/new-id.ts';
import type { Sql } from '../../src/db/sql.ts';
import type { IdKind } from '../../src/domain/ids.ts';
import { DAY_MS } from '../../src/domain/time.ts';
import { newAffiliate, newApp, newLink } from './api.ts';
import type { TestApi, TestApp } from './api.ts';
import { newMember, signInManager } from './members.ts';
import { signIn } from './sessions.ts';
import { insertEarning, payOut } from './ledger.ts';

/** An account with an app that has at least two of every resource that a caller can name or list. */
export interface Tenant extends TestApp {
  readonly ids: Readonly<Record<IdKind, string>>;
  /** Texts that occur in no row of another account. */
  readonly marks: readonly string[];
}

/** Creates a tenant whose names all contain `mark`. */
export async function newTenant(api: TestApi, mark: string): Promise<Tenant> {
  const { sql } = api;
  const app = await newApp(api, undefined, { name: `${mark} app` });
  const ids: Partial<Record<IdKind, string>> = { account: app.accountId, app: app.appId };
  const { id: keyId } = await createAccountKey(sql, app.accountId, ['read']);
  await signIn(api, app.key);
  const { id: sessionId } = await sql.one<{ id: string }>`
    select id from sessions where account_id = ${app.accountId}`;
  const inGroups: string[] = [];
  for (let round = 0; round < 2; round += 1) {
    const affiliateId = await newAffiliate(api, app, { name: `${mark} creator ${round}` });
    const link = await newLink(api, app, affiliateId, {
      slug: `${mark}-${round}`,
      campaign: `${mark} campaign`,
    });
    const click = await api.call<{ clickId: string }>('POST', '/clicks', {
      body: { customerAppId: app.appId, slug: link.slug, claimToken: randomUUID() },
    });
    const occurredAt = api.clock.now - DAY_MS * (round + 1);
    const row = { affiliateId, amountCents: 500 + round, occurredAt };
    const paid = await insertEarning(api, app, { ...row, dueAt: occurredAt, matured: true });
    await payOut(api, app, affiliateId);
    const commissionId = await insertEarning(api, app, { ...row, dueAt: api.clock.now + DAY_MS });
    await sql`update events set likely_cause = 'user_never_identified', amount_minor = 1, customer_user_id = ${mark}
               where app_id = ${app.appId} and id = (select event_id from commissions where id = ${commissionId})`;
    const { eventId, deliveryId, payoutId, attributionId } = await sql.one<Record<string, string>>`
      select c.event_id, e.delivery_id, c.payout_id, b.attribution_id
        from commissions c join events e on e.id = c.event_id join bindings b on b.id = c.binding_id where c.id = ${paid}`;
    const entry = await api.call<{ id: string }>(
      'POST',
      `/apps/${app.appId}/affiliates/${affiliateId}/entries`,
      {
        key: app.key,
        body: { amountCents: 100 + round, category: 'bonus', reason: mark, externalId: `${mark}-${round}` },
      },
    );
    const send = async (method: string, path: string, body: object) =>
      await api.call<{ id: string }>(method, `/apps/${app.appId}/${path}`, { key: app.key, body });
    const group = await send('POST', 'groups', { name: `${mark} group ${round}` });
    const policy = await send('POST', 'policies', { name: `${mark} policy ${round}` });
    let version = policy;
    for (const percentBps of [1_000, 2_000]) {
      const terms = { base: 'gross', rules: [{ percentBps }] };
      version = await send('POST', `policies/${policy.body.id}/versions`, terms);
      await send('PUT', `affiliates/${affiliateId}/policy-assignment`, { policyId: policy.body.id });
    }
    const given = await send('POST', 'manual-attributions', {
      customerUserId: `${mark}-given-${round}`,
      affiliateId,
      reason: mark,
    });
    const code = await send('POST', `affiliates/${affiliateId}/codes`, {
      namespace: 'attribute',
      value: `${mark}-${round}`,
    });
    let block = code;
    for (const state of ['blocked', 'lifted'])
      block = await send('POST', `affiliates/${affiliateId}/payout-blocks`, { state, reason: mark });
    let payee = block;
    for (const name of ['first', 'second'])
      payee = await send('PUT', `affiliates/${affiliateId}/payee`, {
        method: 'other',
        recipient: { name: `${mark} ${name}`, reference: mark },
      });
    inGroups.push(affiliateId);
    for (const one of inGroups) await send('PUT', `affiliates/${one}/group`, { groupId: group.body.id });
    const endpoint = await api.call<{ id: string }>('POST', `/apps/${app.appId}/webhook-endpoints`, {
      key: app.key,
      body: { url: `https://example.com/${mark}/${round}`, eventTypes: ['payout.created'] },
    });
    const message = await api.call<{ id: string }>(
      'POST',
      `/apps/${app.appId}/webhook-endpoints/${endpoint.body.id}/test`,
      { key: app.key },
    );
    for (const number of [1, 2]) {
      await sql`insert into webhook_attempts (message_id, number, started_at, duration_ms, response)
                values (${message.body.id}, ${number}, now(), 1, ${mark})`;
    }
    Object.assign(ids, {
      webhookEndpoint: endpoint.body.id,
      webhookMessage: message.body.id,
      affiliate: affiliateId,
      link: link.id,
      click: click.body.clickId,
      attribution: attributionId,
      event: eventId,
      delivery: deliveryId,
      commission: commissionId,
      payout: payoutId,
      entry: entry.body.id,
      group: group.body.id,
      policy: policy.body.id,
      policyVersion: version.body.id,
      manualAttribution: given.body.id,
      code: code.body.id,
      transfer: newId('transfer'),
      payoutBlock: block.body.id,
      payee: payee.body.id,
      key: keyId,
      session: sessionId,
    });
  }
  for (let round = 0; round < 2; round += 1) {
    ids.reprocessRun = newId('reprocessRun');
    await sql`
      with run as (
        insert into reprocess_runs (id, app_id, dry_run, from_at, to_at, deliveries, seen, changed, finished_at, commission_cents, revenue_cents)
        values (${ids.reprocessRun}, ${app.appId}, true, '-infinity', now(), 2, 2, 2, now(), 0, 0)
        returning id, app_id
      )
      insert into reprocess_changes (app_id, reprocess_run_id, delivery_id, received_at, changes, appends)
      select r.app_id, r.id, d.id, d.received_at,
             ${sql.json([{ what: 'status', stored: 'failed', today: mark, action: 'append' }])}, true
        from run r join deliveries d on d.app_id = r.app_id order by d.received_at, d.id limit 2`;
  }
  await api.call('PUT', `/apps/${app.appId}/slack-url`, {
    key: app.key,
    body: { url: `https://hooks.slack.com/services/${mark}` },
  });
  for (let round = 0; round < 2; round += 1) {
    ids.alert = newId('alert');
    await sql`
      insert into alerts (id, app_id, rule, subject, facts, opened_at)
      values (${ids.alert}, ${app.appId}, 'webhooks_refused', ${`${mark}-${round}`}, '{"refused":3}', now())`;
  }
  const post = async (path: string, body: object) =>
    await api.call<{ id: string }>('POST', `/apps/${app.appId}/${path}`, { key: app.key, body });
  // Two creators are paid by each run, and two are left out.
  for (const [n, amountCents] of [-5, -6, 5, 6].entries()) {
    const affiliateId = await newAffiliate(api, app, { name: `${mark} of a run ${n}` });
    const entry = { amountCents, category: 'other', reason: mark, externalId: `${mark}-run-${n}` };
    await post(`affiliates/${affiliateId}/entries`, entry);
  }
  const newRun = async () => (await post('payout-runs', { withoutPayee: 'include' })).body.id;
  await newRun();
  ids.payoutRun = await newRun();
  const { id: itemId } = await sql.one<{ id: string }>`
    select id from payout_run_items where run_id = ${ids.payoutRun} limit 1`;
  ids.payoutRunItem = itemId;
  ids.payoutFile = newId('payoutFile');
  await sql`
    insert into payout_run_files (id, app_id, run_id, method, part, row_count, total_cents, sha256)
    values (${ids.payoutFile}, ${app.appId}, ${ids.payoutRun}, 'other', 1, 2, 11, sha256('erased'))`;
  const [creatorId] = await sql<{
    id: string;
  }>`select id from affiliates where app_id = ${app.appId} limit 1`;
  for (let round = 0; round < 2; round += 1) {
    ids.email = newId('email');
    await sql`
      insert into emails (id, app_id, affiliate_id, kind, subject_id, status, ended_at, next_attempt_at, relay_at)
      values (${ids.email}, ${app.appId}, ${creatorId?.id ?? ''}, 'invitation', ${ids.email}, 'skipped', now(), null, null)`;
  }
  const manager = await signInManager(api, app);
  for (let round = 0; round < 2; round += 1) {
    const fields = { name: `${mark} member`, email: `${mark}-${round}@example.com` };
    ids.member = (await newMember(api, app, manager, 'analyst', fields)).id;
    ids.passkey = newId('passkey');
    await sql`
      insert into passkeys (id, account_id, member_id, name, credential_id, public_key, sign_count, raises, created_at)
      values (${ids.passkey}, ${app.accountId}, ${ids.member}, ${mark}, ${randomBytes(32)}, 'x', 0, false, now())`;
  }
  const erased = await api.call<{ erasureId: string }>('DELETE', `/apps/${app.appId}/users/${mark}-erased`, {
    key: app.key,
  });
  ids.erasure = erased.body.erasureId;
  return {
    ...app,
    ids: ids as Record<IdKind, string>,
    marks: [mark, ...Object.values(ids).filter((id) => id !== keyId && id !== app.accountId)],
  };
}

/** The tables with rows of an account, and the column that names it or its app. Reading them takes longer than the hashes. */
const ownedTables = new WeakMap<Sql, ReturnType<typeof ownedTablesOf>>();

async function ownedTablesOf(sql: Sql): Promise<readonly { readonly name: string; readonly by: string }[]> {
  return await sql<{ name: string; by: string }>`
    select c.table_name as name, c.column_name as by
      from information_schema.columns c join information_schema.tables t using (table_schema, table_name)
     where c.table_schema = 'public' and t.table_type = 'BASE TABLE' and c.column_name in ('app_id', 'account_id')
       -- A check of the ledger stores what it finds.
       and c.table_name <> 'ledger_findings'
     order by 1, 2`;
}

/** Returns hashes over all rows of an account. */
export async function fingerprintOf({ sql }: TestApi, { accountId, appId }: TestApp): Promise<string> {
  const found = ownedTables.get(sql) ?? ownedTablesOf(sql);
  ownedTables.set(sql, found);
  const tables = await found;
  const parts = tables.map(
    ({
      name,
      by,
    }) => `select '${name}:' || coalesce(md5(string_agg(t::text, '|' order by t::text)), '') as hash
                         from ${name} t where ${by} = `,
  );
  const strings = parts.map((part, index) => (index === 0 ? part : ` union all ${part}`));
  const rows = await sql<{ hash: string }>(
    Object.assign([...strings, ''], { raw: [] as string[] }),
    ...tables.map(({ by }) => (by === 'account_id' ? accountId : appId)),
  );
  return rows.map(({ hash }) => hash).join('\n');
}
