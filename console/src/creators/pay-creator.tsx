import { Button } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import type { ReactNode } from 'react';
import { Link } from 'react-router';
import { api, read } from '../api/client.ts';
import { formatMoney } from '../format.ts';
import { useAttempts } from '../payouts/attempts.ts';
import { PayDialog, paymentOf, WaitingPayments } from '../payouts/pay-dialog.tsx';
import type { Payment } from '../payouts/pay-dialog.tsx';
import { useCurrentSession } from '../session.ts';

interface PayProps {
  readonly appId: string;
  readonly affiliateId: string;
}

/** Returns the payments to a creator that wait for their answer. */
function useAttemptsOf({ appId, affiliateId }: PayProps) {
  const session = useCurrentSession();
  const scope = { accountId: session.account.id, appId };
  return { scope, attempts: useAttempts(scope).filter((attempt) => attempt.affiliateId === affiliateId) };
}

/** Pays what is due to a creator. Shows nothing if a payment would pay nothing, or one waits for its answer. */
export function PayButton({
  appId,
  affiliateId,
  onPay,
}: PayProps & { readonly onPay: (payment: Payment) => void }) {
  const { attempts } = useAttemptsOf({ appId, affiliateId });
  const preview = useQuery({
    queryKey: ['creator', appId, affiliateId, 'payable'],
    queryFn: async () =>
      await read(
        api.GET('/apps/{appId}/payouts/preview', { params: { path: { appId }, query: { affiliateId } } }),
      ),
  });
  if (preview.data === undefined)
    return preview.error === null ? null : <Link to={`/apps/${appId}/payouts`}>Pay in Payouts</Link>;
  const [row] = preview.data.rows;
  return (
    row !== undefined &&
    attempts.length === 0 && (
      <Button variant="default" size="compact-sm" mt={4} onClick={() => onPay(paymentOf(row))}>
        Pay {formatMoney(row.totalCents)} …
      </Button>
    )
  );
}

/**
 * Payments to a creator: those without an answer, and the dialog that pays. The dialog is here and not at its button, which goes away
 * when nothing is due any more.
 */
export function PayCreator({
  appId,
  affiliateId,
  children,
}: PayProps & { readonly children: (onPay: (payment: Payment) => void) => ReactNode }) {
  const { scope, attempts } = useAttemptsOf({ appId, affiliateId });
  const [payment, setPayment] = useState<Payment | null>(null);
  return (
    <>
      {payment === null && <WaitingPayments scope={scope} attempts={attempts} onOpen={setPayment} />}
      {children(setPayment)}
      <PayDialog scope={scope} payment={payment} onClose={() => setPayment(null)} />
    </>
  );
}
