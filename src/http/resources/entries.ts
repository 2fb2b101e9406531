import * as z from 'zod';
import { addEntry, findEntry, findExisting, listEntries, undoEntry } from '../../db/entries.ts';
import type { Entry } from '../../db/entries.ts';
import { ENTRY_SIGNS } from '../../domain/entry.ts';
import type { AppId } from '../../domain/ids.ts';
import type { HttpDeps } from '../deps.ts';
import * as enums from '../enum-fields.ts';
import { ApiError, externalIdTaken, foundOrThrow, invalidField } from '../errors.ts';
import {
  cents,
  currency,
  entryReason,
  epochMs,
  externalId,
  filterId,
  idOf,
  inputId,
  nameOfAffiliate,
  orNull,
  presentedExternalId,
} from '../fields.ts';
import { instantInBody } from '../instants.ts';
import { CSV_LIST } from '../list-csv.ts';
import { decodeCursor, EMPTY_PAGE, pageQuery, pageSchema, presentPage, timeKey } from '../pagination.ts';
import { accountApp } from '../routing/callers.ts';
import { route } from '../routing/route.ts';
import { heldKey } from './sessions-views.ts';

const entry = z
  .object({
    id: idOf('entry'),
    affiliateId: idOf('affiliate'),
    affiliateName: nameOfAffiliate,
    category: enums.entryCategory,
    amountCents: cents('What was added. Negative for a deduction.'),
    currency,
    reason: entryReason,
    externalId: presentedExternalId,
    undoesEntryId: orNull(idOf('entry', 'The id of the entry that it undoes.'), 'Null unless it undoes one.'),
    undoneByEntryId: orNull(
      idOf('entry', 'The id of the entry that undoes it.'),
      'Null unless it was undone.',
    ),
    commissionId: idOf('commission', 'Its row in the list of commissions.'),
    status: enums.commissionStatus,
    dueAt: epochMs('When a payout can have it.'),
    createdAt: epochMs('When it was written.'),
    createdBy: heldKey,
  })
  .meta({
    id: 'Entry',
    description:
      'Money that a person added for a creator, or deducted. Never changed: an opposite entry undoes it.',
  });

const reasonText = z
  .string()
  .trim()
  .min(1)
  .max(500)
  .meta({
    description: 'Why. The creator sees it, so it should name no customer.',
    examples: ['Retainer for May'],
  });

const newEntry = z
  .strictObject({
    amountCents: z
      .int()
      .refine((amount) => amount !== 0, 'Must not be 0.')
      .meta({
        description:
          'What to add. Negative to deduct. US cents, at most the limit of a payment (`MAX_PAYMENT_USD`).',
        examples: [5000],
      }),
    category: enums.entryCategory,
    reason: reasonText,
    dueAt: instantInBody('When a payout can have it: at most 366 days ahead. Defaults to now.').optional(),
    externalId,
  })
  .meta({ id: 'NewEntry', description: 'A bonus or a deduction.' });

const undo = z
  .strictObject({ reason: reasonText })
  .meta({ id: 'EntryUndo', description: 'Why an entry is undone.' });

function presentEntry(row: Entry) {
  return {
    id: row.id,
    affiliateId: row.affiliateId,
    affiliateName: row.affiliateName,
    category: row.category,
    amountCents: row.amountCents,
    currency: 'USD' as const,
    reason: row.reason,
    externalId: row.externalId,
    undoesEntryId: row.undoesEntryId,
    undoneByEntryId: row.undoneByEntryId,
    commissionId: row.commissionId,
    status: row.status,
    dueAt: row.dueAt,
    createdAt: row.createdAt,
    createdBy: { id: row.keyId, label: row.keyLabel, display: row.keyDisplay },
  };
}

/** Presents a new entry, and lets its commission mature when it is due. */
function presentBooked(deps: HttpDeps, appId: AppId, row: Entry) {
  deps.workflows.startHolds([{ commissionId: row.commissionId, appId, dueAt: row.dueAt }]);
  return presentEntry(row);
}

export const entryRoutes = [
  route({
    method: 'GET',
    path: '/apps/:appId/entries',
    caller: accountApp('read'),
    operationId: 'listEntries',
    summary: 'Lists bonuses and deductions, latest first.',
    description: CSV_LIST,
    query: z.object({ ...pageQuery, affiliateId: inputId('affiliate').optional() }),
    response: { status: 200, schema: pageSchema(entry), asCsv: true },
    handler: async ({ deps, app, query }) => {
      const key = { list: 'entries', appId: app.id, filters: { affiliateId: query.affiliateId ?? null } };
      const after = decodeCursor(key, timeKey, query.cursor);
      const affiliateId = filterId('affiliate', query.affiliateId);
      if (affiliateId === 'none') return EMPTY_PAGE;
      const page = await listEntries(deps.sql, app.id, { affiliateId }, after, query.limit);
      return presentPage(key, page, presentEntry);
    },
  }),

  route({
    method: 'GET',
    path: '/apps/:appId/entries/:entryId',
    caller: accountApp('read'),
    operationId: 'getEntry',
    summary: 'Retrieves a bonus or deduction.',
    ids: { entryId: 'entry' },
    response: { status: 200, schema: entry },
    handler: async ({ deps, app, ids }) =>
      presentEntry(foundOrThrow(await findEntry(deps.sql, app.id, ids.entryId))),
  }),

  route({
    method: 'POST',
    path: '/apps/:appId/affiliates/:affiliateId/entries',
    caller: accountApp('payout'),
    operationId: 'addEntry',
    summary: 'Adds a bonus for a creator, or deducts.',
    description:
      'It is a row of the ledger like a commission: it nets with the others, and the next payout after `dueAt` has it. ' +
      'An affiliate of any status may get one. A repeated call with the same `externalId` adds nothing, whenever it comes.',
    ids: { affiliateId: 'affiliate' },
    body: newEntry,
    response: { status: 201, schema: entry },
    errors: ['external_id_taken'],
    handler: async ({ deps, caller, app, ids, body, idGenerator, now }) => {
      const { amountCents, category, reason, dueAt, externalId: ownId } = body;
      const most = deps.maxPaymentCents;
      if (Math.abs(amountCents) > most) {
        throw invalidField(
          'amountCents',
          `Must be between ${-most} and ${most}, the limit of a payment (MAX_PAYMENT_USD).`,
        );
      }
      const sign = ENTRY_SIGNS[category];
      if (sign !== undefined && Math.sign(amountCents) !== sign) {
        throw invalidField(
          'category',
          `\`${category}\` only ${sign > 0 ? 'adds' : 'deducts'}. Choose another category.`,
        );
      }
      // A repeated call may come after the date: it finds its entry.
      const isLate = dueAt !== undefined && dueAt < now;
      if (isLate && (await findExisting(deps.sql, app.id, ownId)) === undefined) {
        throw invalidField('dueAt', 'Must not be in the past. Omit it for now.');
      }
      const added = foundOrThrow(
        await addEntry(deps.sql, {
          id: idGenerator.id('entry'),
          commissionId: idGenerator.id('commission'),
          appId: app.id,
          accountId: caller.accountId,
          keyId: caller.keyId,
          affiliateId: ids.affiliateId,
          category,
          amountCents,
          reason,
          externalId: ownId,
          dueAt: dueAt ?? null,
        }),
      );
      if ('existingId' in added) throw externalIdTaken(added.existingId);
      return presentBooked(deps, app.id, added);
    },
  }),

  route({
    method: 'POST',
    path: '/apps/:appId/entries/:entryId/undo',
    caller: accountApp('payout'),
    operationId: 'undoEntry',
    summary: 'Undoes a bonus or deduction.',
    description:
      'Adds the opposite entry, which is due when the first one is, so that both net to nothing. An entry is undone once, and an undo cannot be undone: add a new entry.',
    ids: { entryId: 'entry' },
    body: undo,
    response: { status: 201, schema: entry },
    errors: ['entry_not_undoable'],
    handler: async ({ deps, caller, app, ids, body, idGenerator }) => {
      const undone = foundOrThrow(
        await undoEntry(deps.sql, {
          id: idGenerator.id('entry'),
          commissionId: idGenerator.id('commission'),
          appId: app.id,
          accountId: caller.accountId,
          keyId: caller.keyId,
          undoes: ids.entryId,
          reason: body.reason,
        }),
      );
      if (undone === null) throw new ApiError('entry_not_undoable');
      return presentBooked(deps, app.id, undone);
    },
  }),
];
