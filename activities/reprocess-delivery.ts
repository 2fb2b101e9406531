import { createHash } from 'node:crypto';
import type { SecretBox } from '../src/config/secret-box.ts';
import { addErasedReferences } from '../src/db/erased-identifiers.ts';
import { appendEventFacts } from '../src/db/events.ts';
import type { AppendedFacts } from '../src/db/events.ts';
import { loadPayments } from '../src/db/payments.ts';
import type { HeldCommission } from '../src/db/maturing.ts';
import { raiseOutcome, findReading } from '../src/db/reprocess-deliveries.ts';
import type { DeliveryNames } from '../src/db/reprocess-deliveries.ts';
import type { Sql } from '../src/db/sql.ts';
import { bindTransfers } from '../src/db/transfers.ts';
import { evaluatePayment } from '../src/domain/evaluate-payment.ts';
import type { EvaluationLimits } from '../src/domain/evaluation.ts';
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
import { evaluateAndApply, newBindings } from './evaluate.ts';

/** What reprocessing a stored delivery changed. */
export interface ReprocessResult {
  readonly changes: readonly ReprocessChange[];
  readonly commissions: readonly HeldCommission[];
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

/** Facts in the order in which they are shown. */
const FACTS = [
  'event',
  'payment',
  'components',
  'adjustment',
  'users',
  'userKeys',
  'userLinks',
  'aliases',
  'codes',
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

/** A provider's names may be longer than an index allows. */
const shortened = (name: string) => createHash('sha256').update(name).digest('base64url');

/**
 * Returns the names that order a delivery among others. It provides its event, its payments, the provider's keys and the
 * receivers of a transfer. It requires those, and the users who paid or gave, because an earlier transfer may have bound
 * them. An erased person has the names of the pseudonyms. Empty when the body has no event that this version can parse.
 */
export async function namesOf(context: DeliveryContext): Promise<DeliveryNames> {
  const { provider } = await context.stored();
  const parsed = isProviderName(provider) ? await context.parsed() : null;
  if (parsed === null || parsed.outcome === 'failed' || parsed.event === null)
    return { provides: [], requires: [] };
  await context.replaceErased();
  const { payment, adjustment, ...event } = (await context.event()).event;
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

export interface ReprocessDeliveryDeps {
  readonly secretBox: SecretBox;
  /** The operator's limits; the defaults of the domain if absent. */
  readonly limits?: EvaluationLimits | undefined;
}

/**
 * Processes a stored delivery with today's code and appends what is missing: facts, then the results of evaluating its
 * payments. Stored rows are never edited. A second run changes nothing.
 */
export async function reprocessDelivery(
  sql: Sql,
  { secretBox, limits }: ReprocessDeliveryDeps,
  context: DeliveryContext,
  reprocessRunId: ReprocessRunId,
): Promise<ReprocessResult> {
  const { deliveryId } = context;
  const stored = await context.stored();
  if (!(await context.isWhole()) || !(await context.isProved())) {
    const today = 'the stored request does not match its signature or hash and is ignored';
    return nothingBut({ what: 'refused', stored: null, today, action: 'keep' });
  }

  const parsed = await context.parsed();
  const before = await findReading(sql, deliveryId);
  if (parsed.outcome === 'failed' || parsed.event === null) {
    const [status, reason] =
      parsed.outcome === 'event' ? ['failed' as const, null] : [parsed.outcome, parsed.reason];
    if (status === stored.processingStatus) return nothingBut();
    const change = statusChange(stored, status, reason);
    if (change.action === 'append') await raiseOutcome(sql, deliveryId, { status, reason }, null);
    return nothingBut(change);
  }

  await context.replaceErased();
  const facts = await context.facts();
  const { appId, eventId, event, environment } = facts;
  const reading = readingOf(event, environment);
  const difference = before === undefined ? null : compareReadings(before, reading);
  if (difference !== null && !difference.mayAppend) return nothingBut(...difference.changes);

  const appended = await appendEventFacts(sql, facts);
  const changes: ReprocessChange[] = [...(difference?.changes ?? [])];
  const commissions: HeldCommission[] = [];
  const bindings: BindingId[] = [];
  if (appended !== null) {
    changes.push(...factChanges(appended, `${reading.kind}, ${environment}`));
    // Later refunds of an erased person's payment name it, not the person.
    if (appended.payment > 0) await addErasedReferences(sql, secretBox, facts);
    if (event.transfer !== null) bindings.push(...(await bindTransfers(sql, appId, { eventId })));
    bindings.push(...(await context.bindSignedInUsers()));
    const linked = await loadPayments(sql, { paymentIds: await context.linkedPayments() });
    let hasBound = false;
    for (const read of [...(await context.payments()), ...linked]) {
      // A payment may bind a key that the next one would bind. In a dry run, all of them are one transaction.
      const [payment = read] = hasBound ? await loadPayments(sql, { rowId: read.paymentId }) : [];
      if (isSettled(payment, evaluatePayment(payment, limits))) continue;
      const applied = await evaluateAndApply(sql, payment, null, { limits, reprocessRunId });
      commissions.push(...applied.commissions);
      const bound = newBindings(applied);
      hasBound ||= bound.length > 0;
      bindings.push(...bound);
      // A payment that this run appended had no cause before.
      const isNew = appended.payment > 0 && payment.eventId === eventId;
      changes.push(...ledgerChanges(applied.evaluation, isNew ? null : payment.likelyCause));
    }
  }

  const ignoredReason = await context.ignoredReason();
  const status = appended === null ? 'duplicate' : ignoredReason === null ? 'processed' : 'ignored';
  const raised = isBetterOutcome(stored.processingStatus, status);
  if (status !== stored.processingStatus) changes.push(statusChange(stored, status, ignoredReason));
  // An attempt that died may have written the commission already, so the statement checks whether the row names it.
  if (raised || appended !== null) {
    await raiseOutcome(
      sql,
      deliveryId,
      raised ? { status, reason: ignoredReason } : null,
      event.sourceEventId,
    );
  }
  return { changes, commissions, bindings };
}
