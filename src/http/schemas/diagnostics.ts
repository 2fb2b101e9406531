import * as z from 'zod';
import { PROCESSING_STATUSES } from '../../db/deliveries.ts';
import { EVENT_KINDS } from '../../domain/events.ts';
import { LIKELY_CAUSES } from '../../domain/likely-causes.ts';
import { PROVIDER_NAMES } from '../../providers/provider.ts';
import { anyId, cents, count, epochMs, pageOf, pageQuery } from './common.ts';

const source = z.enum(PROVIDER_NAMES);

/** `limit` as in the lists, for the samples of each side. There is no second page. */
export const identityQuery = z.object(pageQuery);

export const identity = z.object({
  verdict: z.enum(['ok', 'no_overlap', 'no_data']),
  overlapCount: count,
  billingOnlySamples: z.array(z.string()),
  attributionOnlySamples: z.array(z.string()),
  truncated: z.boolean().describe('whether there is more than what is shown and counted'),
});

export const diagnosticsQuery = z.object(pageQuery);

export const unattributedPage = pageOf(
  z.object({
    eventId: anyId,
    source,
    sourceEventId: z.string(),
    kind: z.enum(EVENT_KINDS),
    customerUserId: z.string().nullable(),
    amountCents: cents.nullable(),
    occurredAt: epochMs,
    receivedAt: epochMs,
    likelyCause: z.enum(LIKELY_CAUSES),
    explanation: z.string(),
  }),
);

export const webhooksPage = pageOf(
  z.object({
    id: anyId,
    source,
    sourceEventId: z.string().nullable(),
    receivedAt: epochMs,
    signatureValid: z.boolean(),
    processingStatus: z.enum(PROCESSING_STATUSES),
    lastError: z.string().nullable(),
    eventCount: count,
    workflowId: z.string().nullable().describe('null when the request was refused: no workflow is started'),
  }),
);
