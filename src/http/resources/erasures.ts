import * as z from 'zod';
import { eraseUser, findErasure } from '../../db/erasures.ts';
import { ERASED_KINDS } from '../../db/erasure-state.ts';
import type { Erasure } from '../../db/erasure-state.ts';
import { KEPT_BY_ERASURE } from '../../domain/erasure.ts';
import { foundOrThrow, invalidField } from '../errors.ts';
import { count, customerUserId, epochMs, idOf, orNull, textField } from '../fields.ts';
import { accountApp } from '../routing/callers.ts';
import { route } from '../routing/route.ts';

const kinds = {
  bindings: 'Bindings to a creator that were given the pseudonym.',
  commissions: 'Commissions that were given the pseudonym. Amounts, dates and creators stay.',
  events: 'Events that were given the pseudonym.',
  payments: 'Users of payments that were given the pseudonym.',
  transfers: 'Sides of transferred purchases that were given the pseudonym.',
  providerKeys: 'Subscriptions and customers of providers that were given pseudonyms.',
  devices: 'Installs and touches whose device was given a pseudonym.',
  clicks: 'Clicks that lost their claim token, address hash and User-Agent.',
  identities: 'Reports of the user by a device that were removed.',
  testReports: 'Reports by test keys that were removed.',
  reprocessNames: 'Names in plans of reprocess runs that were replaced.',
  bodies: 'Bodies of webhooks that were removed.',
  histories: 'Histories of Temporal workflows that were deleted.',
} as const satisfies Record<(typeof ERASED_KINDS)[number], string>;

const erasure = z
  .object({
    erasureId: idOf('erasure'),
    status: z
      .enum(['in_progress', 'complete'])
      .describe(
        '`in_progress`: the rows are erased, and the bodies of webhooks are being searched. It takes a minute at least.',
      ),
    pseudonym: textField(
      'erased:8dZ1nS4cQnG0hQ3kWJm2Fw',
      'The random text that stands for the user in commissions and events.',
    ),
    requestedAt: epochMs('When the erasure was requested first.'),
    reopenedAt: orNull(
      epochMs(
        'When the search began again: after the same request, or after a webhook that tied an older key to the user.',
      ),
      'Null if it did not.',
    ),
    completedAt: orNull(epochMs('When nothing was left to erase.'), 'Null until then.'),
    erased: z
      .object(Object.fromEntries(ERASED_KINDS.map((kind) => [kind, count(kinds[kind])])))
      .describe('What was erased so far, by kind.'),
    waitingDeliveries: count(
      'Webhooks that name the user and are not processed yet. They are erased after that.',
    ),
    kept: z
      .array(z.object({ what: textField('amounts', 'What is kept.'), why: textField('The books.', 'Why.') }))
      .describe('What is kept, and why.'),
  })
  .meta({ id: 'Erasure', description: 'The erasure of a user: what was done, and what is kept.' });

function presentErasure({
  id,
  pseudonym,
  requestedAt,
  reopenedAt,
  finishedAt,
  counts,
  waiting,
}: Erasure): z.input<typeof erasure> {
  return {
    erasureId: id,
    status: finishedAt === null ? 'in_progress' : 'complete',
    pseudonym,
    requestedAt,
    reopenedAt,
    completedAt: finishedAt,
    erased: Object.fromEntries(ERASED_KINDS.map((kind) => [kind, counts[kind] ?? 0])),
    waitingDeliveries: waiting.length,
    kept: [...KEPT_BY_ERASURE],
  };
}

function isDecodable(path: string): boolean {
  try {
    decodeURIComponent(path);
    return true;
  } catch {
    return false;
  }
}

export const erasureRoutes = [
  route({
    method: 'DELETE',
    path: '/apps/:appId/users/:customerUserId',
    caller: accountApp('setup'),
    operationId: 'eraseUser',
    summary: 'Erases a user of the app.',
    description:
      'Removes or pseudonymizes everything that identifies the user; the money stays. The same call again returns the same erasure, and its search runs again, for what was stored since. Later webhooks of the user are stored under the pseudonym, and `identify` stores nothing of the user: an erased user id cannot be used again.',
    response: { status: 200, schema: erasure },
    handler: async ({ ctx, deps, app, caller, params }) => {
      const user = customerUserId.safeParse(params['customerUserId']);
      if (!user.success) throw invalidField('customerUserId', 'Must be a user id.');
      // The router passes on what it cannot decode, and another id would be erased.
      if (!isDecodable(ctx.path)) throw invalidField('customerUserId', 'Must be encoded as UTF-8.');
      const erased = await eraseUser(deps, {
        appId: app.id,
        customerUserId: user.data,
        keyId: caller.keyId,
      });
      return presentErasure(erased);
    },
  }),

  route({
    method: 'GET',
    path: '/apps/:appId/erasures/:erasureId',
    caller: accountApp('setup'),
    operationId: 'getErasure',
    summary: 'Retrieves the erasure of a user.',
    ids: { erasureId: 'erasure' },
    response: { status: 200, schema: erasure },
    handler: async ({ deps, app, ids }) =>
      presentErasure(foundOrThrow(await findErasure(deps.sql, ids.erasureId, app.id))),
  }),
];
