import { PageHead } from '../parts.tsx';

export default function PayoutsPage() {
  return <PageHead title="Payouts" />;
}
