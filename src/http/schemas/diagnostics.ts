import * as z from 'zod';
import { PROCESSING_STATUSES } from '../../db/deliveries.ts';
import { EVENT_KINDS } from '../../domain/events.ts';
import { LIKELY_CAUSES } from '../../domain/likely-causes.ts';
import { PROVIDER_NAMES } from '../../providers/index.ts';
import { cents, count, epochMs, idOf, pageOf, pageQuery, textLike } from './common.ts';

const source = z.enum(PROVIDER_NAMES);

/** `limit` as in the lists, for the samples of each side. There is no second page. */
export const identityQuery = z.object({ limit: pageQuery.limit });

export const identity = z.object({
  verdict: z.enum(['ok', 'no_overlap', 'no_data']),
  overlapCount: count,
  billingOnlySamples: z.array(textLike('user-4711')),
  attributionOnlySamples: z.array(textLike('4711')),
  truncated: z.boolean().describe('whether there is more than what is shown and counted'),
});

export const diagnosticsQuery = z.object(pageQuery);

export const unattributedPage = pageOf(
  z.object({
    eventId: idOf('event'),
    source,
    sourceEventId: textLike('evt_1SZ'),
    kind: z.enum(EVENT_KINDS),
    customerUserId: textLike('user-4711').nullable(),
    amountCents: cents.nullable(),
    occurredAt: epochMs,
    receivedAt: epochMs,
    likelyCause: z.enum(LIKELY_CAUSES),
    explanation: textLike('No device ever told of this user: call identify(userId).'),
  }),
);

export const webhooksPage = pageOf(
  z.object({
    id: idOf('delivery'),
    source,
    sourceEventId: textLike('evt_1SZ').nullable(),
    receivedAt: epochMs,
    signatureValid: z.boolean(),
    processingStatus: z.enum(PROCESSING_STATUSES),
    lastError: textLike('the body is not JSON').nullable(),
    eventCount: count,
    selfTest: z.boolean().describe('whether the self-test of the set-up sent it: it never earns'),
    eventId: idOf('event').nullable().meta({
      description: '`GET …/events/:eventId/explanation` says what became of it; null when it was refused',
    }),
    workflowId: textLike(
      'delivery:del_01',
      'of the workflow at Temporal; null when the request was refused and none was started',
    ).nullable(),
  }),
);
