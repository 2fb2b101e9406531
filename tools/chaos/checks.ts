import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { projectRoot } from '../../src/config/project-root.ts';
import { send } from './answers.ts';
import { expectedBooks } from './books.ts';
import type { ExpectedPayment } from './books.ts';
import { exportRequest } from './load.ts';
import type { Load, ReceivedPayout, Tenant } from './load.ts';
import type { Plan, Story } from './plan.ts';
import type { Stack } from './stack.ts';

const run = promisify(execFile);
/** How many differences of a kind are named. */
const MOST_NAMED = 10;
const PAYOUTS_TO_PROVE = 5;

export interface Run {
  readonly plan: Plan;
  /** All that was sent. */
  readonly stories: readonly Story[];
  /** Epoch ms of the start of the run. */
  readonly epoch: number;
  readonly stack: Stack;
  readonly tenant: Tenant;
  readonly load: Load;
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
           (select count(*)::int from payouts p where not exists (select from payout_chain c where c.payout_id = p.id)) as unchained`;
}

/** Waits until nothing is left to do. Returns how long it took, or the work that is left after the limit. */
export async function settle(
  one: Run,
  limitMs: number,
): Promise<{ readonly tookMs: number; readonly left: Readonly<Record<string, number>> }> {
  const startedAt = Date.now();
  for (;;) {
    const left = Object.fromEntries(Object.entries(await unfinished(one)).filter(([, n]) => n > 0));
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
async function checkBooks({ plan, stories, epoch, tenant, stack }: Run): Promise<string[]> {
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
    const wanted = { net: sum(mine), paid: due, items: due, pending: sum(mine) - due };
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
      const [route, options] = exportRequest(tenant, app, affiliateId, key);
      const again = [await send(base, 'POST', route, options)];
      if (payoutId !== undefined) {
        const stored = `/apps/${tenant.apps[app]?.id}/payouts/${payoutId}/csv`;
        again.push(await send(base, 'GET', stored, { headers: { authorization } }));
      }
      for (const { status, body, payoutId: id } of again)
        if (status !== 200 || id !== payoutId || !body.equals(csv))
          differences.push(
            `${key} was ${payoutId} ${sha256(csv)}, and is ${status} ${id} ${sha256(body)} at ${base}`,
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
    const missing = paid.filter(({ csv }) => !hashes.has(sha256(csv))).map(({ key }) => key);
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
  for (const check of [checkFacts, checkBooks, checkPayoutBytes, checkPayouts, checkCommands])
    problems.push(...(await check(one)));
  return problems;
}
