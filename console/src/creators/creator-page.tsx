import { PageHead } from '../parts.tsx';

export default function CreatorPage() {
  return <PageHead title="Creator" />;
}
