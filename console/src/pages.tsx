import type { ComponentType } from 'react';
import { matchPath } from 'react-router';
import { lazyPage } from './lazy-page.ts';
import type { LazyPage } from './lazy-page.ts';
import { OverviewPage } from './overview/overview-page.tsx';
import { HEADS } from './page-heads.ts';
import type { Head } from './page-heads.ts';

/** A page of an app. The page loads its module itself when it is shown. */
interface AppPage extends Partial<LazyPage> {
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
    ...lazyPage(async () => await import('./setup/setup-page.tsx')),
  },
  { path: 'overview', Page: OverviewPage },
  {
    path: 'alerts',
    ...lazyPage(async () => await import('./alerts/alerts-page.tsx')),
  },
  {
    path: 'creators',
    ...lazyPage(async () => await import('./creators/creators-page.tsx')),
  },
  {
    path: 'creators/:affiliateId',
    ...lazyPage(async () => await import('./creators/creator-page.tsx')),
  },
  {
    path: 'policies',
    ...lazyPage(async () => await import('./policies/policies-page.tsx')),
  },
  {
    path: 'policies/new',
    ...lazyPage(async () => await import('./policies/new-policy-page.tsx')),
  },
  {
    path: 'policies/:policyId',
    ...lazyPage(async () => await import('./policies/policy-page.tsx')),
  },
  {
    path: 'policies/:policyId/new-version',
    ...lazyPage(async () => await import('./policies/new-version-page.tsx')),
  },
  {
    path: 'policies/groups/:groupId',
    ...lazyPage(async () => await import('./groups/group-page.tsx')),
  },
  {
    path: 'links',
    ...lazyPage(async () => await import('./links/links-page.tsx')),
  },
  {
    path: 'events',
    ...lazyPage(async () => await import('./events/events-page.tsx')),
  },
  {
    path: 'events/:eventId',
    ...lazyPage(async () => await import('./events/event-page.tsx')),
  },
  {
    path: 'unattributed',
    ...lazyPage(async () => await import('./unattributed/unattributed-page.tsx')),
  },
  {
    path: 'unattributed/manual',
    ...lazyPage(async () => await import('./attributions/manual-page.tsx')),
  },
  {
    path: 'deliveries',
    ...lazyPage(async () => await import('./deliveries/deliveries-page.tsx')),
  },
  {
    path: 'commissions',
    ...lazyPage(async () => await import('./commissions/commissions-page.tsx')),
  },
  {
    path: 'payouts',
    ...lazyPage(async () => await import('./payouts/payouts-page.tsx')),
  },
  {
    path: 'payouts/runs',
    ...lazyPage(async () => await import('./payouts/runs-page.tsx')),
  },
  {
    path: 'payouts/runs/:runId',
    ...lazyPage(async () => await import('./payouts/run-page.tsx')),
  },
  {
    path: 'payouts/:payoutId',
    ...lazyPage(async () => await import('./payouts/payout-page.tsx')),
  },
  {
    path: 'ledger',
    ...lazyPage(async () => await import('./ledger/ledger-page.tsx')),
  },
  {
    path: 'webhooks',
    ...lazyPage(async () => await import('./webhooks/webhooks-page.tsx')),
  },
  {
    path: 'settings',
    ...lazyPage(async () => await import('./settings/settings-page.tsx')),
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

const pageOf = (pathname: string) =>
  APP_PAGES.find(({ path }) => matchPath(`/apps/:appId/${path}`, pathname) !== null);

/** Loads the module of the page of a path, which begins with `/apps/`. Nothing happens for another path. */
export async function loadPageOf(pathname: string): Promise<void> {
  await pageOf(pathname)?.load?.();
}

/** Returns the title of a page and what it is for, where its data does not decide that. */
export function headOf(pathname: string): Head | undefined {
  const path = pageOf(pathname)?.path;
  return path === undefined ? undefined : (HEADS as Readonly<Record<string, Head>>)[path];
}

/** Whether the module of a page is loaded. */
export const isPageLoaded = (pathname: string): boolean => pageOf(pathname)?.isLoaded?.() !== false;
