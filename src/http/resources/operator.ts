import * as z from 'zod';
import { SERVICE_VERSION } from '../../config/service-version.ts';
import { readBacklog } from '../../db/backlog.ts';
import type { Backlog } from '../../db/backlog.ts';
import {
  accountExists,
  findRateGaps,
  listAccountPage,
  listStuckDeliveries,
  MOST_APPS,
  MOST_WAITING,
} from '../../db/installation-state.ts';
import type { ListedAccount, RateGap, StuckDelivery } from '../../db/installation-state.ts';
import { findNewerMigrations } from '../../db/newer-migrations.ts';
import { endOperatorSession, findOperatorSession, spendOperatorLink } from '../../db/operator-sessions.ts';
import type { OperatorSession } from '../../db/operator-sessions.ts';
import { listReprocessRuns } from '../../db/reprocess-runs.ts';
import type { ListedRun } from '../../db/reprocess-runs.ts';
import { createSignInLink } from '../../db/sessions.ts';
import { SIGN_IN_LINK_MS, signInUrl } from '../../domain/sessions.ts';
import { workflowIdOf } from '../../domain/workflow-id.ts';
import type { HttpDeps } from '../deps.ts';
import * as enums from '../enum-fields.ts';
import { notFound } from '../errors.ts';
import { count, epochMs, idOf, orNull, textField } from '../fields.ts';
import { decodeCursor, pageSchema, pageQuery, presentPage, timeKey } from '../pagination.ts';
import { operatorSession } from '../routing/callers.ts';
import { route } from '../routing/route.ts';
import { sessionCookie } from '../session-cookie.ts';
import { workflowUrl } from '../workflow-url.ts';
import { linkSessionRoutes } from './link-sessions.ts';
import { presentRun, run } from './reprocess-runs.ts';
import { endedSessions } from './sessions-views.ts';

const session = z
  .object({
    id: idOf('session'),
    createdAt: epochMs('When the session began.'),
    expiresAt: epochMs('When the session ends: after 12 hours.'),
  })
  .meta({ id: 'OperatorSession', description: 'A session of the operator.' });

const account = z
  .object({
    id: idOf('account'),
    name: textField('My company', 'The name of the account.'),
    createdAt: epochMs('When it was created.'),
    apps: count(`How many apps it has, counted up to ${MOST_APPS}.`),
    lastSignInAt: orNull(
      epochMs('When somebody last signed in to the console.'),
      'Null if nobody has in the last 30 days.',
    ),
  })
  .meta({ id: 'OperatorAccount', description: 'An account of the installation.' });

const signInLink = z
  .object({
    url: textField(
      'https://api.example.com/console/#token=k3l…',
      'The link to send to the founder. Returned only once.',
    ),
    expiresAt: epochMs('Until when the link signs in. It works once.'),
  })
  .meta({ id: 'FounderSignInLink', description: 'A link that signs a founder in.' });

const seconds = (description: string) =>
  z
    .number()
    .min(0)
    .meta({ description: `${description} In seconds; 0 without any.`, examples: [12] });

const state = z
  .object({
    checkedAt: epochMs('When the state was read.'),
    version: textField('0.2.0', 'The version of the process that responds.'),
    newerMigrations: z
      .array(textField('0158_creator_notes', 'The name of a migration.'))
      .describe(
        'Migrations of the database that the process does not know, because a newer version has run them. Empty once all processes are replaced.',
      ),
    readiness: z
      .array(
        z.object({
          name: textField('secrets', 'What was checked. Stable.'),
          ok: z.boolean().describe('Whether it is available.'),
          optional: z.boolean().describe('Whether the service still serves without it.'),
          detail: orNull(
            textField(
              'SECRETS_KEY lacks the key 1f0c of 3 webhook secrets: restore it, or set those webhook secrets again',
              'What is missing, and what to do. Names encryption keys by their ids.',
            ),
            'Null if it is available.',
          ),
        }),
      )
      .describe('What the process that responds depends on.'),
    backlog: z
      .object({
        unfinishedDeliveries: count('Accepted deliveries without an outcome.'),
        oldestUnfinishedSeconds: seconds('How long the oldest of them has waited.'),
        stuckDeliveries: count('Those of them of which a step has failed.'),
        overdueCommissions: count('Commissions that are due and still pending.'),
        oldestOverdueSeconds: seconds('How long ago the oldest of them was due.'),
        openPayoutRequests: count('Exports of payouts that are in progress.'),
        oldestPayoutRequestSeconds: seconds(
          'How long the oldest of them has waited. One of a payout run counts only once it has expired.',
        ),
        unhealedBindings: count('Users whose earlier payments are not evaluated yet.'),
        oldestUnhealedSeconds: seconds('How long the oldest of them has waited.'),
        dueWebhooks: count('Messages to endpoints of apps of which the next attempt is due.'),
        oldestDueWebhookSeconds: seconds('How long the oldest of them has waited.'),
      })
      .describe('Work that was accepted and is not done yet. Each number is counted up to 10,000.'),
    rateGaps: z
      .array(
        z.object({
          currency: textField('TRY', 'The currency, ISO 4217.'),
          payments: count(`How many payments wait, counted up to ${MOST_WAITING}.`),
          refundsAndDisputes: count(`How many refunds and disputes wait, counted up to ${MOST_WAITING}.`),
          firstDay: textField('2026-06-01', 'The first day of which a rate is missing.'),
          lastDay: textField('2026-06-15', 'The last day of which a rate is missing.'),
          latestRateDay: orNull(
            textField('2026-05-31', 'The latest day with a rate of the currency.'),
            'Null if it has none.',
          ),
        }),
      )
      .describe(
        'Currencies in which payments, or refunds and disputes in another currency than their payment, wait for an exchange rate.',
      ),
  })
  .meta({ id: 'InstallationState', description: 'What the installation needs, and what it lacks.' });

const stuckDelivery = z
  .object({
    id: idOf('delivery'),
    accountId: idOf('account'),
    appId: idOf('app'),
    source: enums.provider,
    receivedAt: epochMs('When the webhook arrived.'),
    cause: textField('permission denied for table commissions', 'Why the step failed last.'),
    step: orNull(
      textField('writeCommission', 'The step that fails.'),
      'Null if Temporal does not say: it is unavailable, or the step is between two attempts.',
    ),
    attempt: orNull(count('The number of the attempt that runs or comes next.'), 'Null as `step`.'),
    workflowId: textField('delivery:del_01', 'The id of the Temporal workflow.'),
    workflowUrl: orNull(
      textField(
        'https://temporal-ui.example.com/namespaces/default/workflows/delivery%3Adel_01',
        'The page of the workflow in the Temporal UI.',
      ),
      'Null without `TEMPORAL_UI_URL`.',
    ),
  })
  .meta({
    id: 'StuckDelivery',
    description: 'A delivery of which a step fails. It is retried until it succeeds.',
  });

/** Leaves out the money of the run and what names data of the app, such as its key and deliveries. */
const operatorRun = z
  .object({
    appId: idOf('app'),
    requestedBy: z.enum(['api', 'command_line']).describe('How the run was requested.'),
    ...run.pick({
      id: true,
      dryRun: true,
      status: true,
      deliveries: true,
      seen: true,
      changed: true,
      applied: true,
      lastError: true,
      createdAt: true,
      finishedAt: true,
      workflowUrl: true,
    }).shape,
  })
  .meta({ id: 'OperatorReprocessRun', description: 'The progress of a reprocess run, and its app.' });

/** How many stuck deliveries are listed. Temporal is asked about each. */
const MOST_STUCK = 20;

function presentSession({ id, createdAt, expiresAt }: OperatorSession) {
  return { id, createdAt, expiresAt };
}

function presentAccount(row: ListedAccount) {
  return {
    id: row.id,
    name: row.name,
    createdAt: row.createdAt,
    apps: row.apps,
    lastSignInAt: row.lastSignInAt,
  };
}

function presentGap(row: RateGap) {
  return {
    currency: row.currency,
    payments: row.payments,
    refundsAndDisputes: row.adjustments,
    firstDay: row.firstDay,
    lastDay: row.lastDay,
    latestRateDay: row.latestRateDay,
  };
}

function presentBacklog(backlog: Backlog): z.input<typeof state>['backlog'] {
  return {
    unfinishedDeliveries: backlog.unfinishedDeliveries,
    oldestUnfinishedSeconds: backlog.oldestUnfinishedSeconds,
    stuckDeliveries: backlog.stuckDeliveries,
    overdueCommissions: backlog.overdueCommissions,
    oldestOverdueSeconds: backlog.oldestOverdueSeconds,
    openPayoutRequests: backlog.openPayoutRequests,
    oldestPayoutRequestSeconds: backlog.oldestPayoutRequestSeconds,
    unhealedBindings: backlog.unhealedBindings,
    oldestUnhealedSeconds: backlog.oldestUnhealedSeconds,
    dueWebhooks: backlog.dueWebhooks,
    oldestDueWebhookSeconds: backlog.oldestDueWebhookSeconds,
  };
}

function presentOperatorRun(row: ListedRun, temporalUi: HttpDeps['temporalUi']): z.input<typeof operatorRun> {
  const shown = presentRun(row, temporalUi);
  return {
    appId: row.appId,
    requestedBy: row.keyId === null ? 'command_line' : 'api',
    id: shown.id,
    dryRun: shown.dryRun,
    status: shown.status,
    deliveries: shown.deliveries,
    seen: shown.seen,
    changed: shown.changed,
    applied: shown.applied,
    lastError: shown.lastError,
    createdAt: shown.createdAt,
    finishedAt: shown.finishedAt,
    workflowUrl: shown.workflowUrl,
  };
}

async function presentStuck(row: StuckDelivery, { pendingStep, temporalUi }: HttpDeps) {
  const workflowId = workflowIdOf('delivery', row.id);
  const pending = (await pendingStep?.(workflowId)) ?? null;
  return {
    id: row.id,
    accountId: row.accountId,
    appId: row.appId,
    source: row.source,
    receivedAt: row.receivedAt,
    cause: row.lastError,
    step: pending?.step ?? null,
    attempt: pending?.attempt ?? null,
    workflowId,
    workflowUrl: workflowUrl(temporalUi, workflowId),
  };
}

/** Lists of the operator belong to no app. */
const listKey = (list: string) => ({ list, appId: '', filters: {} });

export const operatorRoutes = [
  ...linkSessionRoutes({
    kind: 'operator',
    whose: 'the operator',
    name: 'Operator',
    description: 'The command `tributary console --operator` prints the link, which works once.',
    schema: session,
    present: presentSession,
    find: findOperatorSession,
    spend: spendOperatorLink,
    end: async (sql, ended, now) => await endOperatorSession(sql, ended.id, now),
    refusal:
      'The link was used before, or its time is over. Create a new one with `npm run -s admin -- console --operator`.',
  }),

  route({
    method: 'POST',
    path: '/operator/session/end',
    caller: operatorSession,
    operationId: 'signOutOperator',
    summary: 'Signs this browser out.',
    response: {
      status: 200,
      schema: endedSessions,
      headers: { 'Set-Cookie': 'Removes the cookie of the session.' },
    },
    handler: async ({ ctx, deps, session: current, now }) => {
      await endOperatorSession(deps.sql, current.id, now);
      ctx.set(sessionCookie(deps.publicUrl, null, 'operator'));
      return { ended: 1 };
    },
  }),

  route({
    method: 'GET',
    path: '/operator/state',
    caller: operatorSession,
    operationId: 'getInstallationState',
    summary: 'Retrieves what the installation depends on, its backlog and gaps in exchange rates.',
    response: { status: 200, schema: state },
    handler: async ({ deps, now }) => {
      const readiness = await deps.readiness();
      const newerMigrations = await findNewerMigrations(deps.sql);
      const backlog = await readBacklog(deps.sql);
      const gaps = await findRateGaps(deps.sql);
      return {
        checkedAt: now,
        version: SERVICE_VERSION,
        newerMigrations,
        readiness: readiness.map(({ name, ok, optional, detail }) => ({ name, ok, optional, detail })),
        backlog: presentBacklog(backlog),
        rateGaps: gaps.map(presentGap),
      };
    },
  }),

  route({
    method: 'GET',
    path: '/operator/accounts',
    caller: operatorSession,
    operationId: 'listAccounts',
    summary: 'Lists the accounts, latest first.',
    query: z.object(pageQuery),
    response: { status: 200, schema: pageSchema(account) },
    handler: async ({ deps, query }) => {
      const key = listKey('operator-accounts');
      const after = decodeCursor(key, timeKey, query.cursor);
      return presentPage(key, await listAccountPage(deps.sql, after, query.limit), presentAccount);
    },
  }),

  route({
    method: 'POST',
    path: '/operator/accounts/:accountId/sign-in-links',
    caller: operatorSession,
    operationId: 'createFounderSignInLink',
    summary: 'Creates a link that signs a founder in to an account.',
    description:
      'The link works once and for 15 minutes. Its session holds the key of the account for sign-in links.',
    ids: { accountId: 'account' },
    response: { status: 201, schema: signInLink },
    handler: async ({ deps, ids, now }) => {
      if (!(await accountExists(deps.sql, ids.accountId))) throw notFound();
      const token = await createSignInLink(deps.sql, ids.accountId, { now, validMs: SIGN_IN_LINK_MS });
      return { url: signInUrl(deps.publicUrl, token, { isNew: false }), expiresAt: now + SIGN_IN_LINK_MS };
    },
  }),

  route({
    method: 'GET',
    path: '/operator/stuck-deliveries',
    caller: operatorSession,
    operationId: 'listStuckDeliveries',
    summary: 'Lists deliveries of which a step fails, the one that has waited longest first.',
    description: `Returns at most ${MOST_STUCK}. They are retried until they succeed.`,
    response: {
      status: 200,
      schema: z
        .object({ deliveries: z.array(stuckDelivery).describe('The deliveries that wait longest.') })
        .meta({ id: 'StuckDeliveryList', description: 'Deliveries of which a step fails.' }),
    },
    handler: async ({ deps }) => {
      const rows = await listStuckDeliveries(deps.sql, MOST_STUCK);
      return { deliveries: await Promise.all(rows.map(async (row) => await presentStuck(row, deps))) };
    },
  }),

  route({
    method: 'GET',
    path: '/operator/reprocess-runs',
    caller: operatorSession,
    operationId: 'listAllReprocessRuns',
    summary: 'Lists the reprocess runs of all apps, latest first.',
    query: z.object(pageQuery),
    response: { status: 200, schema: pageSchema(operatorRun) },
    handler: async ({ deps, query }) => {
      const key = listKey('operator-reprocess-runs');
      const after = decodeCursor(key, timeKey, query.cursor);
      const page = await listReprocessRuns(deps.sql, null, after, query.limit);
      return presentPage(key, page, (row) => presentOperatorRun(row, deps.temporalUi));
    },
  }),
];
