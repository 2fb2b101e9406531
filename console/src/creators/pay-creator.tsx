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

/** Opens the payment of what is due to a creator. */
export type OnPay = (payment: Payment) => void;

/** Pays what is due to a creator. Shows nothing if a payment would pay nothing. */
export function PayButton({ appId, affiliateId, onPay }: PayProps & { readonly onPay: OnPay }) {
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
    row !== undefined && (
      <Button variant="default" size="compact-sm" mt={4} onClick={() => onPay(paymentOf(row))}>
        Pay {formatMoney(row.totalCents)} …
      </Button>
    )
  );
}

/**
 * Payments to a creator: those without an answer, and the dialog that pays. The dialog is here and not at its button, which goes away
 * when nothing is due any more. `children` get null while a payment waits for its answer: it is finished first.
 */
export function PayCreator({
  appId,
  affiliateId,
  children,
}: PayProps & { readonly children: (onPay: OnPay | null) => ReactNode }) {
  const session = useCurrentSession();
  const scope = { accountId: session.account.id, appId };
  const attempts = useAttempts(scope).filter((attempt) => attempt.affiliateId === affiliateId);
  const [payment, setPayment] = useState<Payment | null>(null);
  return (
    <>
      {payment === null && <WaitingPayments scope={scope} attempts={attempts} onOpen={setPayment} />}
      {children(attempts.length === 0 ? setPayment : null)}
      <PayDialog scope={scope} payment={payment} onClose={() => setPayment(null)} />
    </>
  );
}
