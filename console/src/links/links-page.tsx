import { PageHead } from '../parts.tsx';

export default function LinksPage() {
  return <PageHead title="Links" />;
}
