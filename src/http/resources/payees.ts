import { HIDDEN_CHARACTERS, NO_HIDDEN_CHARACTERS } from '../../domain/hidden-characters.ts';
import * as z from 'zod';
import { neutralizeFormula } from '../../domain/csv-cells.ts';
import { erasePayees } from '../../db/payee-erasure.ts';
import { findPayee, listPayees, setPayee } from '../../db/payees.ts';
import type { StoredPayee } from '../../db/payees.ts';
import type { FileOfCreator } from '../../db/payout-run-files.ts';
import { maskRecipient, PAYEE_METHODS, RECEIVER_TYPES } from '../../domain/payee.ts';
import { mayPay } from '../authenticate.ts';
import { ApiError, foundOrThrow } from '../errors.ts';
import { count, epochMs, idOf, label, orNull, textField, wholeNumber } from '../fields.ts';
import { CSV_LIST } from '../list-csv.ts';
import { decodeCursor, pageQuery, pageSchema, presentPage } from '../pagination.ts';
import { accountApp } from '../routing/callers.ts';
import { route } from '../routing/route.ts';
import { heldKey } from './sessions-views.ts';

const METHOD =
  '`paypal` and `wise`: by e-mail address. `other`: as the reference says. `none`: the creator has no payee any more.';
const EMAIL = 'The e-mail address that the method sends money to.';
const NAME = 'The full name of the receiver.';
const RECEIVER_TYPE = 'Whether Wise pays a person or an institution.';
const REFERENCE = 'How to pay, in your own words, such as the number of an account.';
const MASKED = 'The start of the address or name, to recognize it.';

/** A text that files for PayPal and Wise can carry: they show an apostrophe before a formula to the receiver. */
function fitForFiles(text: z.ZodType<string, string>) {
  return text
    .refine(
      (value) => neutralizeFormula(value) === value,
      'Must not begin with = + - @, nor have one of them after ; or |. A spreadsheet would run it as a formula.',
    )
    .refine((value) => !HIDDEN_CHARACTERS.test(value), NO_HIDDEN_CHARACTERS);
}

const email = fitForFiles(z.email().max(254)).meta({
  description: EMAIL,
  examples: ['creator@example.com'],
});
const name = fitForFiles(label).meta({ description: NAME, examples: ['Ada Lovelace'] });
const receiverType = z.enum(RECEIVER_TYPES).describe(RECEIVER_TYPE);
const reference = fitForFiles(label).meta({ description: REFERENCE, examples: ['IBAN DE00 0000'] });

const method = z.enum(PAYEE_METHODS).describe(METHOD);
const version = wholeNumber(1, 2_147_483_647).meta({
  description: 'The number of the version, from 1.',
  examples: [1],
});

/** A version, as everybody sees it who may read. */
const shownPayee = z.object({
  id: idOf('payee'),
  affiliateId: idOf('affiliate'),
  version,
  method,
  maskedRecipient: orNull(
    textField('c•••@example.com', MASKED),
    'Null for `none`, and if there is a `recipientProblem`.',
  ),
  recipientProblem: orNull(
    z
      .enum(['erased', 'unreadable'])
      .describe(
        '`erased` by a founder. `unreadable`: the operator has to restore an encryption key, or you set the payee again.',
      ),
    'Null without a problem.',
  ),
  setAt: epochMs('When it was set.'),
  countsFrom: epochMs('When its wait ends: runs of payouts leave the creator out until then.'),
  setBy: orNull(heldKey, 'Null if the creator has set it, with a code.'),
});

const payeeVersion = shownPayee.meta({
  id: 'PayeeVersion',
  description: 'A version of where the money of a creator goes. Never changed.',
});

const payee = shownPayee
  .extend({
    recipient: z
      .object({
        email: textField('creator@example.com', EMAIL).optional(),
        name: textField('Ada Lovelace', NAME).optional(),
        receiverType: receiverType.optional(),
        reference: textField('IBAN DE00 0000', REFERENCE).optional(),
      })
      .describe(
        'The fields of the method. Absent without the permission `payout`, and where `maskedRecipient` is null.',
      )
      .optional(),
  })
  .meta({ id: 'Payee', description: 'Where the money of a creator goes: the latest version.' });

const expectedVersion = wholeNumber(0, 2_147_483_647)
  .meta({
    description: 'The version that you have read; 0 if there is none. Another latest one is a 409.',
    examples: [0],
  })
  .optional();

const newPayee = z
  .discriminatedUnion('method', [
    z.strictObject({
      method: z.literal('paypal').describe('PayPal, by e-mail address.'),
      recipient: z.strictObject({ email }).describe('Who receives the money.'),
      expectedVersion,
    }),
    z.strictObject({
      method: z.literal('wise').describe('Wise, by e-mail address.'),
      recipient: z.strictObject({ email, name, receiverType }).describe('Who receives the money.'),
      expectedVersion,
    }),
    z.strictObject({
      method: z.literal('other').describe('Another way to pay.'),
      recipient: z.strictObject({ name, reference }).describe('Who receives the money.'),
      expectedVersion,
    }),
    z.strictObject({
      method: z.literal('none').describe('The creator has no payee any more.'),
      expectedVersion,
    }),
  ])
  .meta({
    id: 'NewPayee',
    description: 'Where the money of a creator goes from now on.',
    examples: [{ method: 'paypal', recipient: { email: 'creator@example.com' } }],
  });

/** What a creator sets. */
export const ownPayee = z
  .discriminatedUnion('method', [
    z.strictObject({
      method: z.literal('paypal').describe('PayPal, by e-mail address.'),
      recipient: z.strictObject({ email }).describe('Who receives the money.'),
    }),
    z.strictObject({
      method: z.literal('wise').describe('Wise, by e-mail address.'),
      recipient: z.strictObject({ email, name, receiverType }).describe('Who receives the money.'),
    }),
    z.strictObject({
      method: z.literal('other').describe('Another way to pay.'),
      recipient: z.strictObject({ name, reference }).describe('Who receives the money.'),
    }),
  ])
  .meta({
    id: 'WantedPayee',
    description: 'Where the money of the creator is to go.',
    examples: [{ method: 'paypal', recipient: { email: 'creator@example.com' } }],
  });

const erasedPayees = z
  .object({ erasedVersions: count('The versions of the payee whose recipient was erased, now or before.') })
  .meta({ id: 'ErasedPayees', description: 'What was erased.' });

function presentVersion(row: StoredPayee) {
  return {
    id: row.id,
    affiliateId: row.affiliateId,
    version: row.version,
    method: row.method,
    maskedRecipient: row.recipient === null ? null : maskRecipient(row.recipient),
    recipientProblem: row.recipientProblem,
    setAt: row.setAt,
    countsFrom: row.countsFrom,
    setBy: row.keyId === null ? null : { id: row.keyId, label: row.keyLabel, display: row.keyDisplay ?? '' },
  };
}

function presentPayee(row: StoredPayee, showsRecipient: boolean) {
  const { recipient } = row;
  return { ...presentVersion(row), ...(showsRecipient && recipient !== null ? { recipient } : {}) };
}

/** The files that one answer names. */
const NAMED_FILES = 10;

/** Returns the 409 of an erasure that would remove the only lists of whom to pay. */
function fileNotDownloaded(files: readonly FileOfCreator[]): ApiError {
  const named = files.slice(0, NAMED_FILES).map(({ id, runId }) => `${id} of ${runId}`);
  const more = files.length > named.length ? `, and ${files.length - named.length} more` : '';
  return new ApiError('payout_file_not_downloaded', {
    detail:
      `Nothing was erased. Nobody has downloaded these files of payout runs, which say whom to pay and contain this creator: ` +
      `${named.join(', ')}${more}. Download them, then erase again.`,
  });
}

/** What the creator sees. */
export const creatorPayee = shownPayee
  .pick({ method: true, maskedRecipient: true, recipientProblem: true, countsFrom: true })
  .describe('Where your money goes: the latest version. Absent if there never was one.');

/** Returns the payee as its creator sees it. Empty without one. */
export function presentCreatorPayee(row: StoredPayee | null | undefined) {
  if (row === null || row === undefined) return {};
  const { method: by, maskedRecipient, recipientProblem, countsFrom } = presentVersion(row);
  return { payee: { method: by, maskedRecipient, recipientProblem, countsFrom } };
}

export const payeeRoutes = [
  route({
    method: 'GET',
    path: '/apps/:appId/affiliates/:affiliateId/payee',
    caller: accountApp('read'),
    operationId: 'getPayee',
    summary: 'Retrieves where the money of a creator goes.',
    description:
      'The latest version. A caller with the permission `payout` also gets the recipient. A 404 if no payee was ever set.',
    ids: { affiliateId: 'affiliate' },
    response: { status: 200, schema: payee },
    handler: async ({ deps, caller, app, ids }) => {
      const found = foundOrThrow(await findPayee(deps, app.id, ids.affiliateId));
      return presentPayee(foundOrThrow(found ?? undefined), mayPay(caller));
    },
  }),

  route({
    method: 'PUT',
    path: '/apps/:appId/affiliates/:affiliateId/payee',
    caller: accountApp('payout'),
    operationId: 'setPayee',
    summary: 'Sets where the money of a creator goes.',
    description:
      'Appends a version, unless the latest one is the same. It counts after `payeeWaitDays` of the app: runs of payouts leave the creator out ' +
      'until then. Exports do not read payees.',
    ids: { affiliateId: 'affiliate' },
    body: newPayee,
    response: { status: 200, schema: payee },
    errors: ['payee_changed'],
    handler: async ({ deps, caller, app, ids, body, idGenerator }) => {
      const { expectedVersion: expected = null, ...given } = body;
      const place = {
        id: idGenerator.id('payee'),
        appId: app.id,
        affiliateId: ids.affiliateId,
        accountId: caller.accountId,
        keyId: caller.keyId,
      };
      const wanted = given.method === 'none' ? { ...given, recipient: null } : given;
      const outcome = foundOrThrow(
        await setPayee({ ...deps, sql: deps.patientSql }, place, wanted, expected),
      );
      if ('latestVersion' in outcome) {
        throw new ApiError('payee_changed', {
          detail: `The latest version is ${outcome.latestVersion}. Nothing was changed. Read the payee, and change it again.`,
        });
      }
      return presentPayee(outcome, true);
    },
  }),

  route({
    method: 'GET',
    path: '/apps/:appId/affiliates/:affiliateId/payees',
    caller: accountApp('read'),
    operationId: 'listPayees',
    summary: 'Lists the versions of where the money of a creator goes, latest first.',
    description: CSV_LIST,
    ids: { affiliateId: 'affiliate' },
    query: z.object(pageQuery),
    response: { status: 200, schema: pageSchema(payeeVersion), asCsv: true },
    handler: async ({ deps, app, ids, query }) => {
      const key = { list: 'payees', appId: app.id, filters: { affiliateId: ids.affiliateId } };
      const after = decodeCursor(key, version, query.cursor);
      const page = await listPayees(deps, app.id, ids.affiliateId, after, query.limit);
      return presentPage(key, foundOrThrow(page), presentVersion);
    },
  }),

  route({
    method: 'DELETE',
    path: '/apps/:appId/affiliates/:affiliateId/payees',
    caller: accountApp('payout'),
    operationId: 'erasePayees',
    summary: 'Erases the recipients of all versions of the payee of a creator.',
    description:
      'For a creator who leaves and asks for it. The versions stay, with their method, author and times. The creator has no payee any more: ' +
      'unless the latest version is `none`, it is appended. The bytes of the files of payout runs that have a recipient of the creator are ' +
      'removed, with all their rows: download these files first. Cannot be undone.',
    ids: { affiliateId: 'affiliate' },
    response: { status: 200, schema: erasedPayees },
    errors: ['payout_file_not_downloaded'],
    handler: async ({ deps, caller, app, ids, idGenerator }) => {
      const erased = foundOrThrow(
        await erasePayees(
          { ...deps, sql: deps.patientSql },
          {
            id: idGenerator.id('payee'),
            appId: app.id,
            affiliateId: ids.affiliateId,
            accountId: caller.accountId,
            keyId: caller.keyId,
          },
        ),
      );
      if (typeof erased !== 'number') throw fileNotDownloaded(erased.neededFiles);
      return { erasedVersions: erased };
    },
  }),
];
