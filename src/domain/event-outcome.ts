import type { LikelyCause } from './likely-causes.ts';
import { ADJUSTMENT_KINDS, PAYMENT_KINDS } from './events.ts';
import type { EventKind } from './events.ts';
import { CAUSE_EXPLANATIONS } from './likely-causes.ts';

/** What an event has brought about. */
export const EVENT_OUTCOMES = ['earned', 'reversed', 'nothing', 'waiting', 'sandbox'] as const;
export type EventOutcome = (typeof EVENT_OUTCOMES)[number];

/** Causes that end without anybody's action at the app or the provider. */
export const WAITING_CAUSES = [
  'processing',
  'missing_exchange_rate',
] as const satisfies readonly LikelyCause[];

export const WAITING_FOR_PAYMENT =
  'The payment of this refund or dispute is not known yet. The event is stored and counts when the payment arrives.';
export const WAITS_FOR_DECISION =
  'The payment is decided about a minute after it arrived: until then, another event may name its user.';
export const EARNED_BY_ANOTHER_EVENT =
  'The payment earned its commission through another event. This event changes nothing.';
export const MOVES_NO_MONEY = 'The event moves no money.';
export const NOTHING_DUE = 'No commission is due for this event.';
export const SANDBOX_NEVER_EARNS = 'A sandbox event never earns a commission.';

/** Returns why an event without a cause has no commission of its own. `hasEarned`: whether its payment has one. */
export function explainNothing(kind: EventKind, hasEarned: boolean): string {
  if (!PAYMENT_KINDS.has(kind) && !ADJUSTMENT_KINDS.has(kind)) return MOVES_NO_MONEY;
  return hasEarned && PAYMENT_KINDS.has(kind) ? EARNED_BY_ANOTHER_EVENT : NOTHING_DUE;
}

/** Returns why an event has its outcome, a sentence for people. Null if a commission says it. */
export function explainOutcome(event: {
  readonly outcome: EventOutcome;
  readonly kind: EventKind;
  readonly likelyCause: LikelyCause | null;
  /** When the payment is decided, about, epoch ms. Null if it was, and if its cause says what it waits for. */
  readonly waitsUntil: number | null;
  /** Whether the payment that the event reports has a commission. */
  readonly hasEarned: boolean;
}): string | null {
  switch (event.outcome) {
    case 'earned':
    case 'reversed':
      return null;
    case 'sandbox':
      return SANDBOX_NEVER_EARNS;
    case 'waiting':
      if (event.waitsUntil !== null) return WAITS_FOR_DECISION;
      return event.likelyCause === null ? WAITING_FOR_PAYMENT : CAUSE_EXPLANATIONS[event.likelyCause];
    case 'nothing':
      return event.likelyCause === null
        ? explainNothing(event.kind, event.hasEarned)
        : CAUSE_EXPLANATIONS[event.likelyCause];
  }
}
