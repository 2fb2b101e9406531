import type { AdjustmentFact, NormalizedEvent, PaymentFact } from '../domain/events.ts';
import type { ComparisonScope, Exported, ExportedGroup, Finding } from '../domain/reconcile-findings.ts';
import { providers } from '../providers/index.ts';
import type { ProviderName } from '../providers/index.ts';
import { bodyOf } from '../providers/shared/sample.ts';
import type { Payload } from '../providers/shared/sample.ts';

/** One event of a row. */
export interface Item {
  readonly line: number;
  readonly group: string;
  readonly body: Payload;
  readonly event: NormalizedEvent;
  readonly refusal: string | null;
  /** Whether the row reduces its payment. */
  readonly isNegative: boolean;
}

type Parsed =
  | { readonly kind: 'event'; readonly event: NormalizedEvent }
  | { readonly kind: 'skipped'; readonly reason: string }
  | { readonly kind: 'unreadable'; readonly reason: string };

/** Reads a body as the provider's parser reads a webhook. */
export function parseBody(provider: ProviderName, body: Payload): Parsed {
  const result = providers[provider].parse(bodyOf(body));
  if (result.outcome === 'failed') return { kind: 'unreadable', reason: result.reason };
  if (result.outcome === 'ignored') return { kind: 'skipped', reason: result.reason };
  const { event } = result;
  if (event.environment === 'sandbox') return { kind: 'skipped', reason: 'a sandbox or test transaction' };
  if (event.payment === null && event.adjustment === null) {
    const reason = event.priceUnknown
      ? 'the export states no price'
      : 'no money moved: a trial, a gift, a cancellation or a price of zero';
    return { kind: 'skipped', reason };
  }
  return { kind: 'event', event };
}

/** Returns what the rows of one payment have in common: its store and reference. */
export function groupOf({ payment, adjustment }: NormalizedEvent): string {
  const store = payment?.store ?? adjustment?.store ?? '';
  return `${store} ${payment?.ref ?? adjustment?.paymentRef ?? ''}`;
}

/** Returns the store of the rows of one payment. */
export function storeOf(items: readonly Item[]): string {
  const [event] = items.map((item) => item.event);
  return event?.payment?.store ?? event?.adjustment?.store ?? '';
}

function exportedOf<Fact>({ event, line }: Item, fact: Fact, refusal: string | null): Exported<Fact> {
  return { fact, at: event.occurredAt, line, userIds: event.userIds, refusal };
}

/** Returns what the rows of one payment state. A later row of the same payment replaces an earlier one. */
export function exportedGroup(
  items: readonly Item[],
  refusalOf: (item: Item) => string | null,
): ExportedGroup {
  let payment: Exported<PaymentFact> | null = null;
  const adjustments: Exported<AdjustmentFact>[] = [];
  const refs = new Set<string>();
  for (const item of items) {
    const { payment: paid, adjustment, paymentAliases } = item.event;
    if (paid !== null) {
      payment = exportedOf(item, paid, refusalOf(item));
      refs.add(paid.ref);
    }
    if (adjustment !== null) {
      adjustments.push(exportedOf(item, adjustment, refusalOf(item)));
      refs.add(adjustment.paymentRef);
    }
    for (const { aliasRef, paymentRef } of paymentAliases) refs.add(aliasRef).add(paymentRef);
  }
  return { payment, adjustments, refs: [...refs] };
}

/** Returns the bodies that would add what a finding says is missing. */
export function bodiesOf(
  finding: Finding,
  items: readonly Item[],
  scope: ComparisonScope,
): readonly Payload[] {
  if (finding.kind === 'missing_payment') {
    const paid = items.filter(({ event }) => event.payment !== null).at(-1);
    return paid === undefined ? [] : [paid.body];
  }
  const refunds = items.filter(({ event }) => event.adjustment !== null);
  if (!scope.hasRefundIds) return refunds.map(({ body }) => body);
  const own = refunds.filter(
    ({ event, line }) => event.adjustment?.ref === finding.refundRef && line === finding.line,
  );
  return own.map(({ body }) => body);
}
