import type { HeldCommission } from '../src/db/maturing.ts';
import type { DeliveryOutcome } from '../src/domain/delivery.ts';
import type { AppId, BindingId, DeliveryId, PayoutRequestId } from '../src/domain/ids.ts';

/** What activities say of their work after its commit. `temporal/workflow-starter.ts` does what follows from it. */
export interface WorkEvents {
  /** A delivery has its outcome, which is passed to the request that waits. */
  readonly onOutcome: (deliveryId: DeliveryId, outcome: DeliveryOutcome) => void;
  /** A payout request is settled; passed to the request that waits. */
  readonly onSettled: (requestId: PayoutRequestId) => void;
  /** Commissions were written: their hold timers start. */
  readonly onCommissions: (commissions: readonly HeldCommission[]) => void;
  /** Users were bound: their earlier payments are evaluated. */
  readonly onBindings: (bindings: readonly BindingId[], appId: AppId) => void;
}
