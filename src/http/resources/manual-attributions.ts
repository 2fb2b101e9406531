import * as z from 'zod';
import { attributeByHand, MOST_WAITING_PAYMENTS } from '../../commands/attribute-by-hand.ts';
import type { AttributionByHand, AttributionByHandResult } from '../../commands/attribute-by-hand.ts';
import { listManualAttributions } from '../../db/manual-attributions.ts';
import type { ManualAttribution } from '../../db/manual-attributions.ts';
import type { App } from '../../db/apps.ts';
import { isId } from '../../domain/ids.ts';
import type { AffiliateId } from '../../domain/ids.ts';
import { DAY_MS } from '../../domain/time.ts';
import { isPlaceholder } from '../../domain/user-ids.ts';
import type { Caller } from '../authenticate.ts';
import type { HttpDeps } from '../deps.ts';
import { ApiError, invalidField, notFound } from '../errors.ts';
import {
  cents,
  count,
  currency,
  customerUserId,
  epochMs,
  exampleId,
  idOf,
  inputId,
  nameOfAffiliate,
  orNull,
  presentedUserId,
  textField,
} from '../fields.ts';
import { DEFAULT_LIMITS } from '../../domain/evaluation.ts';
import type { IdGenerator } from '../id-generator.ts';
import { instantInBody } from '../instants.ts';
import { CSV_LIST } from '../list-csv.ts';
import { decodeCursor, pageQuery, pageSchema, presentPage, timeKey } from '../pagination.ts';
import { accountApp, withPermission } from '../routing/callers.ts';
import { route } from '../routing/route.ts';
import { heldKey } from './sessions-views.ts';

const NOBODY = 'Null: later payments belong to nobody.';
const earned = {
  payments: count('How many earlier payments earned by it.'),
  earnedCents: cents('What they earned, net of refunds and disputes.'),
  currency,
};

const manualAttribution = z
  .object({
    id: idOf('manualAttribution'),
    customerUserId: presentedUserId,
    affiliateId: orNull(idOf('affiliate'), NOBODY),
    affiliateName: orNull(nameOfAffiliate, NOBODY),
    reassigns: z
      .boolean()
      .describe('Whether the user belonged to somebody before: then only later payments change.'),
    effectiveFrom: epochMs('Payments from then on belong to the affiliate.'),
    ...earned,
    reason: orNull(textField('Told us in the support chat', 'Why.'), 'Null once the user was erased.'),
    createdAt: epochMs('When it was written.'),
    createdBy: heldKey,
  })
  .meta({
    id: 'ManualAttribution',
    description: 'A user whom a person gave to an affiliate. Never changed.',
  });

const MOST_DAYS_BACK = 365;

const target = {
  customerUserId,
  affiliateId: orNull(inputId('affiliate'), NOBODY),
  from: instantInBody(
    `Earlier payments from then on earn, too, at most ${MOST_DAYS_BACK} days back. Only for a user who belongs to nobody. Needs the permission \`payout\` and \`expectedCents\`. Absent: payments from now on.`,
  ).optional(),
};

const newAttribution = z
  .strictObject({
    ...target,
    expectedCents: z
      .int()
      .meta({
        description:
          'What the preview returned as `earnedCents`, US cents. With another sum, nothing is written.',
        examples: [200],
      })
      .optional(),
    reason: z
      .string()
      .trim()
      .min(1)
      .max(500)
      .meta({
        description: 'Why. For you and your books: the creator does not see it.',
        examples: ['Told us in the support chat'],
      }),
  })
  .meta({
    id: 'NewManualAttribution',
    examples: [
      {
        customerUserId: 'user-4711',
        affiliateId: exampleId('affiliate'),
        reason: 'Told us in the support chat',
      },
    ],
    description: 'A user, and the affiliate to whom the user belongs.',
  });

const previewed = z
  .strictObject(target)
  .meta({ id: 'ManualAttributionToPreview', description: 'A user, an affiliate, and from when on.' });

const preview = z
  .object({
    ...earned,
    current: orNull(
      z
        .object({ affiliateId: idOf('affiliate'), affiliateName: nameOfAffiliate })
        .describe('To whom the user belongs now.'),
      'Null: nobody. Always null with `from`.',
    ),
  })
  .meta({ id: 'ManualAttributionPreview', description: 'What earlier payments would earn.' });

function present(row: ManualAttribution) {
  return {
    id: row.id,
    customerUserId: row.customerUserId,
    affiliateId: row.affiliateId,
    affiliateName: row.affiliateName,
    reassigns: row.reassigns,
    effectiveFrom: row.effectiveFrom,
    payments: row.payments,
    earnedCents: row.earnedCents,
    currency: 'USD' as const,
    reason: row.reason,
    createdAt: row.createdAt,
    createdBy: { id: row.keyId, label: row.keyLabel, display: row.keyDisplay },
  };
}

interface Asked {
  readonly deps: HttpDeps;
  readonly caller: Caller;
  readonly app: App;
  readonly idGenerator: IdGenerator;
  readonly now: number;
  readonly body: z.output<typeof previewed> | z.output<typeof newAttribution>;
}

/** Attributes, or computes what it would do. Throws for everything that leaves no attribution. */
async function attribute(
  { deps, caller, app, idGenerator, now, body }: Asked,
  {
    isPreview,
    reason,
    expectedCents,
  }: Pick<AttributionByHand, 'reason' | 'expectedCents'> & { readonly isPreview: boolean },
): Promise<AttributionByHandResult> {
  const { from = null } = body;
  if (isPlaceholder(body.customerUserId)) throw new ApiError('placeholder_user_id');
  if (from !== null && (from > now || from < now - MOST_DAYS_BACK * DAY_MS))
    throw invalidField('from', `Must be in the past, at most ${MOST_DAYS_BACK} days back. Omit it for now.`);
  const affiliateId: AffiliateId | null = body.affiliateId === null ? null : idOrThrow(body.affiliateId);
  const result = await attributeByHand(
    deps,
    {
      id: idGenerator.id('manualAttribution'),
      attributionId: idGenerator.id('attribution'),
      bindingId: idGenerator.id('binding'),
      appId: app.id,
      accountId: caller.accountId,
      keyId: caller.keyId,
      customerUserId: body.customerUserId,
      affiliateId,
      reason,
      from,
      expectedCents,
      limits: { ...DEFAULT_LIMITS, maxPaymentCents: deps.maxPaymentCents },
    },
    { isPreview },
  );
  switch (result.kind) {
    case 'attributed':
    case 'previewed':
      return result;
    case 'unknown_affiliate':
      throw notFound();
    case 'total_changed':
      throw new ApiError('total_changed', {
        detail: `Earlier payments would earn ${result.earnedCents} cents. Check the preview, then send the call again. Nothing was changed.`,
      });
    case 'lost_race':
      throw new ApiError('unavailable', { headers: { 'Retry-After': '1' } });
    default:
      throw new ApiError(REFUSALS[result.kind]);
  }
}

const REFUSALS = {
  erased: 'user_erased',
  bound: 'user_attributed',
  unbound: 'user_not_attributed',
  too_many_payments: 'too_many_payments',
  payments_wait_for_rate: 'payments_wait_for_rate',
} as const;

function idOrThrow(text: string): AffiliateId {
  if (!isId('affiliate', text)) throw notFound();
  return text;
}

const ERRORS = [
  'placeholder_user_id',
  'user_erased',
  'user_attributed',
  'user_not_attributed',
  'too_many_payments',
  'payments_wait_for_rate',
] as const;

export const manualAttributionRoutes = [
  route({
    method: 'GET',
    path: '/apps/:appId/manual-attributions',
    caller: accountApp('read'),
    operationId: 'listManualAttributions',
    summary: 'Lists users whom a person gave to an affiliate, latest first.',
    description: CSV_LIST,
    query: z.object(pageQuery),
    response: { status: 200, schema: pageSchema(manualAttribution), asCsv: true },
    handler: async ({ deps, app, query }) => {
      const key = { list: 'manual attributions', appId: app.id, filters: {} };
      const after = decodeCursor(key, timeKey, query.cursor);
      return presentPage(key, await listManualAttributions(deps.sql, app.id, after, query.limit), present);
    },
  }),

  route({
    method: 'POST',
    path: '/apps/:appId/manual-attributions/preview',
    caller: accountApp('write'),
    operationId: 'previewManualAttribution',
    summary:
      'Computes what earlier payments of a user would earn for an affiliate, and to whom the user belongs now, without storing anything.',
    body: previewed,
    response: { status: 200, schema: preview },
    errors: ERRORS,
    handler: async (call) => {
      const result = await attribute(call, { isPreview: true, reason: 'preview', expectedCents: null });
      if (result.kind !== 'previewed') throw new Error(`a preview was ${result.kind}`);
      const { payments, earnedCents, current } = result;
      return { payments, earnedCents, currency: 'USD' as const, current };
    },
  }),

  route({
    method: 'POST',
    path: '/apps/:appId/manual-attributions',
    caller: accountApp('write'),
    operationId: 'addManualAttribution',
    summary: 'Gives a user to an affiliate.',
    description:
      'A user who belongs to nobody belongs to the affiliate from now on, or from `from` on. A user who belongs to somebody is given ' +
      `away for later payments only: what was earned stays, and bonuses and deductions settle the rest. A user may have at most ${MOST_WAITING_PAYMENTS} payments that wait.`,
    body: newAttribution,
    response: { status: 201, schema: manualAttribution },
    errors: [...ERRORS, 'total_changed', 'session_not_raised', 'unavailable'],
    handler: async (call) => {
      const { from, expectedCents, reason } = call.body;
      const acting = from === undefined ? call : withPermission(call, 'payout');
      if ((from === undefined) !== (expectedCents === undefined))
        throw invalidField(
          'expectedCents',
          'Must be there with `from`, and only with it: what the preview returned.',
        );
      const result = await attribute(acting, {
        isPreview: false,
        reason,
        expectedCents: expectedCents ?? null,
      });
      if (result.kind !== 'attributed') throw new Error(`an attribution was ${result.kind}`);
      return present(result.attribution);
    },
  }),
];
