import { lazy } from 'react';
import type { ComponentType } from 'react';
import { OverviewPage } from './overview/overview-page.tsx';

interface AppPage {
  /** The path under `/apps/:appId/`. */
  readonly path: string;
  /** The text in the navigation. Null for a page that another one leads to. */
  readonly title: string | null;
  readonly Page: ComponentType;
}

/**
 * The pages of an app, in the order of the navigation. The overview, which is opened most, is part of the first load. Each
 * of the others is loaded when it is opened.
 */
export const APP_PAGES: readonly AppPage[] = [
  {
    path: 'setup',
    title: 'Set-up',
    Page: lazy(async () => await import('./setup/setup-page.tsx')),
  },
  { path: 'overview', title: 'Overview', Page: OverviewPage },
  {
    path: 'alerts',
    title: 'Alerts',
    Page: lazy(async () => await import('./alerts/alerts-page.tsx')),
  },
  {
    path: 'creators',
    title: 'Creators',
    Page: lazy(async () => await import('./creators/creators-page.tsx')),
  },
  {
    path: 'creators/:affiliateId',
    title: null,
    Page: lazy(async () => await import('./creators/creator-page.tsx')),
  },
  {
    path: 'policies',
    title: 'Policies',
    Page: lazy(async () => await import('./policies/policies-page.tsx')),
  },
  {
    path: 'policies/new',
    title: null,
    Page: lazy(async () => await import('./policies/new-policy-page.tsx')),
  },
  {
    path: 'policies/:policyId',
    title: null,
    Page: lazy(async () => await import('./policies/policy-page.tsx')),
  },
  {
    path: 'policies/:policyId/new-version',
    title: null,
    Page: lazy(async () => await import('./policies/new-version-page.tsx')),
  },
  {
    path: 'policies/groups/:groupId',
    title: null,
    Page: lazy(async () => await import('./groups/group-page.tsx')),
  },
  {
    path: 'links',
    title: 'Links',
    Page: lazy(async () => await import('./links/links-page.tsx')),
  },
  {
    path: 'events',
    title: 'Events',
    Page: lazy(async () => await import('./events/events-page.tsx')),
  },
  {
    path: 'events/:eventId',
    title: null,
    Page: lazy(async () => await import('./events/event-page.tsx')),
  },
  {
    path: 'unattributed',
    title: 'Unattributed',
    Page: lazy(async () => await import('./unattributed/unattributed-page.tsx')),
  },
  {
    path: 'unattributed/manual',
    title: null,
    Page: lazy(async () => await import('./attributions/manual-page.tsx')),
  },
  {
    path: 'deliveries',
    title: 'Deliveries',
    Page: lazy(async () => await import('./deliveries/deliveries-page.tsx')),
  },
  {
    path: 'commissions',
    title: 'Commissions',
    Page: lazy(async () => await import('./commissions/commissions-page.tsx')),
  },
  {
    path: 'payouts',
    title: 'Payouts',
    Page: lazy(async () => await import('./payouts/payouts-page.tsx')),
  },
  {
    path: 'payouts/runs',
    title: null,
    Page: lazy(async () => await import('./payouts/runs-page.tsx')),
  },
  {
    path: 'payouts/runs/:runId',
    title: null,
    Page: lazy(async () => await import('./payouts/run-page.tsx')),
  },
  {
    path: 'payouts/:payoutId',
    title: null,
    Page: lazy(async () => await import('./payouts/payout-page.tsx')),
  },
  {
    path: 'ledger',
    title: 'Ledger',
    Page: lazy(async () => await import('./ledger/ledger-page.tsx')),
  },
  {
    path: 'webhooks',
    title: 'Webhooks',
    Page: lazy(async () => await import('./webhooks/webhooks-page.tsx')),
  },
  {
    path: 'settings',
    title: 'Settings',
    Page: lazy(async () => await import('./settings/settings-page.tsx')),
  },
];

/**
 * Returns the path of the page to show when another app is chosen: the same page, if it has a place in the navigation, or the
 * start of the app.
 */
export function pathForOtherApp(pathname: string): string {
  const [, , , path = ''] = pathname.split('/');
  return APP_PAGES.some((page) => page.title !== null && page.path === path) ? path : '';
}
