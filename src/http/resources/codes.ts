import * as z from 'zod';
import { addCode, deactivateCode, findCode, listCodes } from '../../db/codes.ts';
import type { Code } from '../../db/codes.ts';
import { isCode, NAMESPACES_WITH_IDS } from '../../domain/purchase-codes.ts';
import { ApiError, foundOrThrow, invalidField } from '../errors.ts';
import { epochMs, filterId, idOf, inputId, nameOfAffiliate, orNull, textField } from '../fields.ts';
import { CSV_LIST } from '../list-csv.ts';
import * as enums from '../enum-fields.ts';
import { decodeCursor, EMPTY_PAGE, pageQuery, pageSchema, presentPage, timeKey } from '../pagination.ts';
import { accountApp } from '../routing/callers.ts';
import { route } from '../routing/route.ts';

const VALUE = 'What customers enter, compared without case. Of an offer of the App Store its reference name.';
const EXTERNAL_ID =
  "The provider's id of the code, which its events state: `promo_…` of Stripe, `dsc_…` of Paddle. Compared exactly.";

export const code = z
  .object({
    id: idOf('code'),
    affiliateId: idOf('affiliate'),
    affiliateName: nameOfAffiliate,
    namespace: enums.codeNamespace,
    value: textField('SPRING20', VALUE),
    externalId: orNull(textField('promo_1SZ', EXTERNAL_ID), 'Null if there is none.'),
    createdAt: epochMs('Purchases from then on count.'),
    deactivatedAt: orNull(epochMs('Until when purchases count.'), 'Null while it works.'),
  })
  .meta({ id: 'Code', description: 'A code of an affiliate, with which customers buy.' });

/** The codes of a creator, as the creator sees them. */
export const workingCodes = z
  .array(
    code.pick({ namespace: true }).extend({
      value: textField(
        'SPRING20',
        'What customers enter. Of `app_store` and `play_store` the name of an offer, which no customer enters.',
      ),
    }),
  )
  .max(50)
  .describe(
    'The codes with which customers buy for the creator, oldest first. Absent without any, and where codes count nothing.',
  );

const codeText = z
  .string()
  .trim()
  .normalize('NFC')
  .refine(isCode, 'Must have 1 to 64 characters, without @ and control characters.')
  .meta({ pattern: '^[^@\\p{C}]{1,64}$' });

const newCode = z
  .strictObject({
    namespace: enums.codeNamespace,
    value: codeText.meta({ description: VALUE, examples: ['SPRING20'] }),
    externalId: codeText
      .meta({
        description: `${EXTERNAL_ID} Required for these two, refused elsewhere.`,
        examples: ['promo_1SZ'],
      })
      .optional(),
  })
  .meta({
    id: 'NewCode',
    description: 'A code to register.',
    examples: [{ namespace: 'app_store', value: 'SPRING20' }],
  });

export function presentCode(row: Code) {
  return {
    id: row.id,
    affiliateId: row.affiliateId,
    affiliateName: row.affiliateName,
    namespace: row.namespace,
    value: row.value,
    externalId: row.externalId,
    createdAt: row.createdAt,
    deactivatedAt: row.deactivatedAt,
  };
}

export const codeRoutes = [
  route({
    method: 'GET',
    path: '/apps/:appId/codes',
    caller: accountApp('read'),
    operationId: 'listCodes',
    summary: 'Lists codes of affiliates, latest first.',
    description: CSV_LIST,
    query: z.object({ ...pageQuery, affiliateId: inputId('affiliate').optional() }),
    response: { status: 200, schema: pageSchema(code), asCsv: true },
    handler: async ({ deps, app, query }) => {
      const key = { list: 'codes', appId: app.id, filters: { affiliateId: query.affiliateId ?? null } };
      const after = decodeCursor(key, timeKey, query.cursor);
      const affiliateId = filterId('affiliate', query.affiliateId);
      if (affiliateId === 'none') return EMPTY_PAGE;
      const page = await listCodes(deps.sql, app.id, { affiliateId }, after, query.limit);
      return presentPage(key, page, presentCode);
    },
  }),

  route({
    method: 'GET',
    path: '/apps/:appId/codes/:codeId',
    caller: accountApp('read'),
    operationId: 'getCode',
    summary: 'Retrieves a code of an affiliate.',
    ids: { codeId: 'code' },
    response: { status: 200, schema: code },
    handler: async ({ deps, app, ids }) =>
      presentCode(foundOrThrow(await findCode(deps.sql, app.id, ids.codeId))),
  }),

  route({
    method: 'POST',
    path: '/apps/:appId/affiliates/:affiliateId/codes',
    caller: accountApp('write'),
    operationId: 'addCode',
    summary: 'Registers a code of an affiliate.',
    description:
      'Purchases with it from now on belong to the affiliate if the user belongs to nobody, and so do later purchases of the user. Earlier ' +
      'purchases do not. The setting `purchaseCodes` of the app has to be on.',
    ids: { affiliateId: 'affiliate' },
    body: newCode,
    response: { status: 201, schema: code },
    errors: ['code_taken'],
    handler: async ({ deps, app, ids, idGenerator, body }) => {
      const { namespace: of, value, externalId = null } = body;
      const needsId = NAMESPACES_WITH_IDS.includes(of);
      if (needsId !== (externalId !== null))
        throw invalidField(
          'externalId',
          needsId
            ? `Events of ${of} state the id of a code, and not what the customer entered. Send it.`
            : `Events of ${of} state what the customer entered. Leave the id out.`,
        );
      const added = foundOrThrow(
        await addCode(deps.sql, {
          id: idGenerator.id('code'),
          appId: app.id,
          affiliateId: ids.affiliateId,
          namespace: of,
          value,
          externalId,
        }),
      );
      if ('existingId' in added) {
        throw new ApiError('code_taken', { existingId: added.existingId });
      }
      return presentCode(added);
    },
  }),

  route({
    method: 'POST',
    path: '/apps/:appId/codes/:codeId/deactivate',
    caller: accountApp('write'),
    operationId: 'deactivateCode',
    summary: 'Deactivates a code.',
    description:
      'Later purchases with it attribute nothing, and another affiliate can have it. Users whom it has bound stay with the affiliate.',
    ids: { codeId: 'code' },
    response: { status: 200, schema: code },
    handler: async ({ deps, app, ids }) =>
      presentCode(foundOrThrow(await deactivateCode(deps.sql, app.id, ids.codeId))),
  }),
];
