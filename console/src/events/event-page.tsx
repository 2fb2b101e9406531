import { PageHead } from '../parts.tsx';

export default function EventPage() {
  return <PageHead title="Event">How the event was processed, step by step.</PageHead>;
}
