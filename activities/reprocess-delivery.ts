import { createHash } from 'node:crypto';
import type { SecretBox } from '../src/config/secret-box.ts';
import { appendEventFacts } from '../src/db/events.ts';
import type { AppendedFacts } from '../src/db/events.ts';
import type { NewCommission } from '../src/db/payments.ts';
import { amendOutcome, findReading } from '../src/db/reprocess.ts';
import type { DeliveryNames } from '../src/db/reprocess.ts';
import type { Sql } from '../src/db/sql.ts';
import { bindTransfers } from '../src/db/transfers.ts';
import { evaluatePayment } from '../src/domain/evaluate-payment.ts';
import type { BindingId, ReprocessRunId } from '../src/domain/ids.ts';
import {
  compareReadings,
  isBetterOutcome,
  isSettled,
  ledgerChanges,
  readingOf,
} from '../src/domain/reprocess.ts';
import type { DeliveryOutcomeStatus, ReprocessChange } from '../src/domain/reprocess.ts';
import { isProviderName } from '../src/providers/index.ts';
import type { DeliveryContext } from './delivery-context.ts';
import { evaluateAndApply } from './evaluate.ts';

/** What came of a stored delivery that was run again. */
export interface ReprocessResult {
  readonly changes: readonly ReprocessChange[];
  readonly commissions: readonly NewCommission[];
  readonly bindings: readonly BindingId[];
}

function nothingBut(...changes: ReprocessChange[]): ReprocessResult {
  return { changes, commissions: [], bindings: [] };
}

function statusChange(
  stored: { processingStatus: string },
  today: DeliveryOutcomeStatus,
  reason: string | null,
): ReprocessChange {
  return {
    what: 'status',
    stored: stored.processingStatus,
    today: reason === null ? today : `${today}: ${reason}`,
    action: isBetterOutcome(stored.processingStatus, today) ? 'append' : 'keep',
  };
}

/** Facts in the order in which a person reads them. */
const FACTS = [
  'event',
  'payment',
  'adjustment',
  'users',
  'userKeys',
  'userLinks',
  'aliases',
  'transfers',
] as const satisfies readonly (keyof AppendedFacts)[];

function factChanges(appended: AppendedFacts, event: string): ReprocessChange[] {
  return FACTS.filter((what) => appended[what] > 0).map((what) => ({
    what,
    stored: null,
    today: what === 'event' ? event : `${appended[what]} more`,
    action: 'append',
  }));
}

/** A provider may make its names longer than an index takes. */
const shortened = (name: string) => createHash('sha256').update(name).digest('base64url');

/**
 * What a delivery speaks of. It tells the event, the payments, the provider's keys and the receivers of a transfer. It asks
 * for those, and for the users who paid and who gave: an earlier transfer may have bound them. Nothing where the body has
 * no event that this version can read.
 */
export async function namesOf(run: DeliveryContext): Promise<DeliveryNames> {
  const { provider } = await run.stored();
  const parsed = isProviderName(provider) ? await run.parsed() : null;
  if (parsed === null || parsed.outcome === 'failed' || parsed.event === null)
    return { provides: [], requires: [] };
  const { payment, adjustment, ...event } = parsed.event;
  const refs = [
    ...(payment === null ? [] : [payment]),
    ...(adjustment === null ? [] : [{ store: adjustment.store, ref: adjustment.paymentRef }]),
    ...event.paymentAliases.flatMap(({ store, aliasRef, paymentRef }) => [
      { store, ref: aliasRef },
      { store, ref: paymentRef },
    ]),
  ];
  const keys = [...event.userKeys, ...event.userLinks.map(({ key }) => key)];
  const provides = [
    `event ${provider} ${event.sourceEventId}`,
    ...refs.map(({ store, ref }) => `payment ${store} ${ref}`),
    ...keys.map((key) => `key ${provider} ${key}`),
    ...(event.transfer?.to ?? []).map((userId) => `user ${userId}`),
  ];
  const users = [...(payment === null ? [] : event.userIds), ...(event.transfer?.from ?? [])];
  const requires = [...provides, ...users.map((userId) => `user ${userId}`)];
  return { provides: [...new Set(provides)].map(shortened), requires: [...new Set(requires)].map(shortened) };
}

/**
 * Runs one stored delivery again through today's code and appends what is missing: facts, then what the evaluations of
 * its payments find. Nothing that is stored is edited. Safe to run twice; the second time finds nothing to do.
 */
export async function reprocessDelivery(
  sql: Sql,
  secretBox: SecretBox,
  run: DeliveryContext,
  reprocessRunId: ReprocessRunId,
): Promise<ReprocessResult> {
  const { deliveryId } = run;
  const stored = await run.stored();
  if (!(await run.isWhole()) || !(await run.isProved(secretBox))) {
    const today = 'the stored request does not match its proof: it counts for nothing';
    return nothingBut({ what: 'refused', stored: null, today, action: 'keep' });
  }

  const parsed = await run.parsed();
  const before = await findReading(sql, deliveryId);
  if (parsed.outcome === 'failed' || parsed.event === null) {
    const [status, reason] =
      parsed.outcome === 'event' ? ['failed' as const, null] : [parsed.outcome, parsed.reason];
    if (status === stored.processingStatus) return nothingBut();
    const change = statusChange(stored, status, reason);
    if (change.action === 'append') await amendOutcome(sql, deliveryId, { status, reason }, null);
    return nothingBut(change);
  }

  const facts = await run.facts();
  const { appId, eventId, event, environment } = facts;
  const reading = readingOf(event, environment);
  const difference = before === undefined ? null : compareReadings(before, reading);
  if (difference !== null && !difference.mayAppend) return nothingBut(...difference.changes);

  const appended = await appendEventFacts(sql, facts);
  const changes: ReprocessChange[] = [...(difference?.changes ?? [])];
  const commissions: NewCommission[] = [];
  const bindings: BindingId[] = [];
  if (appended !== null) {
    changes.push(...factChanges(appended, `${reading.kind}, ${environment}`));
    if (event.transfer !== null) bindings.push(...(await bindTransfers(sql, appId, { eventId })));
    for (const payment of await run.payments()) {
      if (isSettled(payment, evaluatePayment(payment))) continue;
      const applied = await evaluateAndApply(sql, payment, null, reprocessRunId);
      commissions.push(...applied.commissions);
      // A payment that this reprocess appended had no cause before.
      const isNew = appended.payment > 0 && payment.eventId === eventId;
      changes.push(...ledgerChanges(applied.evaluation, isNew ? null : payment.likelyCause));
    }
  }

  const ignoredReason = parsed.outcome === 'ignored' ? parsed.reason : null;
  const status = appended === null ? 'duplicate' : ignoredReason === null ? 'processed' : 'ignored';
  const raised = isBetterOutcome(stored.processingStatus, status);
  if (status !== stored.processingStatus) changes.push(statusChange(stored, status, ignoredReason));
  // A try that died may have written the commission already: whether the delivery names it is asked of the row.
  if (raised || appended !== null) {
    await amendOutcome(
      sql,
      deliveryId,
      raised ? { status, reason: ignoredReason } : null,
      event.sourceEventId,
    );
  }
  return { changes, commissions, bindings };
}
