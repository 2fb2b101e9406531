import { Alert, Anchor, Button, Checkbox, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { Link } from 'react-router';
import { api, read } from '../api/client.ts';
import type { Schemas } from '../api/client.ts';
import { Dialog } from '../dialog.tsx';
import { formatCount, formatCountOf, formatMoney } from '../format.ts';
import { PAYOUT_KEYS } from './keys.ts';
import { AskToPay } from './raise-form.tsx';
import { Steps } from './run-dialogs.tsx';
import { useDraft } from './run-draft.tsx';
import type { Run } from './words.ts';

/** Payouts that are listed at most. */
const MOST_LISTED = 20;

function ResendForm({
  appId,
  open,
  isEverybody,
  onEverybody,
  onNotRaised,
  onClose,
}: {
  readonly appId: string;
  readonly open: Run | null;
  /** Whether creators without a payee are in it. */
  readonly isEverybody: boolean;
  readonly onEverybody: (isEverybody: boolean) => void;
  readonly onNotRaised: () => void;
  readonly onClose: () => void;
}) {
  const { draft, send } = useDraft(
    appId,
    { kind: 'resend', minimumCents: 0, withoutPayee: isEverybody ? 'include' : 'exclude' },
    onNotRaised,
  );
  return (
    <Steps appId={appId} change={draft} keep="Cancel" action="Draft it" onSend={send} onClose={onClose}>
      <Text size="sm">
        These payouts stay as they are: their commissions were paid. The run puts them into new files, to the
        payees that creators have now. Correct a wrong payee first, on the page of the creator: a new payee
        counts after some days, and until then a run leaves the creator out.
      </Text>
      <Text size="sm">A draft sends nothing. You look at it, and then approve it, or not.</Text>
      {open?.status === 'draft' && (
        <Text size="sm">It takes the place of the draft that waits, which is then cancelled.</Text>
      )}
      <Checkbox
        label="Also send to creators without a payee"
        description="They are in a file of their own: you know how to reach them."
        checked={isEverybody}
        onChange={(event) => onEverybody(event.currentTarget.checked)}
      />
    </Steps>
  );
}

/** Lists payouts that are marked as returned and arrived by another transfer, as a report says. Nothing without one. */
function ContradictedReturns({
  appId,
  contradicted: { count, totalCents, rows },
}: {
  readonly appId: string;
  readonly contradicted: Schemas['ReturnedPayouts']['contradicted'];
}) {
  if (count === 0) return null;
  return (
    <Alert
      color="yellow"
      variant="light"
      mb="sm"
      title={`The money of ${formatCountOf(count, 'payout')} may have arrived after all: ${formatMoney(totalCents)}`}
    >
      <Text size="sm" mb="xs">
        {count === 1 ? 'It is' : 'They are'} marked as returned, and a report has another transfer. No run
        sends the money again until you say where it is. Look at your payment service, then open the payout:
        if the money arrived, press “Withdraw the return”; if it did not, press “Withdraw the return”, then
        “Mark as returned”.
      </Text>
      <ul style={{ margin: 0 }}>
        {rows.slice(0, MOST_LISTED).map((row) => (
          <li key={row.payoutId}>
            <Anchor component={Link} to={`/apps/${appId}/payouts/${row.payoutId}`} size="sm">
              {row.affiliateName}, {formatMoney(row.totalCents)}
            </Anchor>
          </li>
        ))}
      </ul>
      {count > MOST_LISTED && <Text size="sm">And {formatCount(count - MOST_LISTED)} more.</Text>}
    </Alert>
  );
}

/** Says that money came back, and drafts the run that sends it again. Nothing if none did. */
export function ReturnedMoney({ appId, open }: { readonly appId: string; readonly open: Run | null }) {
  const [isOpen, setIsOpen] = useState(false);
  const [isEverybody, setIsEverybody] = useState(true);
  const { data } = useQuery({
    queryKey: PAYOUT_KEYS.returned(appId),
    queryFn: async () =>
      await read(api.GET('/apps/{appId}/payouts/returned', { params: { path: { appId } } })),
  });
  if (data === undefined) return null;
  if (data.count === 0) return <ContradictedReturns appId={appId} contradicted={data.contradicted} />;
  const close = () => {
    setIsEverybody(true);
    setIsOpen(false);
  };
  return (
    <>
      <ContradictedReturns appId={appId} contradicted={data.contradicted} />
      <Alert
        color="yellow"
        variant="light"
        title={`The money of ${formatCountOf(data.count, 'payout')} came back: ${formatMoney(data.totalCents)}`}
      >
        <Text size="sm" mb="xs">
          {open?.status === 'approved'
            ? 'It can be sent again when the run that is being paid has ended.'
            : 'Send it again by a run of its own, with new files.'}
        </Text>
        {open?.status !== 'approved' && (
          <Button variant="default" onClick={() => setIsOpen(true)}>
            Send it again …
          </Button>
        )}
      </Alert>
      <Dialog isOpen={isOpen} onClose={close} title="Send returned money again">
        {isOpen && (
          <AskToPay onCancel={close}>
            {(onNotRaised) => (
              <ResendForm
                appId={appId}
                open={open}
                isEverybody={isEverybody}
                onEverybody={setIsEverybody}
                onNotRaised={onNotRaised}
                onClose={close}
              />
            )}
          </AskToPay>
        )}
      </Dialog>
    </>
  );
}
