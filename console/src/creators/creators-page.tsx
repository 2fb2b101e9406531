import { PageHead } from '../parts.tsx';

export default function CreatorsPage() {
  return <PageHead title="Creators" />;
}
