import * as z from 'zod';
import { ITEM_OUTCOMES } from '../../db/payout-runs.ts';
import type { PayoutRun, PayoutRunItem, RunExclusion } from '../../db/payout-runs.ts';
import type { ListedPayoutFile } from '../../db/payout-run-files.ts';
import {
  EXCLUSION_REASONS,
  PAYOUT_FILE_METHODS,
  PAYOUT_RUN_KINDS,
  PAYOUT_RUN_STATUSES,
} from '../../domain/payout-run.ts';
import { MONEY_STATES } from '../../domain/payout-transfer.ts';
import { PAYOUT_CREDITS_LIMIT } from '../../domain/payout.ts';
import { cents, count, currency, epochMs, idOf, nameOfAffiliate, orNull } from '../fields.ts';
import { sha256Field } from './payouts-views.ts';
import { heldKey } from './sessions-views.ts';

export const MINIMUM = 'Creators to whom less is due are left out. US cents.';

export const withoutPayee = z
  .enum(['exclude', 'include'])
  .describe(
    'What it does with creators without a payee: leave them out, or pay them, in a file of their own.',
  );

const kind = z
  .enum(PAYOUT_RUN_KINDS)
  .describe(
    '`pay`: it pays what is due. `resend`: it sends the money of payouts again that came back, and pays nothing.',
  );

const method = z
  .enum(PAYOUT_FILE_METHODS)
  .describe('How the money is sent. `other`: also to a creator without a payee.');

const scheduledMonth = z.string().meta({
  description:
    'The month whose run the payout schedule has drafted; `createdBy` is then the key that has set the schedule. Absent: that key has drafted it.',
  examples: ['2026-11'],
});

export const payoutRun = z
  .object({
    id: idOf('payoutRun'),
    kind,
    status: z
      .enum(PAYOUT_RUN_STATUSES)
      .describe(
        '`draft`: it pays nothing. `approved`: it is being paid. `settled`: nothing more is paid. `cancelled`: the draft was cancelled, or a later one replaced it. `expired`: nobody approved the draft in time.',
      ),
    asOf: epochMs('It pays what was due then, and nothing that became due later.'),
    minimumCents: z
      .int()
      .min(0)
      .meta({ description: MINIMUM, examples: [5000] }),
    withoutPayee,
    itemCount: count('The number of its items: creators that it pays, or payouts that it sends again.'),
    totalCents: cents('Their sum.'),
    settledCount: count('The number of items that are settled, paid or not.'),
    paidCount: count('The number of items that were paid or sent again. Each is a row of a file.'),
    paidCents: cents('Their sum.'),
    currency,
    createdAt: epochMs('When it was drafted.'),
    createdBy: heldKey,
    scheduledMonth: scheduledMonth.optional(),
    expiresAt: epochMs('A draft can be approved until then.'),
    approvedAt: orNull(epochMs('When it was approved.'), 'Null until then.'),
    approvedBy: orNull(heldKey, 'Null until it is approved.'),
    stoppedAt: orNull(
      epochMs('When it was cancelled while it was being paid: nobody further is paid.'),
      'Null if it was not.',
    ),
    endedAt: orNull(epochMs('When it was settled or cancelled.'), 'Null until then.'),
  })
  .meta({ id: 'PayoutRun', description: 'A payment of many creators, each of which is a payout.' });

export const payoutRunItem = z
  .object({
    id: idOf('payoutRunItem'),
    affiliateId: idOf('affiliate'),
    affiliateName: nameOfAffiliate,
    expectedCents: cents('What the run pays the creator.'),
    method,
    outcome: orNull(
      z
        .enum(ITEM_OUTCOMES)
        .describe(
          '`waiting`: not settled yet. `paid`: see `payoutId`. `resent`: the money of the payout is sent again. All others were not paid, and are in the next draft: `total_changed`, a refund, deduction or export has changed what is due; `not_returned`, the money has not come back, or was sent again by another run; `blocked`, the payouts are blocked; `payee_changed`, the creator has another payee; `empty`, nothing is due; `closed`, the service was unavailable for an hour; `cancelled`, the run was cancelled before.',
        ),
      'Null until the run is approved.',
    ),
    payoutId: orNull(idOf('payout'), 'Null unless it was paid. In a `resend` run always there.'),
    transferState: orNull(
      z.enum(MONEY_STATES).describe('Where the money of the payout is. `returned`: it came back.'),
      'Of a payout that is sent again, since then. Null: nothing is stated, or it was withdrawn.',
    ),
  })
  .meta({ id: 'PayoutRunItem', description: 'A creator whom a payout run pays.' });

export const payoutRunExclusion = z
  .object({
    affiliateId: idOf('affiliate'),
    affiliateName: nameOfAffiliate,
    reason: z
      .enum(EXCLUSION_REASONS)
      .describe(
        `\`payouts_blocked\`: a founder has blocked them. \`payee_changed\`: a new payee waits until it counts. \`no_payee\`: there is none. \`below_minimum\`: less is due than \`minimumCents\`. \`too_many_commissions\`: more is due than one payout has room for, ${PAYOUT_CREDITS_LIMIT} commissions; pay by exports. \`negative_balance\`: deductions take back more than is due. \`reversed\`: they take back exactly that. \`held\`: all is in the hold period.`,
      ),
    balanceCents: cents('The net of what was due.'),
    heldCents: cents('The net of what was in the hold period.'),
  })
  .meta({
    id: 'PayoutRunExclusion',
    description: 'A creator with unpaid commissions whom a payout run leaves out.',
  });

export const payoutFile = z
  .object({
    id: idOf('payoutFile'),
    method,
    part: z
      .int()
      .min(1)
      .meta({ description: 'Payment services limit the rows of a file.', examples: [1] }),
    rowCount: count('The number of payouts in it.'),
    totalCents: cents('Their sum.'),
    currency,
    sha256: sha256Field('The SHA-256 of its bytes, hexadecimal.'),
    createdAt: epochMs('When it was written.'),
    downloadCount: count('How often it was downloaded. Who uploads a file twice may pay twice.'),
    erased: z
      .boolean()
      .meta({ description: 'Whether its bytes were removed, because a creator in it was erased.' }),
  })
  .meta({ id: 'PayoutFile', description: 'A file of a payout run for a payment service.' });

export const newPayoutRun = z
  .strictObject({
    kind: kind.default('pay'),
    minimumCents: z
      .int()
      .min(0)
      .max(100_000_000)
      .default(0)
      .meta({ description: MINIMUM, examples: [5000] }),
    withoutPayee: withoutPayee.default('exclude'),
  })
  .meta({ id: 'NewPayoutRun', description: 'Drafts a payout run.' });

export const approval = z
  .strictObject({
    expectedTotalCents: z
      .int()
      .min(0)
      .max(Number.MAX_SAFE_INTEGER)
      .meta({ description: 'The `totalCents` of the draft. US cents.', examples: [41200] }),
  })
  .meta({ id: 'PayoutRunApproval', description: 'Approves a payout run by its total.' });

export function presentPayoutRun(row: PayoutRun): z.input<typeof payoutRun> {
  const { id, kind: kindOfRun, status, asOf, minimumCents, itemCount, totalCents } = row;
  const { settledCount, paidCount, paidCents } = row;
  const { createdAt, expiresAt, approvedAt, stoppedAt, endedAt } = row;
  const { approverId, approverLabel, approverDisplay } = row;
  return {
    id,
    kind: kindOfRun,
    status,
    asOf,
    minimumCents,
    withoutPayee: row.includesWithoutPayee ? 'include' : 'exclude',
    itemCount,
    totalCents,
    settledCount,
    paidCount,
    paidCents,
    currency: 'USD',
    createdAt,
    createdBy: { id: row.keyId, label: row.keyLabel, display: row.keyDisplay },
    ...(row.scheduledMonth === null ? {} : { scheduledMonth: row.scheduledMonth }),
    expiresAt,
    approvedAt,
    approvedBy:
      approverId === null || approverDisplay === null
        ? null
        : { id: approverId, label: approverLabel, display: approverDisplay },
    stoppedAt,
    endedAt,
  };
}

export function presentItem(row: PayoutRunItem): z.input<typeof payoutRunItem> {
  const { id, affiliateId, affiliateName, expectedCents, outcome, payoutId, transferState: state } = row;
  return {
    id,
    affiliateId,
    affiliateName,
    expectedCents,
    method: row.method,
    outcome,
    payoutId,
    transferState: state,
  };
}

export function presentExclusion(row: RunExclusion): z.input<typeof payoutRunExclusion> {
  const { affiliateId, affiliateName, reason, balanceCents, heldCents } = row;
  return { affiliateId, affiliateName, reason, balanceCents, heldCents };
}

export function presentFile(row: ListedPayoutFile): z.input<typeof payoutFile> {
  const { id, part, rowCount, totalCents, sha256, createdAt, downloadCount, isErased } = row;
  return {
    id,
    method: row.method,
    part,
    rowCount,
    totalCents,
    currency: 'USD',
    sha256,
    createdAt,
    downloadCount,
    erased: isErased,
  };
}
