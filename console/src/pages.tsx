import { lazy } from 'react';
import type { ComponentType } from 'react';
import { OverviewPage } from './overview/overview-page.tsx';

interface AppPage {
  /** The path under `/apps/:appId/`. */
  readonly path: string;
  readonly Page: ComponentType;
}

/**
 * The pages of an app. The overview, which is opened most, is part of the first load. Each
 * of the others is loaded when it is opened.
 */
export const APP_PAGES: readonly AppPage[] = [
  {
    path: 'setup',
    Page: lazy(async () => await import('./setup/setup-page.tsx')),
  },
  { path: 'overview', Page: OverviewPage },
  {
    path: 'alerts',
    Page: lazy(async () => await import('./alerts/alerts-page.tsx')),
  },
  {
    path: 'creators',
    Page: lazy(async () => await import('./creators/creators-page.tsx')),
  },
  {
    path: 'creators/:affiliateId',
    Page: lazy(async () => await import('./creators/creator-page.tsx')),
  },
  {
    path: 'policies',
    Page: lazy(async () => await import('./policies/policies-page.tsx')),
  },
  {
    path: 'policies/new',
    Page: lazy(async () => await import('./policies/new-policy-page.tsx')),
  },
  {
    path: 'policies/:policyId',
    Page: lazy(async () => await import('./policies/policy-page.tsx')),
  },
  {
    path: 'policies/:policyId/new-version',
    Page: lazy(async () => await import('./policies/new-version-page.tsx')),
  },
  {
    path: 'policies/groups/:groupId',
    Page: lazy(async () => await import('./groups/group-page.tsx')),
  },
  {
    path: 'links',
    Page: lazy(async () => await import('./links/links-page.tsx')),
  },
  {
    path: 'events',
    Page: lazy(async () => await import('./events/events-page.tsx')),
  },
  {
    path: 'events/:eventId',
    Page: lazy(async () => await import('./events/event-page.tsx')),
  },
  {
    path: 'unattributed',
    Page: lazy(async () => await import('./unattributed/unattributed-page.tsx')),
  },
  {
    path: 'unattributed/manual',
    Page: lazy(async () => await import('./attributions/manual-page.tsx')),
  },
  {
    path: 'deliveries',
    Page: lazy(async () => await import('./deliveries/deliveries-page.tsx')),
  },
  {
    path: 'commissions',
    Page: lazy(async () => await import('./commissions/commissions-page.tsx')),
  },
  {
    path: 'payouts',
    Page: lazy(async () => await import('./payouts/payouts-page.tsx')),
  },
  {
    path: 'payouts/runs',
    Page: lazy(async () => await import('./payouts/runs-page.tsx')),
  },
  {
    path: 'payouts/runs/:runId',
    Page: lazy(async () => await import('./payouts/run-page.tsx')),
  },
  {
    path: 'payouts/:payoutId',
    Page: lazy(async () => await import('./payouts/payout-page.tsx')),
  },
  {
    path: 'ledger',
    Page: lazy(async () => await import('./ledger/ledger-page.tsx')),
  },
  {
    path: 'webhooks',
    Page: lazy(async () => await import('./webhooks/webhooks-page.tsx')),
  },
  {
    path: 'settings',
    Page: lazy(async () => await import('./settings/settings-page.tsx')),
  },
];

/**
 * Returns the path of the page to show when another app is chosen: the same page, if it is about the app as a whole, or the start
 * of the app.
 */
export function pathForOtherApp(pathname: string): string {
  const [, , , path = ''] = pathname.split('/');
  return APP_PAGES.some((page) => page.path === path) ? path : '';
}
