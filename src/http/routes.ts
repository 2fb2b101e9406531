import { accountKeyRoutes } from './resources/account-keys.ts';
import { affiliateRoutes } from './resources/affiliates.ts';
import { alertRoutes } from './resources/alerts.ts';
import { apiDocsRoutes } from './resources/api-docs.ts';
import { appRoutes } from './resources/apps.ts';
import { auditRoutes } from './resources/audit.ts';
import { clickRoutes } from './resources/clicks.ts';
import { codeRoutes } from './resources/codes.ts';
import { commissionRoutes } from './resources/commissions.ts';
import { creatorRoutes } from './resources/creator.ts';
import { creatorLinkRoutes, creatorSessionRoutes } from './resources/creator-sessions.ts';
import { diagnosticsRoutes } from './resources/diagnostics.ts';
import { emailRoutes } from './resources/emails.ts';
import { entryRoutes } from './resources/entries.ts';
import { erasureRoutes } from './resources/erasures.ts';
import { eventRoutes } from './resources/events.ts';
import { explanationRoutes } from './resources/explanations.ts';
import { healthRoutes } from './resources/health.ts';
import { ledgerCheckRoutes, operatorLedgerCheckRoutes } from './resources/ledger-check.ts';
import { identitySecretRoutes } from './resources/identity-secret.ts';
import { leaderRoutes } from './resources/leaders.ts';
import { linkAssociationRoutes } from './resources/link-associations.ts';
import { linkRoutes } from './resources/links.ts';
import { overviewRoutes } from './resources/overviews.ts';
import { groupRoutes } from './resources/groups.ts';
import { manualAttributionRoutes } from './resources/manual-attributions.ts';
import { operatorRoutes } from './resources/operator.ts';
import { ownPayeeRoutes } from './resources/own-payees.ts';
import { passkeyRoutes } from './resources/passkeys.ts';
import { payeeRoutes } from './resources/payees.ts';
import { payoutBlockRoutes } from './resources/payout-blocks.ts';
import { payoutResultRoutes } from './resources/payout-results.ts';
import { payoutRunRoutes } from './resources/payout-runs.ts';
import { payoutRoutes } from './resources/payouts.ts';
import { policyAssignmentRoutes } from './resources/policy-assignments.ts';
import { policyRoutes } from './resources/policies.ts';
import { redirectRoutes } from './resources/redirect.ts';
import { sdkRoutes } from './resources/sdk.ts';
import { reprocessRunRoutes } from './resources/reprocess-runs.ts';
import { searchRoutes } from './resources/search.ts';
import { selfTestRoutes } from './resources/self-test.ts';
import { memberRoutes } from './resources/members.ts';
import { sessionRoutes } from './resources/sessions.ts';
import { signInLinkRoutes } from './resources/sign-in-links.ts';
import { setupRoutes } from './resources/setup.ts';
import { termsRoutes } from './resources/terms.ts';
import { timeseriesRoutes } from './resources/timeseries.ts';
import { webhookSettingsRoutes } from './resources/webhook-settings.ts';
import { webhookEndpointRoutes } from './resources/webhook-endpoints.ts';
import { webhookMessageRoutes } from './resources/webhook-messages.ts';
import { webhookRoutes } from './resources/webhooks.ts';
import type { Route, RouteGroup } from './routing/route.ts';

/** Every route, by tag. The router, the OpenAPI document, `docs/errors.md` and the tests of access are made from it. */
export const routeGroups: readonly RouteGroup[] = [
  {
    name: 'Clicks',
    description:
      'Clicks on links, the redirect to their destinations, and the apps that open links. Requires no key.',
    routes: [...clickRoutes, ...redirectRoutes, ...linkAssociationRoutes],
  },
  {
    name: 'SDK',
    description: 'Installs and users that an app reports. Requires an SDK key.',
    routes: sdkRoutes,
  },
  {
    name: 'Apps',
    description: 'Apps, their settings, SDK keys and identity secrets.',
    routes: [...appRoutes, ...identitySecretRoutes],
  },
  {
    name: 'Affiliates',
    description: 'Creators who share links and earn commissions.',
    routes: [
      ...affiliateRoutes,
      ...creatorLinkRoutes,
      ...emailRoutes,
      ...codeRoutes,
      ...manualAttributionRoutes,
      ...searchRoutes,
    ],
  },
  { name: 'Links', description: "Affiliates' tracked links.", routes: linkRoutes },
  {
    name: 'Commissions',
    description: 'The ledger of earnings and reversals, and the bonuses and deductions that people add.',
    routes: [...commissionRoutes, ...entryRoutes],
  },
  {
    name: 'Commission policies',
    description:
      'What payments earn: policies with versions, and groups of affiliates whom they are assigned to.',
    routes: [...policyRoutes, ...policyAssignmentRoutes, ...groupRoutes, ...termsRoutes],
  },
  {
    name: 'Payouts',
    description: 'Amounts due to affiliates, and their payment as a CSV file.',
    routes: [
      ...payoutResultRoutes,
      ...payoutRoutes,
      ...payoutRunRoutes,
      ...payoutBlockRoutes,
      ...payeeRoutes,
    ],
  },
  {
    name: 'Dashboards',
    description: 'Counts and sums for founders and creators.',
    routes: [...overviewRoutes, ...timeseriesRoutes, ...leaderRoutes],
  },
  {
    name: 'Webhook settings',
    description: 'Webhook URLs and secrets of billing providers, and how far the set-up has come.',
    routes: [...webhookSettingsRoutes, ...setupRoutes],
  },
  {
    name: 'Outgoing webhooks',
    description: 'Endpoints that receive messages about commissions, payouts, deliveries and alerts.',
    routes: [...webhookEndpointRoutes, ...webhookMessageRoutes],
  },
  {
    name: 'Alerts',
    description: 'What needs the attention of the founder, and the Slack URL that gets it as messages.',
    routes: alertRoutes,
  },
  {
    name: 'Erasure',
    description: 'Erasure of users, as data protection law requires it.',
    routes: erasureRoutes,
  },
  {
    name: 'Diagnostics',
    description: 'Problems with attribution, webhooks and the ledger, and how to fix them.',
    routes: [...diagnosticsRoutes, ...explanationRoutes, ...ledgerCheckRoutes, ...selfTestRoutes],
  },
  {
    name: 'Reprocessing',
    description: 'Stored deliveries that are processed again with the current code.',
    routes: reprocessRunRoutes,
  },
  {
    name: 'Events',
    description: 'What billing providers reported, and what it earned.',
    routes: eventRoutes,
  },
  { name: 'Webhooks', description: 'Purchase events from billing providers.', routes: webhookRoutes },
  {
    name: 'Sessions',
    description:
      'Sessions of the console, the account keys and passkeys that they begin with, and who changed what.',
    routes: [...sessionRoutes, ...signInLinkRoutes, ...passkeyRoutes, ...accountKeyRoutes, ...auditRoutes],
  },
  {
    name: 'Members',
    description: 'The persons who sign in to the console of an account, with their roles and apps.',
    routes: memberRoutes,
  },
  {
    name: 'Creator',
    description:
      'What a creator sees: the own numbers. Requires the session of a creator; under `/apps`, the account key or session of a founder.',
    routes: [...creatorSessionRoutes, ...creatorRoutes, ...ownPayeeRoutes],
  },
  {
    name: 'Operator',
    description:
      'The state of the installation. Requires the session of the operator, and returns no data of customers.',
    routes: [...operatorRoutes, ...operatorLedgerCheckRoutes],
  },
  {
    name: 'Service',
    description: 'Health of the service, and documentation of the API.',
    routes: [...healthRoutes, ...apiDocsRoutes(() => routeGroups)],
  },
];

export const routes: readonly Route[] = routeGroups.flatMap((group) => group.routes);
