import * as z from 'zod';
import { listAudit } from '../../db/audit.ts';
import type { AuditRow } from '../../db/audit.ts';
import { ACTOR_KINDS, AUDIT_ACTIONS, AUDITED_OBJECTS } from '../../domain/audit.ts';
import { epochMs, exampleId, filterId, idOf, inputId, orNull, textField } from '../fields.ts';
import { fromTo } from '../instants.ts';
import { CSV_LIST } from '../list-csv.ts';
import {
  decodeCursor,
  EMPTY_PAGE,
  MAY_BE_SHORT,
  pageSchema,
  pageQuery,
  presentPage,
  timeKey,
} from '../pagination.ts';
import { presentedTerms, presentTerms, sentences } from '../policy-fields.ts';
import { consoleSession } from '../routing/callers.ts';
import { route } from '../routing/route.ts';

const actorKind = z
  .enum(ACTOR_KINDS)
  .describe(
    '`key`; `session` of the console; `creator`; `sign_in`, a person who opens a sign-in link; `operator`; `command_line`; `service`, without a caller; `database`, a statement that named nobody.',
  );
const action = z
  .enum(AUDIT_ACTIONS)
  .describe(
    '`replaced`: a new key or secret took its place, so it has an end. `raised`: a session may pay for a while. `requested`: an erasure or a reprocess run.',
  );
const objectKind = z.enum(AUDITED_OBJECTS).describe('What the change concerns.');
const OBJECT_ID =
  'The id of the object. A webhook secret has the name of its provider, an identity secret the id of its app, a sign-in link the id of its key or affiliate.';

const wordedTerms = z.object({ terms: presentedTerms, sentences });

const fields = z.record(z.string(), z.unknown());

const auditRow = z
  .object({
    id: idOf('audit'),
    changedAt: epochMs('When the change was made.'),
    appId: orNull(idOf('app'), 'Null for what belongs to the account.'),
    actor: z
      .object({
        kind: actorKind,
        keyId: orNull(idOf('key', 'The key, or the one that the session holds.'), 'Null for others.'),
        sessionId: orNull(idOf('session'), 'Null for others.'),
        affiliateId: orNull(idOf('affiliate', 'The creator.'), 'Null for others.'),
        label: orNull(
          textField('Ann, marketing', 'The label of the key, or the name of the creator, at that time.'),
          'Null for others.',
        ),
      })
      .describe('Who made it.'),
    action,
    object: z
      .object({
        kind: objectKind,
        id: textField('stripe', OBJECT_ID),
        label: orNull(textField('First creator', 'Its name after the change.'), 'Null if it has none.'),
      })
      .describe('What it concerns.'),
    before: orNull(
      fields.meta({
        description: 'The fields that changed, as they were.',
        examples: [{ commissionRateBps: 2000 }],
      }),
      'Null for a new object.',
    ),
    after: fields.meta({
      description:
        'The fields that changed, as they are since. Never a secret. An e-mail address is `(not kept)`.',
      examples: [{ commissionRateBps: 2500 }],
    }),
    names: z.record(z.string(), z.string()).meta({
      description:
        'The present names of creators, groups, policies and account keys that the row has only the id of, by their ids. Of a payout, who was paid.',
      examples: [{ [exampleId('affiliate')]: 'First creator' }],
    }),
    terms: z
      .object({
        before: orNull(wordedTerms, 'Null for the first version.'),
        after: wordedTerms.describe('The new version.'),
      })
      .describe('What a new version of a policy says, and the one before it. Absent for other rows.')
      .optional(),
    requestId: orNull(
      textField('0b6f9c5e-7d0e-4c7c-9c39-0f8b8f1f6f3a', 'The `X-Request-Id` of the call.'),
      'Null if it was none.',
    ),
  })
  .meta({
    id: 'AuditRow',
    description: 'A change of a setting, a key, a secret, a creator, a link or a payout.',
  });

function presentRow(row: AuditRow) {
  return {
    id: row.id,
    changedAt: row.changedAt,
    appId: row.appId,
    actor: {
      kind: row.actorKind,
      keyId: row.keyId,
      sessionId: row.sessionId,
      affiliateId: row.affiliateId,
      label: row.actorLabel,
    },
    action: row.action,
    object: { kind: row.objectKind, id: row.objectId, label: row.objectLabel },
    before: row.before,
    after: row.after,
    names: row.names,
    ...(row.terms && {
      terms: {
        before: row.terms.before && presentTerms(row.terms.before),
        after: presentTerms(row.terms.after),
      },
    }),
    requestId: row.requestId,
  };
}

export const auditRoutes = [
  route({
    method: 'GET',
    path: '/accounts/:accountId/audit',
    caller: consoleSession('read'),
    operationId: 'listAudit',
    ids: { accountId: 'account' },
    summary: 'Lists who changed what in the account and its apps, the last change first.',
    description: `A member who is limited to some apps gets the changes of these apps. ${MAY_BE_SHORT} ${CSV_LIST}`,
    query: z.object({
      ...pageQuery,
      appId: inputId('app').optional(),
      actorKind: actorKind.optional(),
      keyId: inputId('key').optional(),
      action: action.optional(),
      objectKind: objectKind.optional(),
      objectId: z
        .string()
        .max(200)
        .meta({ description: OBJECT_ID, examples: ['stripe'] })
        .optional(),
      ...fromTo('Earliest `changedAt`, inclusive.', 'Latest `changedAt`, exclusive.'),
    }),
    response: { status: 200, schema: pageSchema(auditRow), asCsv: true },
    handler: async ({ deps, session, ids, query }) => {
      const given = {
        appId: query.appId ?? null,
        actorKind: query.actorKind ?? null,
        keyId: query.keyId ?? null,
        action: query.action ?? null,
        objectKind: query.objectKind ?? null,
        objectId: query.objectId ?? null,
        from: query.from ?? null,
        to: query.to ?? null,
      };
      const key = { list: 'audit', appId: ids.accountId, filters: given };
      const after = decodeCursor(key, timeKey, query.cursor);
      const [appId, keyId] = [filterId('app', query.appId), filterId('key', query.keyId)];
      if (appId === 'none' || keyId === 'none') return EMPTY_PAGE;
      const onlyApps = session.member?.appIds ?? null;
      const filter = { ...given, appId, keyId, onlyApps };
      const page = await listAudit(deps.sql, ids.accountId, filter, after, query.limit);
      return presentPage(key, page, presentRow);
    },
  }),
];
