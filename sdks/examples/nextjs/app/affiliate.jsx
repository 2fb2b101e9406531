'use client';

import { useAttribution } from '@tributary/web/react';

/** Shows the affiliate of this browser. It is null on the server, and until the page is hydrated. */
export function Affiliate() {
  const { affiliateId } = useAttribution();
  return (
    <p>
      Affiliate: <output>{affiliateId ?? 'none'}</output>
    </p>
  );
}
