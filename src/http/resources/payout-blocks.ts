import * as z from 'zod';
import { addPayoutBlock, listPayoutBlocks, PAYOUT_BLOCK_STATES } from '../../db/payout-blocks.ts';
import type { PayoutBlock } from '../../db/payout-blocks.ts';
import { ApiError, foundOrThrow } from '../errors.ts';
import { epochMs, idOf, textField } from '../fields.ts';
import { CSV_LIST } from '../list-csv.ts';
import { decodeCursor, pageQuery, pageSchema, presentPage, timeKey } from '../pagination.ts';
import { accountApp } from '../routing/callers.ts';
import { route } from '../routing/route.ts';
import { heldKey } from './sessions-views.ts';

const state = z
  .enum(PAYOUT_BLOCK_STATES)
  .describe('`blocked`: exports pay the creator nothing. `lifted`: they do again.');

const REASON = 'Why. The creator does not see it.';
const EXAMPLE = 'Refunds of May are under review.';

const payoutBlock = z
  .object({
    id: idOf('payoutBlock'),
    affiliateId: idOf('affiliate'),
    state,
    reason: textField(EXAMPLE, REASON),
    createdAt: epochMs('When it was stated.'),
    createdBy: heldKey,
  })
  .meta({
    id: 'PayoutBlock',
    description: 'A statement that the payouts of a creator are blocked, or not any more. Never changed.',
  });

const newPayoutBlock = z
  .strictObject({
    state,
    reason: z
      .string()
      .trim()
      .min(1)
      .max(500)
      .meta({ description: REASON, examples: [EXAMPLE] }),
  })
  .meta({ id: 'NewPayoutBlock', description: 'Blocks the payouts of a creator, or lifts the block.' });

function presentPayoutBlock(row: PayoutBlock) {
  const { id, affiliateId, reason, createdAt } = row;
  const createdBy = { id: row.keyId, label: row.keyLabel, display: row.keyDisplay };
  return { id, affiliateId, state: row.state, reason, createdAt, createdBy };
}

export const payoutBlockRoutes = [
  route({
    method: 'GET',
    path: '/apps/:appId/affiliates/:affiliateId/payout-blocks',
    caller: accountApp('read'),
    operationId: 'listPayoutBlocks',
    summary:
      'Lists when and why the payouts of a creator were blocked, and when blocks were lifted, latest first.',
    description: CSV_LIST,
    ids: { affiliateId: 'affiliate' },
    query: z.object(pageQuery),
    response: { status: 200, schema: pageSchema(payoutBlock), asCsv: true },
    handler: async ({ deps, app, ids, query }) => {
      const key = { list: 'payout-blocks', appId: app.id, filters: { affiliateId: ids.affiliateId } };
      const after = decodeCursor(key, timeKey, query.cursor);
      const page = await listPayoutBlocks(deps.sql, app.id, ids.affiliateId, after, query.limit);
      return presentPage(key, foundOrThrow(page), presentPayoutBlock);
    },
  }),

  route({
    method: 'POST',
    path: '/apps/:appId/affiliates/:affiliateId/payout-blocks',
    caller: accountApp('payout'),
    operationId: 'addPayoutBlock',
    summary: 'Blocks the payouts of a creator, or lifts the block.',
    description:
      'While they are blocked, an export fails with `payouts_blocked` and pays nothing. Commissions go on to be earned and to mature. ' +
      'An export that is being settled is finished first: after the response, none pays. The creator reads that payouts are under review.',
    ids: { affiliateId: 'affiliate' },
    body: newPayoutBlock,
    response: { status: 201, schema: payoutBlock },
    errors: ['payout_block_not_possible'],
    handler: async ({ deps, caller, app, ids, body, idGenerator }) => {
      const added = await addPayoutBlock(deps.sql, {
        id: idGenerator.id('payoutBlock'),
        appId: app.id,
        affiliateId: ids.affiliateId,
        state: body.state,
        reason: body.reason,
        accountId: caller.accountId,
        keyId: caller.keyId,
      });
      if (added === null) throw new ApiError('payout_block_not_possible');
      return presentPayoutBlock(foundOrThrow(added));
    },
  }),
];
