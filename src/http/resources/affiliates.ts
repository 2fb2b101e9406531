import * as z from 'zod';
import {
  countAffiliates,
  findListedAffiliate,
  listAffiliatesByCreated,
  listAffiliatesByEarnings,
  listAffiliatesByEmail,
  listAffiliatesByName,
} from '../../db/affiliate-lists.ts';
import { createAffiliates, updateAffiliate } from '../../db/affiliates.ts';
import type { AffiliateListRow } from '../../db/affiliate-lists.ts';
import type { Affiliate, CreatedAffiliate } from '../../db/affiliates.ts';
import { sharedPolicyHasRuleAboveBase } from '../../db/policy-assignments.ts';
import { mayPay } from '../authenticate.ts';
import { bulkOf, bulkResponse, presentBulk } from '../bulk.ts';
import * as enums from '../enum-fields.ts';
import { externalIdTaken, foundOrThrow, invalidField } from '../errors.ts';
import {
  cents,
  count,
  epochMs,
  externalId,
  idOf,
  label,
  note,
  orNull,
  presentedExternalId,
  rateBps,
  textField,
} from '../fields.ts';
import type { IdGenerator } from '../id-generator.ts';
import { CSV_LIST } from '../list-csv.ts';
import {
  centsKey,
  decodeCursor,
  givenFilters,
  MAY_BE_SHORT,
  nameKey,
  pageSchema,
  pageQuery,
  presentPage,
  timeKey,
} from '../pagination.ts';
import { accountApp, withPermission } from '../routing/callers.ts';
import { route } from '../routing/route.ts';

const NAME = 'The name of the creator, as in the CSV of a payout.';
const name = label.meta({ description: NAME, examples: ['First creator'] });
const email = z
  .email()
  .max(320)
  .meta({ description: "The creator's e-mail address.", examples: ['creator@example.com'] });
const ownRateBps = rateBps("The affiliate's own commission rate.");

const NOTE = 'What you note about the creator, in up to 2,000 characters. Creators do not see it.';
const TAGS = 'Your words for the creator, to find creators by. Creators do not see them.';
const tag = label.max(40);
const ownNote = note.meta({ description: NOTE, examples: ['Prefers a call on Mondays.'] });
const ownTags = z
  .array(tag)
  .max(20)
  .meta({ description: TAGS, examples: [['video', 'spring']] });

const REPEATED_EMAIL =
  'Another affiliate of this app has this e-mail address. Check that they are two persons.';

const affiliate = z
  .object({
    id: idOf('affiliate'),
    name: textField('First creator', NAME),
    email: orNull(
      textField('creator@example.com', "The creator's e-mail address."),
      'Null if none was given.',
    ),
    status: enums.affiliateStatus,
    defaultCommissionRateBps: orNull(ownRateBps, "Null: the app's rate applies."),
    externalId: presentedExternalId,
    note: textField('Prefers a call on Mondays.', `${NOTE} Absent if there is none.`).optional(),
    tags: z
      .array(z.string())
      .meta({ description: `${TAGS} Absent if there are none.`, examples: [['video', 'spring']] })
      .optional(),
    createdAt: epochMs('When the affiliate was created.'),
  })
  .meta({ id: 'Affiliate', description: 'A creator who shares links and earns commissions.' });

const createdAffiliate = affiliate
  .extend({
    warnings: z
      .array(
        z.object({
          code: z.enum(['repeated_email']).describe('Stable.'),
          message: textField(REPEATED_EMAIL, 'A sentence for people.'),
        }),
      )
      .meta({ description: 'What to check. Absent if there is nothing to check.' })
      .optional(),
  })
  .meta({ id: 'CreatedAffiliate', description: 'The affiliate, and what to check.' });

/** An affiliate with its totals, in a list or alone. */
export const affiliateRow = affiliate
  .extend({
    clicks: count('Clicks of all time, without those of bots.'),
    installs: count('Attributed installs of all time.'),
    commissionCents: cents('Commissions of all time, net of reversals and corrections.'),
    payoutBlock: z
      .object({
        since: epochMs('Since when.'),
        reason: textField('Refunds of May are under review.', 'Why.'),
      })
      .describe('Exports pay the creator nothing. Absent unless the payouts are blocked.')
      .optional(),
    emailConfirmed: z
      .literal(false)
      .describe(
        'The address was changed without the permission `payout`: no code to change the payee is mailed to it, until it is saved again with that permission. Absent otherwise.',
      )
      .optional(),
  })
  .meta({ id: 'ListedAffiliate', description: 'An affiliate with its totals.' });

const newAffiliate = z
  .strictObject({
    name,
    email: orNull(email, 'Null or absent: none.').optional(),
    defaultCommissionRateBps: orNull(ownRateBps, "Null or absent: the app's rate applies.").optional(),
    externalId: orNull(externalId, 'Null or absent: none.').optional(),
    note: orNull(ownNote, 'Null or absent: none.').optional(),
    tags: ownTags.optional(),
  })
  .meta({ id: 'NewAffiliate', description: 'An affiliate to create.' });

const affiliatePatch = z
  .strictObject({
    name: name.optional(),
    email: orNull(email, 'Null removes it.').optional(),
    status: enums.affiliateStatus.optional(),
    defaultCommissionRateBps: orNull(ownRateBps, "Null: the app's rate applies from now on.").optional(),
    externalId: orNull(externalId, 'Null removes it.').optional(),
    note: orNull(ownNote, 'Null removes it.').optional(),
    tags: ownTags.optional(),
  })
  .meta({ id: 'AffiliateChange', description: 'The fields to change. Null clears a field.' });

const affiliatePage = pageSchema(affiliateRow)
  .extend({
    total: count(
      'The number of affiliates on all pages. Absent with `q`, `tag`, `email` or `externalId`: they have no sum.',
    ).optional(),
  })
  .meta({ id: 'ListedAffiliatePage', description: 'One page of the list, and how many affiliates it has.' });

const affiliatesQuery = z.object({
  ...pageQuery,
  status: enums.affiliateStatus.optional(),
  email: email.meta({ description: 'Ignores case. Takes no other `sort` than `created`.' }).optional(),
  externalId: externalId
    .meta({ description: 'Your own id. Takes no other `sort` than `created`.' })
    .optional(),
  q: label
    .meta({
      description:
        'A part of the name, of the e-mail address or of the `externalId`, or the id. Ignores case. Takes neither `email` nor `externalId`.',
      examples: ['ada'],
    })
    .optional(),
  tag: tag
    .meta({
      description: 'One of the tags. Ignores case. Takes neither `email` nor `externalId`.',
      examples: ['video'],
    })
    .optional(),
  sort: z
    .enum(['created', 'name', 'earnings'])
    .default('created')
    .describe('`created`: oldest first. `name`: alphabetically. `earnings`: largest commissions first.'),
});

function presentAffiliate(row: Affiliate) {
  return {
    id: row.id,
    name: row.name,
    email: row.email,
    status: row.status,
    defaultCommissionRateBps: row.defaultCommissionRateBps,
    externalId: row.externalId,
    ...(row.note === null ? {} : { note: row.note }),
    ...(row.tags.length === 0 ? {} : { tags: [...row.tags] }),
    createdAt: row.createdAt,
  };
}

/** Returns tags without those that repeat, ignoring case. */
const withoutRepeats = (tags: readonly string[]): string[] => [
  ...new Map(tags.map((one) => [one.toLowerCase(), one])).values(),
];

function presentCreated(row: CreatedAffiliate) {
  const warnings = [{ code: 'repeated_email' as const, message: REPEATED_EMAIL }];
  return { ...presentAffiliate(row), ...(row.emailRepeats ? { warnings } : {}) };
}

export function presentAffiliateRow(row: AffiliateListRow) {
  const { clicks, installs, commissionCents, payoutBlock, emailConfirmed } = row;
  const block = payoutBlock === null ? {} : { payoutBlock };
  const unconfirmed = row.email !== null && emailConfirmed === false ? { emailConfirmed } : {};
  return { ...presentAffiliate(row), clicks, installs, commissionCents, ...block, ...unconfirmed };
}

function rowOf(idGenerator: IdGenerator, fields: z.output<typeof newAffiliate>) {
  return {
    id: idGenerator.id('affiliate'),
    name: fields.name,
    email: fields.email ?? null,
    defaultCommissionRateBps: fields.defaultCommissionRateBps ?? null,
    externalId: fields.externalId ?? null,
    note: fields.note ?? null,
    tags: withoutRepeats(fields.tags ?? []),
  };
}

export const affiliateRoutes = [
  route({
    method: 'GET',
    path: '/apps/:appId/affiliates',
    caller: accountApp('read'),
    operationId: 'listAffiliates',
    summary: 'Lists affiliates with their clicks, installs and commissions.',
    description:
      'With `sort=earnings`, an affiliate whose commissions change between two pages may be on both or on none of them. ' +
      `With \`q\` or \`tag\`: ${MAY_BE_SHORT} ${CSV_LIST}`,
    query: affiliatesQuery,
    response: { status: 200, schema: affiliatePage, asCsv: true },
    handler: async ({ deps, app, query }) => {
      const { limit, cursor, sort } = query;
      const filter = { status: query.status ?? null, externalId: query.externalId ?? null };
      const address = query.email?.toLowerCase() ?? null;
      const text = query.q ?? null;
      const ownTag = query.tag ?? null;
      const isExamined = text !== null || ownTag !== null;
      const key = {
        list: 'affiliates',
        appId: app.id,
        filters: { ...filter, email: address, sort, ...givenFilters({ q: text, tag: ownTag }) },
      };
      if ((address !== null || filter.externalId !== null) && sort !== 'created')
        throw invalidField('sort', 'Must be created if `email` or `externalId` is given.');
      if (isExamined && (address !== null || filter.externalId !== null))
        throw invalidField(
          text === null ? 'tag' : 'q',
          'Must be absent if `email` or `externalId` is given.',
        );
      if (address !== null) {
        const after = decodeCursor(key, timeKey, cursor);
        const page = await listAffiliatesByEmail(
          deps.sql,
          app.id,
          { ...filter, email: address },
          after,
          limit,
        );
        return presentPage(key, page, presentAffiliateRow);
      }
      const selected = { ...filter, text, tag: ownTag };
      const readPage = async () => {
        switch (sort) {
          case 'created': {
            const after = decodeCursor(key, timeKey, cursor);
            const page = await listAffiliatesByCreated(deps.sql, app.id, selected, after, limit);
            return presentPage(key, page, presentAffiliateRow);
          }
          case 'name': {
            const after = decodeCursor(key, nameKey, cursor);
            const page = await listAffiliatesByName(deps.sql, app.id, selected, after, limit);
            return presentPage(key, page, presentAffiliateRow);
          }
          case 'earnings': {
            const after = decodeCursor(key, centsKey, cursor);
            const page = await listAffiliatesByEarnings(deps.sql, app.id, selected, after, limit);
            return presentPage(key, page, presentAffiliateRow);
          }
        }
      };
      if (isExamined || filter.externalId !== null) return await readPage();
      const [page, total] = await Promise.all([readPage(), countAffiliates(deps.sql, app.id, filter.status)]);
      return { ...page, total };
    },
  }),

  route({
    method: 'GET',
    path: '/apps/:appId/affiliates/:affiliateId',
    caller: accountApp('read'),
    operationId: 'getAffiliate',
    summary: 'Retrieves an affiliate with its clicks, installs and commissions.',
    ids: { affiliateId: 'affiliate' },
    response: { status: 200, schema: affiliateRow },
    handler: async ({ deps, app, ids }) =>
      presentAffiliateRow(foundOrThrow(await findListedAffiliate(deps.sql, app.id, ids.affiliateId))),
  }),

  route({
    method: 'POST',
    path: '/apps/:appId/affiliates',
    caller: accountApp('write'),
    operationId: 'createAffiliate',
    summary: 'Creates an affiliate.',
    description: 'A repeated `email` creates another affiliate, with a warning.',
    body: newAffiliate,
    response: { status: 201, schema: createdAffiliate },
    errors: ['external_id_taken'],
    handler: async ({ deps, app, idGenerator, body }) => {
      const [outcome] = await createAffiliates(deps.sql, app.id, [rowOf(idGenerator, body)]);
      const created = foundOrThrow(outcome);
      if ('existingId' in created) throw externalIdTaken(created.existingId);
      return presentCreated(created);
    },
  }),

  route({
    method: 'POST',
    path: '/apps/:appId/affiliates/bulk',
    caller: accountApp('write'),
    operationId: 'createAffiliates',
    summary: 'Creates up to 100 affiliates.',
    description:
      'An invalid row rejects the whole call with a 400, and `errors[].path` names the row. A row whose `externalId` an ' +
      'affiliate or an earlier row has creates nothing and is listed in `existing`. `failed` is always empty.',
    body: bulkOf(newAffiliate),
    response: { status: 200, schema: bulkResponse(createdAffiliate, 'affiliate', []) },
    handler: async ({ deps, app, idGenerator, body }) => {
      const rows = body.rows.map((row) => rowOf(idGenerator, row));
      const outcomes = await createAffiliates(deps.sql, app.id, rows);
      return presentBulk<CreatedAffiliate, never, ReturnType<typeof presentCreated>>(
        outcomes,
        presentCreated,
        {},
      );
    },
  }),

  route({
    method: 'PATCH',
    path: '/apps/:appId/affiliates/:affiliateId',
    caller: accountApp('write'),
    operationId: 'updateAffiliate',
    summary: 'Updates an affiliate.',
    description:
      'Existing commissions do not change. An `email` that is saved with the permission `payout` is confirmed for codes. To end an own rate needs the permission `payout` where the app or a group has a policy with a rule `aboveBase`.',
    ids: { affiliateId: 'affiliate' },
    body: affiliatePatch,
    response: { status: 200, schema: affiliate },
    errors: ['external_id_taken', 'session_not_raised'],
    handler: async (call) => {
      const { app, ids, body } = call;
      // The key that confirms an address has a part in the payments to the payee that its codes set.
      const confirms = typeof body.email === 'string' && mayPay(call.caller);
      const mayPayAboveBase =
        body.defaultCommissionRateBps === null && (await sharedPolicyHasRuleAboveBase(call.deps.sql, app.id));
      const { deps, caller } = confirms || mayPayAboveBase ? withPermission(call, 'payout') : call;
      const changed = foundOrThrow(
        await updateAffiliate(
          deps.sql,
          app.id,
          ids.affiliateId,
          { ...body, tags: body.tags && withoutRepeats(body.tags) },
          mayPay(caller),
        ),
      );
      if ('existingId' in changed) throw externalIdTaken(changed.existingId, 'Nothing was changed.');
      return presentAffiliate(changed);
    },
  }),
];
