import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { projectRoot } from '../../src/config/project-root.ts';
import { send } from './answers.ts';
import { creatorName, expectedBooks } from './books.ts';
import type { ExpectedPayment } from './books.ts';
import { exportRequest } from './load.ts';
import { READERS } from './listeners.ts';
import type { Listeners } from './listeners.ts';
import type { Load, ReceivedPayout, Tenant } from './load.ts';
import { alertProblems, mailProblems, messageProblems } from './message-checks.ts';
import type { StoredAlert, StoredMail, StoredMessage } from './message-checks.ts';
import type { PayingFounder } from './payout-runs.ts';
import { RUN_APPS } from './plan.ts';
import type { Plan, Story } from './plan.ts';
import { runProblems } from './run-checks.ts';
import type { StoredFile, StoredItem, StoredPayout, StoredRun } from './run-checks.ts';
import { evaluateAlerts } from './silences.ts';
import type { Silences } from './silences.ts';
import { MAIL_DOMAIN } from './stack.ts';
import type { Stack } from './stack.ts';

const run = promisify(execFile);
/** How many differences of a kind are named. */
const MOST_NAMED = 10;
const PAYOUTS_TO_PROVE = 5;
/** How many openings of alerts about the same are mailed in a day; the last one says so, and its end is not mailed. */
const MAILED_A_DAY = 3;

/** A provider of an app of which so many requests were refused that an alert opens. */
interface RefusedProvider {
  readonly appId: string;
  readonly provider: string;
}

export interface Run {
  readonly plan: Plan;
  /** All that was sent. */
  readonly stories: readonly Story[];
  /** Epoch ms of the start of the run. */
  readonly epoch: number;
  readonly stack: Stack;
  readonly tenant: Tenant;
  readonly load: Load;
  readonly founders: readonly PayingFounder[];
  readonly silences: Silences;
  readonly listeners: Listeners;
  /** Known when the causes of alerts have ended. */
  refused: readonly RefusedProvider[];
  readonly folder: string;
}

const sha256 = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex');

/** What is not finished yet, from the rows. */
async function unfinished({ stack }: Run): Promise<Record<string, number>> {
  return await stack.sql().one<Record<string, number>>`
    select (select count(*)::int from deliveries where completed_at is null) as deliveries,
           (select count(*)::int from bindings where healed_at is null) as heals,
           (select count(*)::int from payments where recheck_since is not null) as rechecks,
           (select count(*)::int from commissions where status = 'pending' and due_at <= now()) as overdue,
           (select count(*)::int from payout_requests where status = 'open') as exports,
           (select count(*)::int from payouts p where not exists (select from payout_chain c where c.payout_id = p.id)) as unchained,
           (select count(*)::int from payout_runs where status = 'approved') as runs`;
}

/** Mails and messages of outgoing webhooks that wait for an attempt. */
async function waitingMessages({ stack }: Run): Promise<Record<string, number>> {
  return await stack.sql().one<Record<string, number>>`
    select (select count(*)::int from emails where status = 'queued') as mails,
           (select count(*)::int from webhook_messages where status = 'pending') as messages`;
}

/**
 * Waits until nothing is left to do, with `hasMessages` also until no mail or outgoing webhook waits for an attempt. Returns how long it
 * took, or the work that is left after the limit.
 */
export async function settle(
  one: Run,
  limitMs: number,
  hasMessages = false,
): Promise<{ readonly tookMs: number; readonly left: Readonly<Record<string, number>> }> {
  const startedAt = Date.now();
  for (;;) {
    const counts = { ...(await unfinished(one)), ...(hasMessages ? await waitingMessages(one) : {}) };
    const left = Object.fromEntries(Object.entries(counts).filter(([, n]) => n > 0));
    const tookMs = Date.now() - startedAt;
    if (Object.keys(left).length === 0 || tookMs > limitMs) return { tookMs, left };
    await sleep(500);
  }
}

/** Names the first differences of a kind, and how many there are. */
function named(what: string, differences: readonly string[]): string[] {
  const more = differences.length - MOST_NAMED;
  return [
    ...differences.slice(0, MOST_NAMED).map((difference) => `${what}: ${difference}`),
    ...(more > 0 ? [`${what}: ${more} more`] : []),
  ];
}

/** Every event of the plan was accepted, so it has exactly one row, and every click too. */
async function checkFacts({ stories, tenant, stack, load }: Run): Promise<string[]> {
  const sql = stack.sql();
  const facts = stories.flatMap(({ app, facts: all }) =>
    all.flatMap((fact) => (fact.kind === 'event' ? [`${tenant.apps[app]?.id} ${fact.event.eventId}`] : [])),
  );
  const rows = await sql<{ name: string; n: number }>`
    select app_id || ' ' || source_event_id as name, count(*)::int as n from events group by 1`;
  const found = new Map(rows.map(({ name, n }) => [name, n]));
  const forged = await sql`select from events where source_event_id like '%forged'`;
  const { clicks } = await sql.one<{ clicks: number }>`
    select count(*)::int as clicks from clicks where claim_token = any(${load.clicks}::text[]::uuid[])`;
  const failed = await sql<{ status: string; error: string | null }>`
    select processing_status as status, last_error as error from deliveries
     where signature_valid and processing_status not in ('processed', 'duplicate')`;
  return [
    ...named(
      'an accepted event has no row of its own',
      facts.filter((name) => found.get(name) !== 1).map((name) => `${name}: ${found.get(name) ?? 0} rows`),
    ),
    ...named(
      'an event is in the ledger that nobody sent',
      [...found.keys()].filter((name) => !facts.includes(name)),
    ),
    ...named('a forged event was accepted', forged.map(String)),
    ...(clicks === load.clicks.length
      ? []
      : [`${load.clicks.length} clicks were answered, ${clicks} are stored`]),
    ...named(
      'a delivery has an outcome that its event does not have',
      failed.map((row) => JSON.stringify(row)),
    ),
  ];
}

const text = (payment: Pick<ExpectedPayment, 'creator' | 'earned' | 'net' | 'revenue'>) =>
  `${payment.creator ?? 'nobody'}, earned ${payment.earned}, net ${payment.net}, revenue ${payment.revenue}`;
const sum = (list: readonly ExpectedPayment[]) => list.reduce((total, { net }) => total + net, 0);

/** The ledger has the books of the model, payment by payment and creator by creator. */
async function checkBooks(one: Run): Promise<string[]> {
  const { plan, stories, epoch, tenant, stack } = one;
  const sql = stack.sql();
  const expected = expectedBooks(plan, stories, epoch);
  const names = new Map([...tenant.creators].map(([name, id]) => [id, name]));
  const rows = await sql<{
    appId: string;
    ref: string;
    affiliateId: string | null;
    earned: number;
    net: number;
    revenue: number;
  }>`
    select p.app_id, p.ref, t.affiliate_id, p.earned_cents as earned,
           coalesce((select sum(c.amount_cents)::bigint from commissions c where c.payment_id = p.id), 0) as net,
           coalesce((select sum(v.amount_cents)::bigint from revenue_entries v where v.payment_id = p.id), 0) as revenue
      from payments p
      left join bindings b on b.id = p.binding_id
      left join attributions t on t.id = b.attribution_id
     where p.environment = 'production'`;
  const actual = new Map(
    rows.map(({ appId, ref, affiliateId, ...row }) => [
      `${appId} ${ref}`,
      text({ ...row, creator: affiliateId === null ? null : (names.get(affiliateId) ?? affiliateId) }),
    ]),
  );
  const payments = expected.flatMap((payment) => {
    const name = `${tenant.apps[payment.app]?.id} ${payment.ref}`;
    const found = actual.get(name) ?? 'no payment';
    actual.delete(name);
    return found === text(payment) ? [] : [`${name} is ${found}; the model has ${text(payment)}`];
  });

  const now = Date.now();
  const creators: string[] = [];
  for (const [name, id] of tenant.creators) {
    const mine = expected.filter(({ creator }) => creator === name);
    const found = await sql.one<{ net: number; paid: number; items: number; pending: number }>`
      select coalesce((select sum(amount_cents)::bigint from commissions where affiliate_id = ${id}), 0) as net,
             coalesce((select sum(total_cents)::bigint from payouts where affiliate_id = ${id}), 0) as paid,
             coalesce((select sum(amount_cents)::bigint from payout_items where affiliate_id = ${id}), 0) as items,
             coalesce((select sum(amount_cents)::bigint from commissions
                        where affiliate_id = ${id} and status <> 'paid'), 0) as pending`;
    const due = sum(mine.filter(({ dueAt }) => dueAt <= now));
    const entries = one.founders
      .flatMap((founder) => founder.entries)
      .filter(({ app, creator }) => creatorName(app, creator) === name)
      .reduce((total, { cents }) => total + cents, 0);
    const paid = due + entries;
    const wanted = { net: sum(mine) + entries, paid, items: paid, pending: sum(mine) - due };
    for (const [key, value] of Object.entries(wanted)) {
      const is = found[key as keyof typeof found];
      if (is !== value) creators.push(`${name} has ${key} ${is}; the model has ${value}`);
    }
  }
  return [
    ...named('payment', payments),
    ...named('a payment is in the ledger that nobody reported', [...actual.keys()]),
    ...named('creator', creators),
  ];
}

/** The same request has the same bytes again, from every process, by its key and by the id of the payout. */
async function checkPayoutBytes({ stack, tenant, load }: Run): Promise<string[]> {
  const differences: string[] = [];
  const authorization = `Bearer ${tenant.key}`;
  const ask = async (payout: ReceivedPayout) => {
    const { app, affiliateId, key, payoutId, csv } = payout;
    for (const { base } of stack.processes) {
      const again = [];
      if (key !== null) {
        const [route, options] = exportRequest(tenant, app, affiliateId, key);
        again.push(await send(base, 'POST', route, options));
      }
      if (payoutId !== undefined) {
        const stored = `/apps/${tenant.apps[app]?.id}/payouts/${payoutId}/csv`;
        again.push(await send(base, 'GET', stored, { headers: { authorization } }));
      }
      for (const { status, body, payoutId: id } of again)
        if (status !== 200 || id !== payoutId || !body.equals(csv))
          differences.push(
            `${key ?? 'the payout of a run'} was ${payoutId} ${sha256(csv)}, and is ${status} ${id} ${sha256(body)} at ${base}`,
          );
    }
  };
  const queue = [...load.payouts];
  await Promise.all(
    Array.from({ length: 8 }, async () => {
      for (let next = queue.pop(); next !== undefined; next = queue.pop()) await ask(next);
    }),
  );
  return named('a payout is not the same twice', differences);
}

/** No commission is in two payouts, and the offline verifier proves the chain and some CSVs. */
async function checkPayouts({ stack, tenant, load, folder }: Run): Promise<string[]> {
  const sql = stack.sql();
  const twice = await sql<{ id: string }>`
    select commission_id as id from payout_items group by 1 having count(*) > 1`;
  const ids = await sql<{ id: string }>`select id from payouts`;
  const known = new Set(load.payouts.map(({ payoutId }) => payoutId));
  const problems = [
    ...named(
      'a commission is in two payouts',
      twice.map(({ id }) => id),
    ),
    // A payout whose answer was lost belongs to a key that was sent again until it was answered.
    ...named(
      'a payout was paid and never delivered',
      ids.filter(({ id }) => !known.has(id)).map(({ id }) => id),
    ),
  ];
  for (const [app, { id }] of tenant.apps.entries()) {
    const chain = path.join(folder, `payouts-${app}.json`);
    const listed = await stack.admin('payouts', 'chain', '--app', id);
    await writeFile(chain, listed);
    const hashes = new Set((JSON.parse(listed) as { csvSha256: string }[]).map(({ csvSha256 }) => csvSha256));
    const paid = load.payouts.filter((payout) => payout.app === app && payout.payoutId !== undefined);
    const missing = paid.filter(({ csv }) => !hashes.has(sha256(csv))).map(({ payoutId }) => payoutId ?? '');
    problems.push(...named('a CSV is not in the chain', missing));
    for (const [n, { csv }] of paid.slice(-PAYOUTS_TO_PROVE).entries()) {
      const file = path.join(folder, `payout-${app}-${n}.csv`);
      await writeFile(file, csv);
      await run(process.execPath, [path.join(projectRoot, 'tools/verify-payout.mjs'), id, file, chain]).catch(
        (error: unknown) => void problems.push(`the verifier of payouts: ${String(error)}`),
      );
    }
  }
  return problems;
}

/** Every payout run has paid what was approved, in its files too, and nobody twice. */
async function checkRuns({ stack, load, founders }: Run): Promise<string[]> {
  const sql = stack.sql();
  const runs = await sql<StoredRun>`
    select id, kind, status, item_count, total_cents::float8, paid_count, paid_cents::float8 from payout_runs`;
  const items = await sql<StoredItem>`
    select i.id, i.run_id, i.expected_cents::float8, coalesce(i.payout_id, q.payout_id) as payout_id,
           coalesce(i.resend_result = 'resent', q.status = 'paid', false) as is_filed
      from payout_run_items i left join payout_requests q on q.id = i.request_id`;
  const files = await sql<StoredFile>`
    select id, run_id, row_count, total_cents::float8, encode(sha256, 'hex') as sha256 from payout_run_files`;
  const payouts = await sql<StoredPayout>`
    select p.id, p.total_cents::float8, (select sum(amount_cents) from payout_items i where i.payout_id = p.id)::float8 as items_cents,
           (select state from payout_transfers t where t.payout_id = p.id order by position desc limit 1) as stated
      from payouts p`;
  const exported = new Set(
    load.payouts.flatMap(({ key, payoutId }) => (key === null ? [] : [payoutId ?? ''])),
  );
  const known = founders.flatMap((founder) => founder.runs);
  const payments = founders.flatMap(({ rail }) => rail.payments);
  return [
    ...named(
      'what a founder saw',
      founders.flatMap(({ problems }) => problems),
    ),
    ...named(
      'money was sent twice',
      founders.flatMap(({ rail }) => rail.sentTwice),
    ),
    ...named('payout runs', runProblems({ runs, items, files, payouts, known, exported, payments })),
  ];
}

const ALERTS_LIMIT_MS = 120_000;

/** Ends the causes of all alerts: no request was refused for hours, as it seems. Waits until they are closed, and says how it was before. */
export async function endAlerts({ stack, silences }: Run): Promise<readonly RefusedProvider[]> {
  const sql = stack.sql();
  await silences.end();
  const refused = await sql<RefusedProvider>`
    select app_id, provider from deliveries where refused_hour is not null group by 1, 2 having sum(refused_count) >= 3`;
  const until = async (isDone: (open: number) => boolean) => {
    for (const endsAt = Date.now() + ALERTS_LIMIT_MS; Date.now() < endsAt; await sleep(1_000)) {
      await evaluateAlerts(stack);
      const { open } = await sql.one<{ open: number }>`
        select count(*)::int as open from alerts where rule = 'webhooks_refused' and closed_at is null`;
      if (isDone(open)) return;
    }
  };
  await until((open) => open >= refused.length);
  await sql`
    update deliveries set refused_hour = refused_hour - interval '5 hours', received_at = received_at - interval '5 hours'
     where refused_hour is not null`;
  await until((open) => open === 0);
  return refused;
}

/** Each alert has one cause and is closed, and each mail and message about it, about a payee and about a payout exists and arrived once. */
async function checkMessages({
  stack,
  tenant,
  silences,
  founders,
  listeners,
  refused,
}: Run): Promise<string[]> {
  const sql = stack.sql();
  const alerts = await sql<StoredAlert>`
    select id, app_id, rule, subject, opened_at, closed_at from alerts order by opened_at, id`;
  const mails = await sql<StoredMail>`
    select id, kind, subject_id, status, attempts, last_problem, ended_at from emails`;
  const payees = await sql<{ id: string }>`select id from payees`;
  const statements = await sql<{ id: string }>`select id from payout_transfers where state = 'sent'`;
  const apps = new Set(RUN_APPS.map((app) => tenant.apps[app]?.id));
  const earlier = new Map<string, number>();
  const ofAlerts = alerts
    .filter(({ appId }) => apps.has(appId))
    .flatMap(({ id, appId, rule, subject, closedAt }) => {
      const name = `${appId} ${rule} ${subject}`;
      const before = earlier.get(name) ?? 0;
      earlier.set(name, before + 1);
      const count = READERS.length;
      return [
        { kind: 'alert_opened', subject: id, count: before < MAILED_A_DAY ? count : 0 },
        {
          kind: 'alert_closed',
          subject: id,
          count: before < MAILED_A_DAY - 1 && closedAt !== null ? count : 0,
        },
      ];
    });
  const versions = founders.reduce((all, { payeeVersions }) => all + payeeVersions, 0);
  const endpoints = await sql<{ id: string; appId: string; isSlack: boolean }>`
    select id, app_id, is_slack from webhook_endpoints`;
  const messages =
    await sql<StoredMessage>`select id, endpoint_id, type, subject_id, status from webhook_messages`;
  const payouts = await sql<{ id: string; appId: string }>`select id, app_id from payouts`;
  const wanted = endpoints.flatMap(({ id: endpointId, appId, isSlack }) => [
    ...(isSlack ? [] : payouts)
      .filter((payout) => payout.appId === appId)
      .map(({ id }) => ({ endpointId, type: 'payout.created', subjectId: id })),
    ...alerts
      .filter((alert) => alert.appId === appId)
      .flatMap(({ id, closedAt }) => [
        { endpointId, type: 'alert.opened', subjectId: id },
        ...(closedAt === null ? [] : [{ endpointId, type: 'alert.closed', subjectId: id }]),
      ]),
  ]);
  const slackEndpoints = new Set(endpoints.filter(({ isSlack }) => isSlack).map(({ id }) => id));
  const ofSlack = messages.filter(({ endpointId }) => slackEndpoints.has(endpointId)).length;
  return [
    ...named('alerts', alertProblems({ alerts, silences: silences.ended, refused })),
    ...named(
      'mails',
      mailProblems({
        mails,
        received: listeners.mail.received,
        domain: MAIL_DOMAIN,
        wanted: [
          ...ofAlerts,
          ...payees.map(({ id }) => ({ kind: 'payee_changed', subject: id, count: 1 })),
          ...statements.map(({ id }) => ({ kind: 'payout_sent', subject: id, count: 1 })),
        ],
      }),
    ),
    ...(payees.length === versions
      ? []
      : [`${versions} payees were set, and ${payees.length} versions are stored`]),
    ...named(
      'outgoing webhooks',
      messageProblems({
        messages,
        receivedIds: new Set(listeners.webhooks.received.map(({ id }) => id)),
        slackEndpoints,
        wanted,
      }),
    ),
    ...(listeners.slack.received.length >= ofSlack
      ? []
      : [`Slack got ${listeners.slack.received.length} of ${ofSlack} messages`]),
  ];
}

/** How much of payout runs, mails and alerts there was. */
export async function describeRuns({ stack, founders, listeners, silences }: Run): Promise<string> {
  const counts = await stack.sql().one<Record<string, number>>`
    select (select count(*)::int from payout_runs where status = 'settled') as "settled runs",
           (select count(*)::int from payout_runs where status = 'settled' and kind = 'resend') as "resend runs",
           (select count(*)::int from payout_runs where stopped_at is not null) as "stopped runs",
           (select count(*)::int from payout_runs where status = 'cancelled') as "cancelled drafts",
           (select count(*)::int from payouts) as payouts,
           (select count(*)::int from payout_requests q join payout_run_items i on i.request_id = q.id and q.status = 'paid') as "payouts of runs",
           (select count(*)::int from payout_run_items i left join payout_requests q on q.id = i.request_id
             join payout_runs r on r.id = i.run_id and r.status = 'settled'
             where not coalesce(i.resend_result = 'resent', q.status = 'paid', false)) as "items not paid",
           (select count(*)::int from payout_run_files) as files,
           (select count(*)::int from payout_file_downloads) as downloads,
           (select count(*)::int from emails where status = 'sent') as "mails sent",
           (select count(*)::int from emails where status = 'sent' and attempts > 1) as "mails of several attempts",
           (select count(*)::int from emails where status = 'failed') as "mails that were outdated",
           (select count(*)::int from webhook_messages) as "outgoing webhooks",
           (select count(*)::int from alerts) as alerts`;
  const inAll = (part: (founder: PayingFounder) => number) =>
    founders.reduce((all, one) => all + part(one), 0);
  const all = {
    ...counts,
    'mails at the server': listeners.mail.received.length,
    silences: silences.ended.length,
    'reports imported': inAll(({ imports }) => imports),
    payments: inAll(({ rail }) => rail.payments.length),
    entries: inAll(({ entries }) => entries.length),
  };
  return Object.entries(all)
    .map(([name, n]) => `${name}: ${n}`)
    .join(', ');
}

/** The operator's own checks find nothing. */
async function checkCommands({ stack }: Run): Promise<string[]> {
  const problems: string[] = [];
  for (const command of [
    ['ledger', 'check'],
    ['rollups', 'check'],
  ] as const) {
    await stack
      .admin(...command)
      .catch(
        (error: unknown) =>
          void problems.push(
            `${command.join(' ')}: ${(error as { stdout?: string }).stdout ?? String(error)}`,
          ),
      );
  }
  return problems;
}

/** Pays every creator what is left, with several calls at once at every process. */
export async function payTheRest({ plan, stack, load }: Run): Promise<void> {
  await Promise.all(
    plan.apps.flatMap((creators, app) =>
      creators.flatMap((_, creator) =>
        stack.processes.map(async (__, n) => await load.pay(app, creator, `last-${app}-${creator}-${n}`, n)),
      ),
    ),
  );
}

/** Checks everything that must hold at the end. Returns what does not. */
export async function checkAll(one: Run): Promise<string[]> {
  const problems = named('a client got an answer that it should not get', one.load.answers.bad);
  problems.push(...one.stack.processes.flatMap(({ base, crashes }) => named(base, crashes)));
  const checks = [
    checkFacts,
    checkBooks,
    checkPayoutBytes,
    checkPayouts,
    checkRuns,
    checkMessages,
    checkCommands,
  ];
  for (const check of checks) problems.push(...(await check(one)));
  return problems;
}
