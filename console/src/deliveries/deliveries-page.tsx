import { PageHead } from '../parts.tsx';

export default function DeliveriesPage() {
  return <PageHead title="Deliveries">The webhooks of your billing providers.</PageHead>;
}
