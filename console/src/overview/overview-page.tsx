import { PageHead } from '../parts.tsx';

export default function OverviewPage() {
  return <PageHead title="Overview" />;
}
