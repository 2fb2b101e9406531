import { PageHead } from '../parts.tsx';

export default function CommissionsPage() {
  return <PageHead title="Commissions" />;
}
