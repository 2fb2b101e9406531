import type { Route, RouteGroup } from '../route.ts';
import { affiliateRoutes } from './affiliates.ts';
import { appRoutes } from './apps.ts';
import { clickRoutes } from './clicks.ts';
import { commissionRoutes } from './commissions.ts';
import { diagnosticsRoutes } from './diagnostics.ts';
import { docsRoutes } from './docs.ts';
import { explanationRoutes } from './explanations.ts';
import { healthRoutes } from './health.ts';
import { ledgerCheckRoutes } from './ledger-check.ts';
import { linkRoutes } from './links.ts';
import { overviewRoutes } from './overviews.ts';
import { payoutExportRoutes } from './payout-export.ts';
import { payoutListRoutes } from './payout-lists.ts';
import { redirectRoutes } from './redirect.ts';
import { sdkRoutes } from './sdk.ts';
import { selfTestRoutes } from './self-test.ts';
import { timeseriesRoutes } from './timeseries.ts';
import { webhookSettingsRoutes } from './webhook-settings.ts';
import { webhookRoutes } from './webhooks.ts';

export const routeGroups: readonly RouteGroup[] = [
  {
    name: 'Clicks',
    description: 'Where a creator’s link sends people. Open to everybody.',
    routes: [...clickRoutes, ...redirectRoutes],
  },
  {
    name: 'SDK',
    description: 'What an app reports: its install and its user. Needs an SDK key.',
    routes: sdkRoutes,
  },
  { name: 'Apps', description: 'Apps, their settings and SDK keys.', routes: appRoutes },
  { name: 'Affiliates', description: 'Creators, and what came of their links.', routes: affiliateRoutes },
  { name: 'Links', description: 'Tracked links.', routes: linkRoutes },
  { name: 'Commissions', description: 'The ledger of what creators earn.', routes: commissionRoutes },
  {
    name: 'Payouts',
    description: 'What is owed, and paying it: once, as a CSV file.',
    routes: [...payoutListRoutes, ...payoutExportRoutes],
  },
  {
    name: 'Dashboards',
    description: 'Counts and sums, for founders and for creators.',
    routes: [...overviewRoutes, ...timeseriesRoutes],
  },
  {
    name: 'Webhook settings',
    description: 'Where billing providers post, and their secrets.',
    routes: webhookSettingsRoutes,
  },
  {
    name: 'Diagnostics',
    description: 'What went wrong, and what to do about it.',
    routes: [...diagnosticsRoutes, ...explanationRoutes, ...ledgerCheckRoutes, ...selfTestRoutes],
  },
  { name: 'Webhooks', description: 'Purchase events of billing providers.', routes: webhookRoutes },
  {
    name: 'Service',
    description: 'How the service is, and how to use it.',
    routes: [...healthRoutes, ...docsRoutes(() => routeGroups)],
  },
];

/** Every route there is. The router is made of it, and so are the description of the API and the tests of access. */
export const routes: readonly Route[] = routeGroups.flatMap((group) => group.routes);
