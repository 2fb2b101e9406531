import * as z from 'zod';
import { cancelReprocessRun } from '../../db/reprocess.ts';
import {
  findListedRun,
  listPlans,
  listReprocessRuns,
  requestApplication,
  requestDryRun,
} from '../../db/reprocess-runs.ts';
import type { FoundRun, ListedPlan, ListedRun, Requested, RunRequest } from '../../db/reprocess-runs.ts';
import { isId } from '../../domain/ids.ts';
import { MAX_REQUESTED_DELIVERIES } from '../../domain/reprocess.ts';
import { workflowIdOf } from '../../domain/workflow-id.ts';
import type { HttpDeps } from '../deps.ts';
import * as enums from '../enum-fields.ts';
import { ApiError, foundOrThrow, invalidField, notFound } from '../errors.ts';
import { cents, count, epochMs, idOf, inputId, orNull, textField } from '../fields.ts';
import { instantInBody } from '../instants.ts';
import { decodeCursor, millisKey, pageSchema, pageQuery, presentPage, timeKey } from '../pagination.ts';
import { accountApp } from '../routing/callers.ts';
import { route } from '../routing/route.ts';
import { workflowUrl } from '../workflow-url.ts';

const MOST = MAX_REQUESTED_DELIVERIES.toLocaleString('en-US');

/** Exactly one of `deliveryId`, `from` and `apply` says what is to be done. */
const request = z
  .strictObject({
    deliveryId: inputId('delivery').optional().describe('A dry run of this delivery.'),
    from: instantInBody('A dry run of the deliveries that arrived at this time or later.').optional(),
    to: instantInBody(
      'With `from`: of those that arrived before this time. Defaults to now, and is now if it is later.',
    ).optional(),
    source: enums.provider.optional(),
    processingStatus: enums.deliveryOutcome.optional(),
    apply: inputId('reprocessRun')
      .optional()
      .describe('The id of a dry run that has finished: a run that applies what it showed.'),
  })
  .refine(
    ({ deliveryId, from, apply }) =>
      [deliveryId, from, apply].filter((value) => value !== undefined).length === 1,
    'Send exactly one of `deliveryId`, `from` and `apply`.',
  )
  .refine(
    ({ from, to, source, processingStatus }) =>
      from !== undefined || [to, source, processingStatus].every((value) => value === undefined),
    'Send `to`, `source` and `processingStatus` only with `from`.',
  )
  .meta({
    id: 'NewReprocessRun',
    description: 'What to process again: a delivery, a range of deliveries, or the result of a dry run.',
    examples: [{ from: 1_780_315_200_000, to: 1_781_524_800_000 }],
  });

export const run = z
  .object({
    id: idOf('reprocessRun', 'The id of the run.'),
    dryRun: z.boolean().describe('Whether the run only shows what it would append.'),
    applies: orNull(
      idOf('reprocessRun', 'The dry run whose result the run applies.'),
      'Null for a dry run, and for a run of the command line.',
    ),
    status: z
      .enum(['waiting', 'running', 'cancelling', 'finished', 'cancelled'])
      .describe(
        '`waiting` for a worker; `running`; `cancelling`: it completes the page that it has begun; `finished`; `cancelled`.',
      ),
    deliveryId: orNull(idOf('delivery'), 'Null for a range.'),
    from: orNull(epochMs('The beginning of the range, inclusive.'), 'Null without one.'),
    to: orNull(epochMs('The end of the range, exclusive.'), 'Null for one delivery.'),
    source: enums.provider.nullable().describe('Only deliveries of this provider. Null: of all.'),
    processingStatus: enums.deliveryOutcome
      .nullable()
      .describe('Only deliveries with this outcome. Null: with any.'),
    deliveries: count('How many deliveries it examines.'),
    seen: count('How many it has examined.'),
    changed: count('How many of them differ in anything from what is stored.'),
    applied: count('To how many of them something was appended.'),
    commissionCents: orNull(
      cents('Commissions: what a dry run would append so far, or what another run has appended.'),
      'Null for a run that appends until it has ended, and for runs of earlier releases.',
    ),
    revenueCents: orNull(
      cents('Revenue: what a dry run would append so far, or what another run has appended.'),
      'Null as `commissionCents`.',
    ),
    lastError: orNull(
      textField('the database does not respond', 'Why the last attempt failed. It is made again.'),
      'Null without one.',
    ),
    keyId: orNull(idOf('key', 'The key that requested it.'), 'Null for a run of the command line.'),
    createdAt: epochMs('When it was requested.'),
    finishedAt: orNull(epochMs('When it ended.'), 'Null until then.'),
    workflowUrl: orNull(
      textField(
        'https://temporal-ui.example.com/namespaces/default/workflows/reprocess%3Arpr_01',
        'The page of the workflow in the Temporal UI.',
      ),
      'Null without `TEMPORAL_UI_URL`.',
    ),
  })
  .meta({ id: 'ReprocessRun', description: 'Stored deliveries that are processed again.' });

const foundRun = run
  .extend({
    isApplicable: z
      .boolean()
      .describe(
        'Whether it is a dry run that has finished and shows something to append, which none of the latest 100 runs applies.',
      ),
  })
  .meta({ id: 'FoundReprocessRun', description: 'A reprocess run, and whether it can be applied.' });

const plan = z
  .object({
    deliveryId: idOf('delivery'),
    source: enums.provider,
    receivedAt: epochMs('When the webhook arrived.'),
    outcome: z
      .enum(['would_append', 'open', 'appended', 'refused', 'kept'])
      .describe(
        '`would_append`, in a dry run; `open` until it is appended; `appended`; `refused`, with the reason; `kept`: it differs, and what is stored stays.',
      ),
    refusal: orNull(
      textField(
        'What it would append has changed since the dry run. Start a new dry run.',
        'Why nothing was appended.',
      ),
      'Null unless it was refused.',
    ),
    changes: z
      .array(
        z.object({
          what: textField(
            'commission',
            'A fact (`event`, `payment`, …), a field of the event, `status`, `commission`, `revenue`, `cause`, `refused` or `nothing`.',
          ),
          stored: orNull(textField('failed', 'What is stored.'), 'Null if nothing is.'),
          today: orNull(
            textField('earning at 2000 bps', 'What the current code makes of it.'),
            'Null if it makes nothing of it.',
          ),
          appended: z
            .boolean()
            .describe('Whether it is added. Otherwise it differs, and what is stored stays.'),
          amountCents: orNull(cents('The commission or revenue.'), 'Null for anything else.'),
          affiliateId: orNull(idOf('affiliate'), 'Null unless it is an earning.'),
        }),
      )
      .describe('What differs from what is stored.'),
  })
  .meta({ id: 'ReprocessPlan', description: 'What processing one delivery again changes.' });

function statusOf({ finishedAt, isCancelled, isStarted }: ListedRun) {
  if (finishedAt !== null) return isCancelled ? ('cancelled' as const) : ('finished' as const);
  if (isCancelled) return 'cancelling' as const;
  return isStarted ? ('running' as const) : ('waiting' as const);
}

export function presentRun(row: ListedRun, temporalUi: HttpDeps['temporalUi']): z.input<typeof run> {
  return {
    id: row.id,
    dryRun: row.dryRun,
    applies: row.appliesRunId,
    status: statusOf(row),
    deliveryId: row.deliveryId,
    from: row.from,
    to: row.to,
    source: row.source,
    processingStatus: row.processingStatus,
    deliveries: row.deliveries,
    seen: row.seen,
    changed: row.changed,
    applied: row.applied,
    commissionCents: row.commissionCents,
    revenueCents: row.revenueCents,
    lastError: row.lastError,
    keyId: row.keyId,
    createdAt: row.createdAt,
    finishedAt: row.finishedAt,
    workflowUrl: workflowUrl(temporalUi, workflowIdOf('reprocess', row.id)),
  };
}

function presentFound(
  row: FoundRun | undefined,
  temporalUi: HttpDeps['temporalUi'],
): z.input<typeof foundRun> {
  const found = foundOrThrow(row);
  return { ...presentRun(found, temporalUi), isApplicable: found.isApplicable };
}

function outcomeOf({ appends, appliedAt, refusal }: ListedPlan, isDryRun: boolean) {
  if (refusal !== null) return 'refused' as const;
  if (!appends) return 'kept' as const;
  if (isDryRun) return 'would_append' as const;
  return appliedAt === null ? ('open' as const) : ('appended' as const);
}

function presentPlan(row: ListedPlan, isDryRun: boolean): z.input<typeof plan> {
  return {
    deliveryId: row.deliveryId,
    source: row.source,
    receivedAt: row.receivedAt,
    outcome: outcomeOf(row, isDryRun),
    refusal: row.refusal,
    changes: row.changes.map((change) => ({
      what: change.what,
      stored: change.stored,
      today: change.today,
      appended: change.action === 'append',
      amountCents: change.amountCents ?? null,
      affiliateId: change.affiliateId ?? null,
    })),
  };
}

const TOO_MANY = `More than ${MOST} deliveries are in the range. Choose a shorter one.`;
const NO_DELIVERY = 'Must be an accepted delivery of the app that has an outcome and whose body is stored.';
const NOT_APPLICABLE = `The run is no dry run, has not finished, was cancelled, or shows nothing to append.`;

async function requestRun(
  deps: HttpDeps,
  made: RunRequest,
  body: z.output<typeof request>,
  now: number,
): Promise<Requested> {
  const { apply, deliveryId, from, source = null, processingStatus = null } = body;
  // Deliveries that arrive later are not in the range, so that the run ends.
  const to = Math.min(body.to ?? now, now);
  if (apply !== undefined) {
    if (!isId('reprocessRun', apply)) throw notFound();
    const requested = await requestApplication(deps.sql, made, apply);
    if (requested.outcome === 'not_found') throw notFound();
    if (requested.outcome !== 'not_applicable' && requested.outcome !== 'too_many') return requested;
    throw new ApiError('reprocess_run_not_applicable', {
      detail:
        requested.outcome === 'too_many'
          ? `The run appends to more than ${MOST} deliveries. Apply it with the operator's command line.`
          : NOT_APPLICABLE,
    });
  }
  if (deliveryId !== undefined && !isId('delivery', deliveryId))
    throw invalidField('deliveryId', NO_DELIVERY);
  if (from !== undefined && from >= to) throw invalidField('from', 'Must be before `to`, and in the past.');
  const selection = { deliveryId: deliveryId ?? null, from: from ?? now, to, source, processingStatus };
  const requested = await requestDryRun(deps.sql, made, selection);
  if (requested.outcome === 'not_found') throw invalidField('deliveryId', NO_DELIVERY);
  if (requested.outcome === 'too_many') throw invalidField('from', TOO_MANY);
  return requested;
}

const runId = { reprocessRunId: 'reprocessRun' } as const;

export const reprocessRunRoutes = [
  route({
    method: 'POST',
    path: '/apps/:appId/reprocess-runs',
    caller: accountApp('setup'),
    operationId: 'createReprocessRun',
    summary: 'Processes stored deliveries again: first shows what would be appended, then appends it.',
    description:
      `\`deliveryId\` or \`from\` requests a dry run, which changes nothing, of at most ${MOST} deliveries. \`apply\` names a ` +
      'dry run that has finished, and requests a run that appends exactly what it showed. A delivery of which the current ' +
      'code would append anything else by then is refused, with both shown. Nothing that is stored is edited. An app has one ' +
      'run at a time.',
    body: request,
    response: { status: 201, schema: foundRun },
    errors: ['reprocess_run_in_progress', 'reprocess_run_not_applicable'],
    handler: async ({ deps, app, caller, body, idGenerator, now }) => {
      const made = { id: idGenerator.id('reprocessRun'), appId: app.id, keyId: caller.keyId };
      const requested = await requestRun(deps, made, body, now);
      if (requested.outcome === 'open') {
        throw new ApiError('reprocess_run_in_progress', {
          detail: `The run ${requested.id} is in progress. Wait for its end, or cancel it.`,
        });
      }
      return presentFound(await findListedRun(deps.sql, app.id, made.id), deps.temporalUi);
    },
  }),

  route({
    method: 'GET',
    path: '/apps/:appId/reprocess-runs',
    caller: accountApp('read'),
    operationId: 'listReprocessRuns',
    summary: 'Lists reprocess runs, latest first.',
    query: z.object(pageQuery),
    response: { status: 200, schema: pageSchema(run) },
    handler: async ({ deps, app, query }) => {
      const key = { list: 'reprocess-runs', appId: app.id, filters: {} };
      const after = decodeCursor(key, timeKey, query.cursor);
      const page = await listReprocessRuns(deps.sql, app.id, after, query.limit);
      return presentPage(key, page, (row) => presentRun(row, deps.temporalUi));
    },
  }),

  route({
    method: 'GET',
    path: '/apps/:appId/reprocess-runs/:reprocessRunId',
    caller: accountApp('read'),
    operationId: 'getReprocessRun',
    summary: 'Retrieves a reprocess run with its progress.',
    ids: runId,
    response: { status: 200, schema: foundRun },
    handler: async ({ deps, app, ids }) =>
      presentFound(await findListedRun(deps.sql, app.id, ids.reprocessRunId), deps.temporalUi),
  }),

  route({
    method: 'GET',
    path: '/apps/:appId/reprocess-runs/:reprocessRunId/changes',
    caller: accountApp('read'),
    operationId: 'listReprocessChanges',
    summary: 'Lists what a reprocess run would append, has appended or has refused, by delivery.',
    description: 'In the order in which the webhooks arrived. Deliveries without a difference have no row.',
    ids: runId,
    query: z.object(pageQuery),
    response: { status: 200, schema: pageSchema(plan) },
    handler: async ({ deps, app, ids, query }) => {
      const found = foundOrThrow(await findListedRun(deps.sql, app.id, ids.reprocessRunId));
      const key = { list: 'reprocess-changes', appId: app.id, filters: { run: found.id } };
      const after = decodeCursor(key, millisKey, query.cursor);
      const page = await listPlans(deps.sql, app.id, found.id, after, query.limit);
      return presentPage(key, page, (row) => presentPlan(row, found.dryRun));
    },
  }),

  route({
    method: 'POST',
    path: '/apps/:appId/reprocess-runs/:reprocessRunId/cancel',
    caller: accountApp('setup'),
    operationId: 'cancelReprocessRun',
    summary: 'Stops a reprocess run after its current page.',
    description: 'What it has appended remains. A run that has ended stays as it is.',
    ids: runId,
    response: { status: 200, schema: foundRun },
    handler: async ({ deps, app, ids }) => {
      foundOrThrow(await findListedRun(deps.sql, app.id, ids.reprocessRunId));
      await cancelReprocessRun(deps.sql, ids.reprocessRunId);
      return presentFound(await findListedRun(deps.sql, app.id, ids.reprocessRunId), deps.temporalUi);
    },
  }),
];
