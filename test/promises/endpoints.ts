import type { EndpointPromises } from './promise.ts';

/** The endpoints of the interface specification, in the order of the generated page. */
export const ENDPOINTS: readonly EndpointPromises[] = [
  {
    route: 'POST /clicks',
    caller: 'none',
    promises: {
      'post-clicks': 'records a click of a known link, 200 with `clickId`, `affiliateId`, `destinationUrl`',
    },
  },
  {
    route: 'POST /sdk/install',
    caller: 'sdk',
    promises: {
      'post-install': 'stores the affiliate of the install, 200 with `attributionId`, `affiliateId`',
      'install-needs-token-or-code': 'requires a token or a code',
      'install-invalid-key': '401 for an invalid key',
      'install-without-click': '404 without an attributable click',
    },
  },
  {
    route: 'POST /sdk/identify',
    caller: 'sdk',
    promises: { 'post-identify': 'binds the user id, 200 with `attributionId`, `customerUserId`' },
  },
  {
    route: 'POST /webhooks/:provider/:customerAppId',
    caller: 'provider',
    promises: {
      'post-webhook':
        'verifies, stores, normalizes, deduplicates, attributes and writes a commission, in this order',
      'post-webhook-of-every-provider': 'does the same for every provider',
      'webhook-provider-names': 'accepts the providers by their lowercase names',
      'webhook-responses': '200 `{ eventId, commissionId }`, 200 `{ duplicate: true }`',
      'webhook-bad-signature': '401 for a bad token or signature',
    },
  },
  {
    route: 'GET /apps',
    caller: 'account read',
    promises: { 'get-apps': 'returns the apps as `[{ id, name }]`' },
  },
  {
    route: 'POST /apps',
    caller: 'account setup',
    promises: { 'post-apps': 'creates an app and returns its SDK key' },
  },
  {
    route: 'GET /apps/:appId',
    caller: 'account read',
    promises: { 'get-app': 'returns the settings' },
  },
  {
    route: 'GET /apps/:appId/settings',
    caller: 'account read',
    promises: { 'get-settings': 'returns the fields that `PATCH` takes' },
  },
  {
    route: 'PATCH /apps/:appId/settings',
    caller: 'account write',
    promises: { 'patch-app-settings': 'changes settings' },
  },
  {
    route: 'POST /apps/:appId/sdk-key/rotate',
    caller: 'account setup',
    promises: { 'rotate-sdk-key': 'creates another SDK key' },
  },
  {
    route: 'GET /apps/:appId/webhooks',
    caller: 'account setup',
    promises: { 'get-webhooks': 'returns the URL of each provider, never a secret' },
  },
  {
    route: 'PUT /apps/:appId/webhooks/:provider/secret',
    caller: 'account setup',
    promises: { 'put-webhook-secret': 'stores the given secret or generates one' },
  },
  {
    route: 'GET /apps/:appId/overview',
    caller: 'account read',
    promises: {
      'get-app-overview': 'returns funnel, revenue, commission totals, affiliates, links, recent commissions',
    },
  },
  {
    route: 'GET /apps/:appId/affiliates/:affiliateId/overview',
    caller: 'account read',
    promises: {
      'get-affiliate-overview': 'returns funnel, earnings, links, `nextPayoutAt`',
      'affiliate-overview-scope': 'covers that affiliate only',
    },
  },
  {
    route: 'GET /apps/:appId/timeseries',
    caller: 'account read',
    promises: { 'get-timeseries': 'returns the numbers of the dashboards over time' },
  },
  {
    route: 'GET /apps/:appId/leaders',
    caller: 'account read',
    promises: { 'get-leaders': 'returns the affiliates or links with the most of a measure in a range' },
  },
  {
    route: 'GET /apps/:appId/affiliates',
    caller: 'account read',
    promises: { 'get-affiliates': 'returns a list' },
  },
  {
    route: 'GET /apps/:appId/links',
    caller: 'account read',
    promises: { 'get-links': 'returns a list' },
  },
  {
    route: 'GET /apps/:appId/commissions',
    caller: 'account read',
    promises: { 'get-commissions': 'returns a list' },
  },
  {
    route: 'GET /apps/:appId/commissions/totals',
    caller: 'account read',
    promises: { 'commission-totals': 'returns the sum of the commissions of a range' },
  },
  {
    route: 'GET /apps/:appId/payouts',
    caller: 'account read',
    promises: { 'get-payouts': 'returns a list' },
  },
  {
    route: 'POST /apps/:appId/affiliates',
    caller: 'account write',
    promises: { 'post-affiliates': '201 with the new affiliate' },
  },
  {
    route: 'GET /apps/:appId/affiliates/:affiliateId',
    caller: 'account read',
    promises: { 'get-affiliate': 'returns the affiliate with its totals' },
  },
  {
    route: 'GET /apps/:appId/search',
    caller: 'account read',
    promises: { search: 'returns affiliates, links, codes and events that match a text' },
  },
  {
    route: 'POST /apps/:appId/affiliates/bulk',
    caller: 'account write',
    promises: { 'post-affiliates-bulk': 'creates up to 100 at once' },
  },
  {
    route: 'PATCH /apps/:appId/affiliates/:affiliateId',
    caller: 'account write',
    promises: { 'patch-affiliate': 'changes the given fields' },
  },
  {
    route: 'POST /apps/:appId/links',
    caller: 'account write',
    promises: { 'post-links': '201 with the new link' },
  },
  {
    route: 'POST /apps/:appId/links/bulk',
    caller: 'account write',
    promises: { 'post-links-bulk': 'creates up to 100 at once' },
  },
  {
    route: 'PATCH /apps/:appId/links/:linkId',
    caller: 'account write',
    promises: { 'patch-link': 'changes the given fields, never the slug' },
  },
  {
    route: 'GET /apps/:appId/payouts/preview',
    caller: 'account read',
    promises: {
      'get-payout-preview': 'returns `asOf`, rows per affiliate, total',
      'payout-preview-writes-nothing': 'writes nothing',
    },
  },
  {
    route: 'GET /apps/:appId/payouts/not-payable',
    caller: 'account read',
    promises: { 'not-payable': 'returns the affiliates whom exports would pay nothing, and why' },
  },
  {
    route: 'GET /apps/:appId/payouts/:payoutId',
    caller: 'account read',
    promises: { 'get-payout': 'returns the payout with the key that paid it' },
  },
  {
    route: 'GET /apps/:appId/entries',
    caller: 'account read',
    promises: { 'get-entries': 'lists bonuses and deductions, latest first, also as CSV' },
  },
  {
    route: 'GET /apps/:appId/entries/:entryId',
    caller: 'account read',
    promises: { 'get-entry': 'returns the entry with its author and its commission' },
  },
  {
    route: 'POST /apps/:appId/affiliates/:affiliateId/entries',
    caller: 'account payout',
    promises: { 'post-entry': '201 with the new entry' },
  },
  {
    route: 'POST /apps/:appId/entries/:entryId/undo',
    caller: 'account payout',
    promises: { 'post-entry-undo': '201 with the opposite entry, due when the first one is' },
  },
  {
    route: 'GET /apps/:appId/policies',
    caller: 'account read',
    promises: { 'get-policies': 'lists policies, oldest first, with the version in effect and the next one' },
  },
  {
    route: 'POST /apps/:appId/policies',
    caller: 'account write',
    promises: { 'post-policy': '201 with a policy without rules' },
  },
  {
    route: 'POST /apps/:appId/policies/preview',
    caller: 'account read',
    promises: { 'policy-preview': 'computes what payments would earn, and stores nothing' },
  },
  {
    route: 'GET /apps/:appId/policies/:policyId',
    caller: 'account read',
    promises: { 'get-policy': 'returns the policy' },
  },
  {
    route: 'PATCH /apps/:appId/policies/:policyId',
    caller: 'account write',
    promises: {
      'patch-policy': 'renames the policy',
      'policy-archived':
        'archives a policy that is assigned to nobody: lists leave it out, and it cannot be assigned',
    },
  },
  {
    route: 'GET /apps/:appId/policies/:policyId/versions',
    caller: 'account read',
    promises: { 'get-policy-versions': 'lists the versions, the last one first, also as CSV' },
  },
  {
    route: 'POST /apps/:appId/policies/:policyId/versions',
    caller: 'account write',
    promises: {
      'post-policy-version': '201 with a version that takes effect two minutes later at the earliest',
    },
  },
  {
    route: 'GET /apps/:appId/policy-assignments',
    caller: 'account read',
    promises: { 'get-policy-assignments': 'lists to whom policies were assigned, latest first, also as CSV' },
  },
  {
    route: 'PUT /apps/:appId/policy-assignment',
    caller: 'account write',
    promises: {
      'put-policy-of-app':
        'assigns a policy to the app, and names the creators whose own rate goes before it',
    },
  },
  {
    route: 'PUT /apps/:appId/groups/:groupId/policy-assignment',
    caller: 'account write',
    promises: { 'put-policy-of-group': 'assigns a policy to a group' },
  },
  {
    route: 'PUT /apps/:appId/affiliates/:affiliateId/policy-assignment',
    caller: 'account write',
    promises: { 'put-policy-of-affiliate': 'assigns a policy to an affiliate' },
  },
  {
    route: 'PUT /apps/:appId/affiliates/:affiliateId/group',
    caller: 'account write',
    promises: { 'put-group-of-affiliate': 'moves the affiliate to a group, or to none' },
  },
  {
    route: 'GET /apps/:appId/groups',
    caller: 'account read',
    promises: { 'get-groups': 'lists groups, oldest first, also as CSV' },
  },
  {
    route: 'POST /apps/:appId/groups',
    caller: 'account write',
    promises: { 'post-group': '201 with a group without members' },
  },
  {
    route: 'GET /apps/:appId/groups/:groupId',
    caller: 'account read',
    promises: { 'get-group': 'returns the group' },
  },
  {
    route: 'PATCH /apps/:appId/groups/:groupId',
    caller: 'account write',
    promises: { 'patch-group': 'renames the group' },
  },
  {
    route: 'GET /apps/:appId/groups/:groupId/members',
    caller: 'account read',
    promises: { 'get-group-members': 'lists the affiliates whose latest group it is, also as CSV' },
  },
  {
    route: 'GET /apps/:appId/affiliates/:affiliateId/terms',
    caller: 'account read',
    promises: { 'get-terms': 'returns by which terms the affiliate earns now, and the next five changes' },
  },
  {
    route: 'GET /apps/:appId/manual-attributions',
    caller: 'account read',
    promises: {
      'get-manual-attributions': 'lists users whom a person gave to a creator, latest first, also as CSV',
    },
  },
  {
    route: 'POST /apps/:appId/manual-attributions',
    caller: 'account write',
    promises: {
      'post-manual-attribution': '201 with the user, the creator and what earlier payments earned',
    },
  },
  {
    route: 'POST /apps/:appId/manual-attributions/preview',
    caller: 'account write',
    promises: {
      'preview-manual-attribution': 'computes what earlier payments would earn, and stores nothing',
    },
  },
  {
    route: 'GET /apps/:appId/codes',
    caller: 'account read',
    promises: { 'get-codes': 'lists codes, latest first, also as CSV' },
  },
  {
    route: 'GET /apps/:appId/codes/:codeId',
    caller: 'account read',
    promises: { 'get-code': 'returns the code, also one that was deactivated' },
  },
  {
    route: 'POST /apps/:appId/affiliates/:affiliateId/codes',
    caller: 'account write',
    promises: { 'post-code': '201 with the new code' },
  },
  {
    route: 'POST /apps/:appId/codes/:codeId/deactivate',
    caller: 'account write',
    promises: { 'post-code-deactivate': 'deactivates the code; whom it has bound stays' },
  },
  {
    route: 'GET /apps/:appId/affiliates/:affiliateId/payout-blocks',
    caller: 'account read',
    promises: { 'get-payout-blocks': 'lists when and why payouts were blocked, latest first' },
  },
  {
    route: 'POST /apps/:appId/affiliates/:affiliateId/payout-blocks',
    caller: 'account payout',
    promises: { 'post-payout-block': '201 with the statement and its author' },
  },
  {
    route: 'GET /apps/:appId/payout-runs',
    caller: 'account read',
    promises: { 'get-payout-runs': 'lists the payout runs, latest first' },
  },
  {
    route: 'POST /apps/:appId/payout-runs',
    caller: 'account payout',
    promises: { 'post-payout-run': '201 with a draft, which pays nothing and replaces a draft before it' },
  },
  {
    route: 'GET /apps/:appId/payout-runs/:runId',
    caller: 'account read',
    promises: { 'get-payout-run': 'returns a run, and how far it is' },
  },
  {
    route: 'POST /apps/:appId/payout-runs/:runId/approve',
    caller: 'account payout',
    promises: { 'approve-payout-run': '202, and each creator of the draft is paid once' },
  },
  {
    route: 'POST /apps/:appId/payout-runs/:runId/cancel',
    caller: 'account payout',
    promises: { 'cancel-payout-run': 'cancels a draft, or pays no further creator of a run' },
  },
  {
    route: 'GET /apps/:appId/payout-runs/:runId/items',
    caller: 'account read',
    promises: { 'get-payout-run-items': 'lists whom a run pays, and what became of each' },
  },
  {
    route: 'GET /apps/:appId/payout-runs/:runId/excluded',
    caller: 'account read',
    promises: { 'get-payout-run-exclusions': 'lists whom a run leaves out, and why' },
  },
  {
    route: 'GET /apps/:appId/payout-runs/:runId/files',
    caller: 'account read',
    promises: { 'get-payout-run-files': 'lists the files for the payment services' },
  },
  {
    route: 'POST /apps/:appId/payout-runs/:runId/files/:fileId/download',
    caller: 'account payout',
    promises: { 'download-payout-run-file': 'returns a file, always the same bytes, and notes it' },
  },
  {
    route: 'POST /apps/:appId/payout-runs/:runId/transfers',
    caller: 'account payout',
    promises: { 'add-payout-run-transfers': 'states all payouts of a run as sent, once' },
  },
  {
    route: 'POST /apps/:appId/payout-runs/:runId/results/preview',
    caller: 'account payout',
    promises: { 'preview-payout-run-results': 'says what a report would state, and changes nothing' },
  },
  {
    route: 'POST /apps/:appId/payout-runs/:runId/results',
    caller: 'account payout',
    promises: { 'add-payout-run-results': 'states what a report of a payment service says' },
  },
  {
    route: 'GET /apps/:appId/payouts/returned',
    caller: 'account read',
    promises: { 'get-returned-payouts': 'lists payouts whose money came back and was not sent again' },
  },
  {
    route: 'GET /apps/:appId/affiliates/:affiliateId/payee',
    caller: 'account read',
    promises: { 'get-payee': 'returns the latest version, with the recipient for who may pay' },
  },
  {
    route: 'PUT /apps/:appId/affiliates/:affiliateId/payee',
    caller: 'account payout',
    promises: { 'put-payee': '200 with the new version, which counts after the wait of the app' },
  },
  {
    route: 'GET /apps/:appId/affiliates/:affiliateId/payees',
    caller: 'account read',
    promises: { 'get-payees': 'lists the versions, latest first and masked, also as CSV' },
  },
  {
    route: 'DELETE /apps/:appId/affiliates/:affiliateId/payees',
    caller: 'account payout',
    promises: {
      'delete-payees': 'erases the recipients of all versions, and ends the payee',
      'erase-payout-files':
        'removes the files of payout runs with a recipient of the creator, and no others; a 409 until they were downloaded',
    },
  },
  {
    route: 'POST /creator/payee-changes',
    caller: 'creator',
    promises: { 'post-payee-change': 'mails a code to the creator for a new payee' },
  },
  {
    route: 'POST /creator/payee-changes/:id/confirm',
    caller: 'creator',
    promises: { 'confirm-payee-change': 'sets the new payee with the code' },
  },
  {
    route: 'POST /apps/:appId/payouts/:payoutId/transfers',
    caller: 'account payout',
    promises: { 'post-transfer': 'appends what somebody states about the money of a payout' },
  },
  {
    route: 'POST /apps/:appId/affiliates/:affiliateId/payouts/export',
    caller: 'account payout',
    promises: {
      'post-payout-export': 'matures, pays and returns `text/csv` with the nine columns in order',
      'payout-export-permission': 'requires the `payout` permission',
    },
  },
  {
    route: 'GET /apps/:appId/payouts/:payoutId/csv',
    caller: 'account payout',
    promises: { 'get-payout-csv': 'returns the same bytes again' },
  },
  {
    route: 'GET /apps/:appId/identity-secret',
    caller: 'account setup',
    promises: { 'get-identity-secret': 'returns the identity secret, or null' },
  },
  {
    route: 'POST /apps/:appId/identity-secret/rotate',
    caller: 'account setup',
    promises: { 'rotate-identity-secret': 'creates another identity secret' },
  },
  {
    route: 'GET /apps/:appId/diagnostics/identity',
    caller: 'account read',
    promises: { 'get-identity-diagnostic': 'returns verdict, overlap and samples' },
  },
  {
    route: 'GET /apps/:appId/diagnostics/identify',
    caller: 'account read',
    promises: { 'get-identify-diagnostic': 'lists devices and addresses that reported several users' },
  },
  {
    route: 'GET /apps/:appId/events',
    caller: 'account read',
    promises: {
      'get-events': 'lists events in the order in which they were received',
      'events-outcome': 'the outcome of an event is the one that its explanation gives',
      'events-filter': 'events are filtered by kind, source, environment, outcome, user, affiliate and range',
    },
  },
  {
    route: 'GET /apps/:appId/diagnostics/unattributed',
    caller: 'account read',
    promises: {
      'get-unattributed': 'lists paid events without a commission, each with its likely cause',
      'unattributed-filter': 'unattributed events are filtered by cause, source, user and range',
    },
  },
  {
    route: 'GET /apps/:appId/diagnostics/unattributed/summary',
    caller: 'account read',
    promises: {
      'unattributed-summary':
        'counts the unattributed payments of a range and their money by cause, of each cause at most the latest 4,000',
      'unattributed-unknown': 'counts payments without a known amount apart',
    },
  },
  {
    route: 'GET /apps/:appId/diagnostics/webhooks/summary',
    caller: 'account read',
    promises: {
      'deliveries-summary':
        'reports for each provider the last webhook, and how many failed, were refused or wait',
    },
  },
  {
    route: 'GET /apps/:appId/diagnostics/webhooks',
    caller: 'account read',
    promises: {
      'get-deliveries': 'lists recent deliveries',
      'deliveries-range': 'deliveries are filtered by the range in which they were received',
    },
  },
  {
    route: 'GET /apps/:appId/diagnostics/ledger',
    caller: 'account read',
    promises: { 'get-ledger-check': 'returns the money rules, each with its result' },
  },
  {
    route: 'POST /apps/:appId/self-test',
    caller: 'account setup',
    promises: { 'post-self-test': 'runs each step of each configured provider and returns what to fix' },
  },
  {
    route: 'DELETE /apps/:appId/users/:customerUserId',
    caller: 'account setup',
    promises: { 'delete-user': 'erases a user, and returns the same erasure when it is called again' },
  },
  {
    route: 'GET /apps/:appId/erasures/:erasureId',
    caller: 'account setup',
    promises: { 'get-erasure': 'returns what an erasure did, and whether it is complete' },
  },
  {
    route: 'POST /apps/:appId/reprocess-runs',
    caller: 'account setup',
    promises: {
      'reprocess-api-one-at-a-time':
        'requests a dry run, or a run that applies one; an app has one at a time, also under concurrent requests',
    },
  },
  {
    route: 'GET /apps/:appId/reprocess-runs',
    caller: 'account read',
    promises: { 'reprocess-api-list': 'lists the runs, latest first' },
  },
  {
    route: 'GET /apps/:appId/reprocess-runs/:reprocessRunId',
    caller: 'account read',
    promises: { 'reprocess-api-get': 'returns a run with its progress and its money' },
  },
  {
    route: 'GET /apps/:appId/reprocess-runs/:reprocessRunId/changes',
    caller: 'account read',
    promises: {
      'reprocess-api-changes': 'lists what the run would append, has appended or has refused, by delivery',
    },
  },
  {
    route: 'POST /apps/:appId/reprocess-runs/:reprocessRunId/cancel',
    caller: 'account setup',
    promises: {
      'reprocess-api-cancel': 'stops a run after its current page; one that has ended stays as it is',
    },
  },
  {
    route: 'GET /apps/:appId/events/:eventId/explanation',
    caller: 'account read',
    promises: { 'get-explanation': 'returns every decision of the pipeline' },
  },
  {
    route: 'GET /l/:linkSubdomain/:slug',
    caller: 'none',
    promises: { 'get-redirect': '302 to the destination' },
  },
  {
    route: 'GET /l/:slug',
    caller: 'none',
    promises: { 'get-redirect-on-host': "does the same on the subdomain's host" },
  },
  {
    route: 'GET /.well-known/apple-app-site-association',
    caller: 'none',
    promises: { 'get-apple-association': 'names the iOS apps that open links of the host' },
  },
  {
    route: 'GET /.well-known/assetlinks.json',
    caller: 'none',
    promises: { 'get-asset-links': 'names the Android apps that open links of the host' },
  },
  {
    route: 'GET /apps/:appId/setup',
    caller: 'account setup',
    promises: {
      'get-setup': 'returns how far the set-up has come, never a key or a secret',
      'setup-is-kept': 'keeps what is done, whatever arrives afterwards',
      'get-setup-codes': 'states which codes have come with a purchase, and which of them nobody has',
    },
  },
  {
    route: 'GET /session',
    caller: 'none',
    promises: { 'get-session': 'returns the session of the browser, or null' },
  },
  {
    route: 'POST /session',
    caller: 'none',
    promises: { 'post-session': 'signs a browser in with an account key, a link or a passkey' },
  },
  {
    route: 'POST /session/raise',
    caller: 'session',
    promises: { 'post-session-raise': 'lets a session pay for 15 minutes' },
  },
  {
    route: 'POST /sign-in-links',
    caller: 'none',
    promises: { 'post-sign-in-links': 'mails a member a link that signs in once, within 15 minutes' },
  },
  {
    route: 'POST /session/mail-link',
    caller: 'session',
    promises: { 'post-mail-link': 'mails the member of the session a link with which it may pay' },
  },
  {
    route: 'POST /session/passkeys/sign-in-options',
    caller: 'none',
    promises: { 'post-passkey-sign-in-options': 'returns a challenge for signing in with a passkey' },
  },
  {
    route: 'POST /session/passkeys/raise-options',
    caller: 'session',
    promises: { 'post-passkey-raise-options': 'returns a challenge for paying with a passkey' },
  },
  {
    route: 'POST /session/passkeys/options',
    caller: 'session',
    promises: { 'post-passkey-options': 'returns a challenge for adding a passkey' },
  },
  {
    route: 'GET /session/passkeys',
    caller: 'session',
    promises: { 'get-passkeys': 'lists the passkeys of the member who is signed in, with their last use' },
  },
  {
    route: 'POST /session/passkeys',
    caller: 'session',
    promises: { 'post-passkeys': 'adds a passkey to the member who is signed in, 20 at most' },
  },
  {
    route: 'POST /session/passkeys/:passkeyId/revoke',
    caller: 'session',
    promises: { 'revoke-passkey': 'a passkey signs in no more, and its key is erased' },
  },
  {
    route: 'GET /accounts/:accountId/members',
    caller: 'session',
    promises: { 'get-members': 'lists the members of the account page by page' },
  },
  {
    route: 'POST /accounts/:accountId/members',
    caller: 'session',
    promises: {
      'post-member': 'adds a member and mails an invitation, or says that a link has to be copied',
    },
  },
  {
    route: 'PATCH /accounts/:accountId/members/:memberId',
    caller: 'session',
    promises: { 'patch-member': 'changes the role and the apps of a member from the next call on' },
  },
  {
    route: 'POST /accounts/:accountId/members/:memberId/remove',
    caller: 'session',
    promises: { 'remove-member': 'ends the sessions and links of a member at once, and erases the address' },
  },
  {
    route: 'POST /accounts/:accountId/members/:memberId/sign-in-links',
    caller: 'session',
    promises: { 'post-member-sign-in-links': 'returns a link that signs a member in, once' },
  },
  {
    route: 'POST /accounts/:accountId/members/:memberId/sign-in-links/send',
    caller: 'session',
    promises: {
      'post-member-invitation':
        'mails another invitation; 429 with `Retry-After` for more than five in an hour to one address',
    },
  },
  {
    route: 'POST /session/end',
    caller: 'session',
    promises: { 'post-session-end': 'ends the session and removes its cookie' },
  },
  {
    route: 'GET /sessions',
    caller: 'session',
    promises: { 'get-sessions': 'lists the sessions of the account, or of the own key' },
  },
  {
    route: 'POST /sessions/:id/end',
    caller: 'session',
    promises: { 'post-sessions-id-end': 'ends one of these sessions' },
  },
  {
    route: 'POST /sessions/end-all',
    caller: 'session',
    promises: { 'post-sessions-end-all': 'ends all of them except its own' },
  },
  {
    route: 'GET /accounts/:accountId/keys',
    caller: 'session read',
    promises: { 'get-accounts-accountid-keys': 'lists the keys without their text' },
  },
  {
    route: 'POST /accounts/:accountId/keys',
    caller: 'session setup',
    promises: { 'post-accounts-accountid-keys': 'creates a key and returns its text once' },
  },
  {
    route: 'POST /accounts/:accountId/keys/:keyId/rotate',
    caller: 'session setup',
    promises: {
      'post-accounts-accountid-keys-keyid-rotate': 'replaces a key by one with the same permissions',
    },
  },
  {
    route: 'POST /accounts/:accountId/keys/:keyId/revoke',
    caller: 'session setup',
    promises: { 'post-accounts-accountid-keys-keyid-revoke': 'ends a key and its sessions at once' },
  },
  {
    route: 'GET /accounts/:accountId/audit',
    caller: 'session read',
    promises: {
      'get-accounts-accountid-audit': 'lists who changed what in the account, the last change first',
    },
  },
  {
    route: 'POST /apps/:appId/affiliates/:affiliateId/sign-in-links',
    caller: 'account setup',
    promises: { 'post-creator-sign-in-links': 'returns a link that signs a creator in, once' },
  },
  {
    route: 'POST /apps/:appId/affiliates/:affiliateId/sign-in-links/send',
    caller: 'account setup',
    promises: {
      'post-creator-invitation':
        'mails a link that signs a creator in; 409 without an address or a mail server',
      'post-creator-invitation-limit': '429 for more than five within an hour to one creator',
      'post-creator-invitation-account-limit':
        '429 for more than a thousand within an hour of an account, with `Retry-After`',
    },
  },
  {
    route: 'GET /apps/:appId/emails',
    caller: 'account read',
    promises: { 'list-emails': 'returns the mails to creators, the latest first, with masked addresses' },
  },
  {
    route: 'POST /apps/:appId/affiliates/:affiliateId/sign-in-links/revoke',
    caller: 'account setup',
    promises: { 'post-creator-sign-in-links-revoke': "revokes the links and ends the creator's sessions" },
  },
  {
    route: 'GET /operator/session',
    caller: 'none',
    promises: { 'get-operator-session': "returns the operator's session of the browser, or null" },
  },
  {
    route: 'POST /operator/session',
    caller: 'none',
    promises: {
      'post-operator-session':
        'signs a browser in with a link that `tributary console --operator` prints, once',
    },
  },
  {
    route: 'POST /operator/session/end',
    caller: 'operator',
    promises: { 'post-operator-session-end': 'ends the session and removes its cookie' },
  },
  {
    route: 'GET /operator/state',
    caller: 'operator',
    promises: {
      'get-operator-state':
        'returns readiness with its causes, the version, the backlog and gaps in exchange rates',
    },
  },
  {
    route: 'GET /operator/accounts',
    caller: 'operator',
    promises: { 'get-operator-accounts': 'lists the accounts, latest first' },
  },
  {
    route: 'POST /operator/accounts/:accountId/sign-in-links',
    caller: 'operator',
    promises: { 'post-founder-sign-in-link': 'creates a link that signs a founder in to the account' },
  },
  {
    route: 'GET /operator/stuck-deliveries',
    caller: 'operator',
    promises: { 'get-stuck-deliveries': 'lists stuck deliveries with their step, attempt and cause' },
  },
  {
    route: 'GET /operator/reprocess-runs',
    caller: 'operator',
    promises: { 'get-all-reprocess-runs': 'lists the reprocess runs of all apps' },
  },
  {
    route: 'GET /operator/ledger-check',
    caller: 'operator',
    promises: {
      'get-operator-ledger-check':
        'checks the ledgers and dashboard sums of all apps, part by part, and names the rows that break a rule',
    },
  },
  {
    route: 'GET /creator/session',
    caller: 'none',
    promises: { 'get-creator-session': "returns the creator's session of the browser, or null" },
  },
  {
    route: 'POST /creator/session',
    caller: 'none',
    promises: { 'post-creator-session': 'signs a browser in with the link of a creator' },
  },
  {
    route: 'POST /creator/session/end',
    caller: 'creator',
    promises: { 'post-creator-session-end': 'ends the session and removes its cookie' },
  },
  {
    route: 'GET /creator/sessions',
    caller: 'creator',
    promises: { 'get-creator-sessions': 'lists the sessions of the creator' },
  },
  {
    route: 'POST /creator/sessions/:id/end',
    caller: 'creator',
    promises: { 'post-creator-sessions-id-end': 'ends one of these sessions' },
  },
  {
    route: 'POST /creator/sessions/end-all',
    caller: 'creator',
    promises: { 'post-creator-sessions-end-all': 'ends all of them except its own' },
  },
  {
    route: 'GET /creator',
    caller: 'creator',
    promises: {
      'get-creator': 'returns the name, the status and the rules',
      'creator-brand-color': 'returns the colour of the app, if one was chosen',
    },
  },
  {
    route: 'GET /creator/overview',
    caller: 'creator',
    promises: {
      'get-creator-overview': 'returns totals of all time, and when what is held becomes due',
      'creator-next-run':
        'names the next run of the payout schedule and what it would pay, unless payouts are under review',
    },
  },
  {
    route: 'GET /creator/timeseries',
    caller: 'creator',
    promises: { 'get-creator-timeseries': 'returns counts and earnings per interval, without revenue' },
  },
  {
    route: 'GET /creator/links',
    caller: 'creator',
    promises: { 'get-creator-links': 'lists the own links with their clicks and earnings' },
  },
  {
    route: 'GET /creator/commissions',
    caller: 'creator',
    promises: {
      'get-creator-commissions': 'lists the own commissions with the reason, without ids of users and events',
    },
  },
  {
    route: 'GET /creator/commissions/totals',
    caller: 'creator',
    promises: { 'get-creator-commission-totals': 'returns the sum of the own commissions of a range' },
  },
  {
    route: 'GET /creator/payouts',
    caller: 'creator',
    promises: { 'get-creator-payouts': 'lists the own payouts' },
  },
  {
    route: 'GET /creator/payouts/:id/statement',
    caller: 'creator',
    promises: { 'get-creator-statement': 'returns the sums of a payout as they were paid' },
  },
  {
    route: 'GET /creator/payouts/:id/csv',
    caller: 'creator',
    promises: { 'get-creator-csv': 'returns the lines of a payout without ids of events' },
  },
  {
    route: 'GET /apps/:appId/affiliates/:affiliateId/creator',
    caller: 'account read',
    promises: { 'see-creator': 'returns the name, the status and the rules, as the creator sees them' },
  },
  {
    route: 'GET /apps/:appId/affiliates/:affiliateId/creator/overview',
    caller: 'account read',
    promises: { 'see-creator-overview': 'returns the totals that the creator sees' },
  },
  {
    route: 'GET /apps/:appId/affiliates/:affiliateId/creator/timeseries',
    caller: 'account read',
    promises: { 'see-creator-timeseries': 'returns the counts and earnings that the creator sees' },
  },
  {
    route: 'GET /apps/:appId/affiliates/:affiliateId/creator/links',
    caller: 'account read',
    promises: { 'see-creator-links': 'lists the links that the creator sees' },
  },
  {
    route: 'GET /apps/:appId/affiliates/:affiliateId/creator/commissions',
    caller: 'account read',
    promises: { 'see-creator-commissions': 'lists the commissions that the creator sees' },
  },
  {
    route: 'GET /apps/:appId/affiliates/:affiliateId/creator/commissions/totals',
    caller: 'account read',
    promises: { 'see-creator-commission-totals': 'returns the sum that the creator sees' },
  },
  {
    route: 'GET /apps/:appId/affiliates/:affiliateId/creator/payouts',
    caller: 'account read',
    promises: { 'see-creator-payouts': 'lists the payouts that the creator sees' },
  },
  {
    route: 'GET /apps/:appId/affiliates/:affiliateId/creator/payouts/:id/statement',
    caller: 'account read',
    promises: { 'see-creator-statement': 'returns the statement that the creator sees' },
  },
  {
    route: 'GET /apps/:appId/affiliates/:affiliateId/creator/payouts/:id/csv',
    caller: 'account read',
    promises: { 'see-creator-csv': 'returns the lines of a payout that the creator sees' },
  },
  {
    route: 'GET /apps/:appId/webhook-endpoints',
    caller: 'account setup',
    promises: { 'list-webhook-endpoints': 'returns the endpoints of the app, without secrets' },
  },
  {
    route: 'POST /apps/:appId/webhook-endpoints',
    caller: 'account setup',
    promises: { 'create-webhook-endpoint': 'creates an endpoint, 201 with its secret' },
  },
  {
    route: 'GET /apps/:appId/webhook-endpoints/:endpointId',
    caller: 'account setup',
    promises: { 'get-webhook-endpoint': 'returns an endpoint, without its secret' },
  },
  {
    route: 'PATCH /apps/:appId/webhook-endpoints/:endpointId',
    caller: 'account setup',
    promises: { 'update-webhook-endpoint': 'changes, deactivates or activates an endpoint' },
  },
  {
    route: 'POST /apps/:appId/webhook-endpoints/:endpointId/rotate-secret',
    caller: 'account setup',
    promises: {
      'rotate-webhook-endpoint-secret':
        'returns a new secret; the previous one also signs for the grace period',
    },
  },
  {
    route: 'POST /apps/:appId/webhook-endpoints/:endpointId/test',
    caller: 'account setup',
    promises: { 'test-webhook-endpoint': 'sends a test message, 201' },
  },
  {
    route: 'DELETE /apps/:appId/webhook-endpoints/:endpointId',
    caller: 'account setup',
    promises: { 'delete-webhook-endpoint': 'deletes an endpoint; repeated, it changes nothing' },
  },
  {
    route: 'GET /apps/:appId/webhook-messages',
    caller: 'account read',
    promises: { 'list-webhook-messages': 'returns the messages to endpoints, the latest first' },
  },
  {
    route: 'GET /apps/:appId/webhook-messages/:messageId',
    caller: 'account read',
    promises: { 'get-webhook-message': 'returns a message' },
  },
  {
    route: 'GET /apps/:appId/webhook-messages/:messageId/attempts',
    caller: 'account read',
    promises: {
      'list-webhook-attempts': 'returns the attempts at a message with status, duration and response',
    },
  },
  {
    route: 'POST /apps/:appId/webhook-messages/:messageId/send-again',
    caller: 'account setup',
    promises: { 'send-webhook-message-again': 'makes the next attempt due at once' },
  },
  {
    route: 'GET /apps/:appId/alerts',
    caller: 'account read',
    promises: { 'list-alerts': 'lists alerts, open ones first, also as CSV' },
  },
  {
    route: 'GET /apps/:appId/slack-url',
    caller: 'account setup',
    promises: { 'get-slack-url': 'says whether a Slack URL is set and how it works, never the URL' },
  },
  {
    route: 'PUT /apps/:appId/slack-url',
    caller: 'account setup',
    promises: { 'put-slack-url': 'sets or replaces the Slack URL; messages that wait are sent' },
  },
  {
    route: 'DELETE /apps/:appId/slack-url',
    caller: 'account setup',
    promises: { 'delete-slack-url': 'removes the Slack URL; repeated, it changes nothing' },
  },
  {
    route: 'POST /apps/:appId/slack-url/test',
    caller: 'account setup',
    promises: { 'test-slack-url': 'sends a test message to the Slack URL, 201' },
  },
  {
    route: 'GET /healthz',
    caller: 'none',
    promises: { 'get-healthz': 'reports that the process is alive' },
  },
  {
    route: 'GET /readyz',
    caller: 'none',
    promises: { 'get-readyz': 'reports readiness, or what is missing' },
  },
  {
    route: 'GET /openapi.json',
    caller: 'none',
    promises: { 'get-openapi': 'returns the description of the API' },
  },
  {
    route: 'GET /',
    caller: 'none',
    promises: { 'get-root': 'redirects a browser to `/console/`, and other clients to `/docs`' },
  },
  {
    route: 'GET /docs',
    caller: 'none',
    promises: { 'get-docs': 'returns a page to read and try the API' },
  },
  {
    route: 'GET /docs/:file',
    caller: 'none',
    promises: { 'get-docs-file': 'returns the files of that page and no others' },
  },
];
