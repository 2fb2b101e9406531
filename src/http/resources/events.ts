import * as z from 'zod';
import { listEvents } from '../../db/event-feed.ts';
import type { FeedEvent } from '../../db/event-feed.ts';
import { explainOutcome } from '../../domain/event-outcome.ts';
import * as enums from '../enum-fields.ts';
import {
  cents,
  customerUserId,
  epochMs,
  filterId,
  idOf,
  inputId,
  nameOfAffiliate,
  orNull,
  presentedUserId,
  sourceEventId,
  storeAmountMinor,
  storeCurrency,
  textField,
} from '../fields.ts';
import { fromTo } from '../instants.ts';
import {
  decodeCursor,
  EMPTY_PAGE,
  MAY_BE_SHORT,
  millisKey,
  pageSchema,
  pageQuery,
  presentPage,
} from '../pagination.ts';
import { accountApp } from '../routing/callers.ts';
import { route } from '../routing/route.ts';

const event = z
  .object({
    eventId: idOf('event', 'Pass it to `GET …/events/:eventId/explanation`.'),
    deliveryId: idOf('delivery'),
    source: enums.provider,
    sourceEventId,
    kind: enums.eventKind,
    environment: enums.environment,
    occurredAt: epochMs('When it happened, according to the provider.'),
    receivedAt: epochMs('When the webhook arrived.'),
    productId: orNull(textField('pro_monthly', 'The product.'), 'Null if the event names none.'),
    customerUserId: orNull(presentedUserId, 'Null if the event names none.'),
    currency: orNull(storeCurrency, 'Null if the event states no amount.'),
    amountMinor: storeAmountMinor,
    amountCents: orNull(cents('What the customer paid.'), 'Null if it is unknown or not converted yet.'),
    outcome: enums.eventOutcome,
    likelyCause: orNull(enums.likelyCause, 'Null unless the event is a payment that earned nothing.'),
    explanation: orNull(
      textField(
        'A sandbox event never earns a commission.',
        'Why it has this outcome. A sentence for people.',
      ),
      'Null if the event wrote a commission.',
    ),
    waitsUntil: epochMs(
      'When the payment is decided, about. Present while another event may name its user.',
    ).optional(),
    commissionCents: orNull(
      cents('The sum of the commissions that the event wrote. Negative if it takes back.'),
      'Null if it wrote none.',
    ),
    affiliateId: orNull(idOf('affiliate'), 'Null if the payment is attributed to none.'),
    affiliateName: orNull(nameOfAffiliate, 'Null if the payment is attributed to none.'),
  })
  .meta({ id: 'Event', description: 'What a billing provider reported, and what it brought about.' });

/** What a search shows of an event. */
export const foundEvent = event
  .pick({
    eventId: true,
    source: true,
    sourceEventId: true,
    kind: true,
    environment: true,
    occurredAt: true,
    customerUserId: true,
    currency: true,
    amountMinor: true,
  })
  .meta({ id: 'FoundEvent', description: 'An event that a search has found.' });

function presentEvent(row: FeedEvent) {
  return {
    eventId: row.eventId,
    deliveryId: row.deliveryId,
    source: row.source,
    sourceEventId: row.sourceEventId,
    kind: row.kind,
    environment: row.environment,
    occurredAt: row.occurredAt,
    receivedAt: row.receivedAt,
    productId: row.productId,
    customerUserId: row.customerUserId,
    currency: row.currency,
    amountMinor: row.amountMinor,
    amountCents: row.amountCents,
    outcome: row.outcome,
    likelyCause: row.likelyCause,
    explanation: explainOutcome(row),
    ...(row.waitsUntil === null ? {} : { waitsUntil: row.waitsUntil }),
    commissionCents: row.commissionCents,
    affiliateId: row.affiliateId,
    affiliateName: row.affiliateName,
  };
}

export const eventRoutes = [
  route({
    method: 'GET',
    path: '/apps/:appId/events',
    caller: accountApp('read'),
    operationId: 'listEvents',
    summary: 'Lists the events of billing providers and what each brought about, the last received first.',
    description: MAY_BE_SHORT,
    query: z.object({
      ...pageQuery,
      kind: enums.eventKind.optional(),
      source: enums.provider.optional(),
      environment: enums.environment.optional(),
      outcome: enums.eventOutcome.optional(),
      customerUserId: customerUserId.optional(),
      affiliateId: inputId('affiliate').optional(),
      ...fromTo('Earliest `receivedAt`, inclusive.', 'Latest `receivedAt`, exclusive.'),
    }),
    response: { status: 200, schema: pageSchema(event) },
    handler: async ({ deps, app, query }) => {
      const filter = {
        kind: query.kind ?? null,
        source: query.source ?? null,
        environment: query.environment ?? null,
        outcome: query.outcome ?? null,
        customerUserId: query.customerUserId ?? null,
        from: query.from ?? null,
        to: query.to ?? null,
      };
      const key = {
        list: 'events',
        appId: app.id,
        filters: { ...filter, affiliateId: query.affiliateId ?? null },
      };
      const after = decodeCursor(key, millisKey, query.cursor);
      const affiliateId = filterId('affiliate', query.affiliateId);
      if (affiliateId === 'none') return EMPTY_PAGE;
      const page = await listEvents(deps.sql, app.id, { ...filter, affiliateId }, after, query.limit);
      return presentPage(key, page, presentEvent);
    },
  }),
];
