import type { IdentityOverlap, UnattributedEvent, WebhookDelivery } from '../../db/diagnostics.ts';
import { CAUSE_EXPLANATIONS } from '../../domain/likely-causes.ts';
import { workflowIds } from '../../domain/workflow-ids.ts';

function verdictOf({ billed, told, overlapCount }: IdentityOverlap) {
  if (!billed || !told) return 'no_data';
  return overlapCount > 0 ? 'ok' : 'no_overlap';
}

/** Whether user ids match, with at most `samples` of each side that do not. */
export function presentIdentity(overlap: IdentityOverlap, samples: number) {
  const { overlapCount, billingOnly, toldOnly, complete } = overlap;
  return {
    verdict: verdictOf(overlap),
    overlapCount,
    billingOnlySamples: billingOnly.slice(0, samples),
    attributionOnlySamples: toldOnly.slice(0, samples),
    truncated: !complete || billingOnly.length > samples || toldOnly.length > samples,
  } as const;
}

/** A paid event that earned nothing, with what to do about it. */
export function presentUnattributed(row: UnattributedEvent) {
  return {
    eventId: row.eventId,
    source: row.source,
    sourceEventId: row.sourceEventId,
    kind: row.kind,
    customerUserId: row.customerUserId,
    amountCents: row.amountCents,
    occurredAt: row.occurredAt,
    receivedAt: row.receivedAt,
    likelyCause: row.likelyCause,
    explanation: CAUSE_EXPLANATIONS[row.likelyCause],
  };
}

/** A delivery of a billing provider. Never shows what was in it. */
export function presentDelivery(row: WebhookDelivery) {
  return {
    id: row.id,
    source: row.source,
    sourceEventId: row.sourceEventId,
    receivedAt: row.receivedAt,
    signatureValid: row.signatureValid,
    processingStatus: row.processingStatus,
    lastError: row.lastError,
    eventCount: row.eventCount,
    selfTest: row.selfTest,
    eventId: row.signatureValid ? row.eventId : null,
    workflowId: row.signatureValid ? workflowIds.delivery(row.id) : null,
  };
}
