import * as z from 'zod';
import { listEmails } from '../../db/emails.ts';
import type { Email } from '../../db/emails.ts';
import { APP_EMAIL_KINDS, EMAIL_STATUSES } from '../../domain/email.ts';
import { maskEmail } from '../../domain/payee.ts';
import { count, epochMs, filterId, idOf, inputId, orNull, textField } from '../fields.ts';
import { CSV_LIST } from '../list-csv.ts';
import {
  decodeCursor,
  EMPTY_PAGE,
  MAY_BE_SHORT,
  pageQuery,
  pageSchema,
  presentPage,
  timeKey,
} from '../pagination.ts';
import { maskedAddress } from '../member-fields.ts';
import { accountApp } from '../routing/callers.ts';
import { route } from '../routing/route.ts';

export const emailStatus = z
  .enum(EMAIL_STATUSES)
  .describe(
    '`queued` while an attempt will follow, `sent` when the mail server has accepted it, `failed` when no attempt follows, `skipped` without an address or a mail server.',
  );

const email = z
  .object({
    id: idOf('email', 'The id of the mail: the first part of its `Message-ID`.'),
    kind: z
      .enum(APP_EMAIL_KINDS)
      .describe(
        'What it tells. To a creator: `invitation`, the link to the own page; `payee_code`; `payee_changed`; `payout_sent`; `address_changed`, to the former address. To `notificationEmails` of the app: `alert_opened`, `alert_closed`, `run_drafted` by the payout schedule, `weekly_report`.',
      ),
    affiliateId: orNull(
      idOf('affiliate', 'The creator who gets it.'),
      'Null for a mail to `notificationEmails`.',
    ),
    maskedRecipient: orNull(
      maskedAddress.describe('The start and the domain of its address.'),
      'Null while the creator has no address.',
    ),
    status: emailStatus,
    attempts: count('The number of attempts so far.'),
    lastProblem: orNull(
      textField('The mail server refused the recipient (550).', 'Why it was not sent.'),
      'Null without a problem.',
    ),
    createdAt: epochMs('When the fact was written.'),
    nextAttemptAt: orNull(epochMs('When the next attempt is due.'), 'Null if none follows.'),
    endedAt: orNull(epochMs('When it was sent, failed or skipped.'), 'Null while it is `queued`.'),
  })
  .meta({ id: 'Email', description: 'A mail to a creator, or to one of the people who run the app.' });

function presentEmail(row: Email) {
  return {
    id: row.id,
    kind: row.kind,
    affiliateId: row.affiliateId,
    maskedRecipient: row.address === null ? null : maskEmail(row.address),
    status: row.status,
    attempts: row.attempts,
    lastProblem: row.lastProblem,
    createdAt: row.createdAt,
    nextAttemptAt: row.nextAttemptAt,
    endedAt: row.endedAt,
  };
}

export const emailRoutes = [
  route({
    method: 'GET',
    path: '/apps/:appId/emails',
    caller: accountApp('read'),
    operationId: 'listEmails',
    summary: 'Lists the mails of an app, latest first.',
    description: `They are to creators and to \`notificationEmails\`. \`maskedRecipient\` is the present address of the creator, or that of the mail. ${MAY_BE_SHORT} ${CSV_LIST}`,
    query: z.object({
      ...pageQuery,
      affiliateId: inputId('affiliate').optional(),
      status: emailStatus.optional(),
    }),
    response: { status: 200, schema: pageSchema(email), asCsv: true },
    handler: async ({ deps, app, query }) => {
      const filters = { affiliateId: query.affiliateId ?? null, status: query.status ?? null };
      const key = { list: 'emails', appId: app.id, filters };
      const after = decodeCursor(key, timeKey, query.cursor);
      const affiliateId = filterId('affiliate', query.affiliateId);
      if (affiliateId === 'none') return EMPTY_PAGE;
      const page = await listEmails(deps.sql, app.id, { ...filters, affiliateId }, after, query.limit);
      return presentPage(key, page, presentEmail);
    },
  }),
];
