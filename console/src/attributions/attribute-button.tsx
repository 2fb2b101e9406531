import { Button, Group, Text } from '@mantine/core';
import { useState } from 'react';
import type { Schemas } from '../api/client.ts';
import { usePermission } from '../session.ts';
import { AttributeDialog } from './attribute-dialog.tsx';
import { paymentToAttribute } from './queries.ts';
import type { UnattributedPayment } from './queries.ts';

type Step = Schemas['Explanation']['steps'][number];

/** Returns the payment of an event that can be given to a creator. Null for other events. */
function paymentOf(steps: readonly Step[]): UnattributedPayment | null {
  const normalize = steps.find((step) => step.step === 'normalize');
  const attribute = steps.find((step) => step.step === 'attribute');
  if (normalize === undefined || attribute === undefined) return null;
  const { kind, customerUserId, occurredAt } = normalize.facts;
  const decisions = steps.map(({ decision }) => decision);
  return (
    [attribute.decision, decisions.at(-1) ?? '']
      .map((cause) =>
        paymentToAttribute({
          kind,
          cause,
          // Another event of the payment may name the user.
          customerUserId: customerUserId ?? attribute.facts.users?.[0]?.customerUserId,
          attributableKey: attribute.facts.attributableKey,
          occurredAt: attribute.facts.paidAt ?? occurredAt,
        }),
      )
      .find((payment) => payment !== null) ?? null
  );
}

/** The button on the page of an event that gives its user, or what stands for one, to a creator. Nothing for an event that needs none. */
export function AttributeEvent({
  appId,
  steps,
}: {
  readonly appId: string;
  readonly steps: readonly Step[];
}) {
  const canWrite = usePermission('write');
  const [attributing, setAttributing] = useState<UnattributedPayment | null>(null);
  const payment = paymentOf(steps);
  return (
    <>
      {payment !== null && (
        <Group gap="sm">
          <Button size="compact-sm" disabled={!canWrite} onClick={() => setAttributing(payment)}>
            Attribute to a creator
          </Button>
          {!canWrite && (
            <Text size="sm" className="quiet">
              It needs the permission “write”, which you do not have.
            </Text>
          )}
        </Group>
      )}
      {/* Stays open when the event has changed by it. */}
      <AttributeDialog appId={appId} payment={attributing} onClose={() => setAttributing(null)} />
    </>
  );
}
