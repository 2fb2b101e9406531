import { PageHead } from '../parts.tsx';

export default function EventsPage() {
  return <PageHead title="Events">What billing providers reported, and what it earned.</PageHead>;
}
