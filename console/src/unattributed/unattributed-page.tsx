import { PageHead } from '../parts.tsx';

export default function UnattributedPage() {
  return <PageHead title="Unattributed">Payments without a commission, and why.</PageHead>;
}
