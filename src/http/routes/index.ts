import type { Route } from '../route.ts';
import { affiliateRoutes } from './affiliates.ts';
import { appRoutes } from './apps.ts';
import { clickRoutes } from './clicks.ts';
import { commissionRoutes } from './commissions.ts';
import { healthRoutes } from './health.ts';
import { linkRoutes } from './links.ts';
import { payoutExportRoutes } from './payout-export.ts';
import { payoutListRoutes } from './payout-lists.ts';
import { sdkRoutes } from './sdk.ts';
import { webhookSettingsRoutes } from './webhook-settings.ts';
import { webhookRoutes } from './webhooks.ts';

/** Every route there is. The router is made of it, and so are the description of the API and the tests of access. */
export const routes: readonly Route[] = [
  ...clickRoutes,
  ...sdkRoutes,
  ...appRoutes,
  ...affiliateRoutes,
  ...linkRoutes,
  ...commissionRoutes,
  ...payoutListRoutes,
  ...payoutExportRoutes,
  ...webhookSettingsRoutes,
  ...webhookRoutes,
  ...healthRoutes,
];
