/** What a page is called, and a sentence that says what it is for. */
export interface Head {
  readonly title: string;
  readonly lead: string;
}

/** The heads of the pages of an app, by their paths (pages.tsx), which are drawn before the module of a page is loaded. */
export const HEADS = {
  setup: {
    title: 'Set-up',
    lead: 'From an empty app to the first attributed purchase. You can leave at any time: the list knows what is done.',
  },
  alerts: {
    title: 'Alerts',
    lead: 'What needs you: a provider that is silent, webhooks that fail, payout runs that wait. Your own server hears of them by an endpoint that asks for alerts.',
  },
  creators: {
    title: 'Creators',
    lead: 'Who shares your links, and what they earned.',
  },
  policies: {
    title: 'Policies',
    lead: 'What creators earn for the payments of their customers.',
  },
  'policies/new': {
    title: 'New policy',
    lead: 'What creators earn for the payments of their customers.',
  },
  links: {
    title: 'Links',
    lead: 'Each link belongs to a creator. Users can also enter its link code in the app.',
  },
  events: {
    title: 'Events',
    lead: 'What your billing providers reported, and what it earned.',
  },
  unattributed: {
    title: 'Unattributed',
    lead: 'Payments that earned no creator anything, why, and what to change so that they do. If you know who brought a customer, attribute the payment yourself.',
  },
  'unattributed/manual': {
    title: 'Manual attributions',
    lead: 'Customers whom your team gave to a creator, or took away, the latest first: users, and subscriptions or anonymous customers without a user. A row never changes: a later one replaces it for payments from then on.',
  },
  deliveries: {
    title: 'Deliveries',
    lead: 'The webhooks of your billing providers, and what became of each.',
  },
  commissions: {
    title: 'Commissions',
    lead: 'The ledger: what creators earned, and what refunds took back. Rows are only added, never edited.',
  },
  payouts: {
    title: 'Payouts',
    lead: 'Book what is due to a creator, get the CSV as a statement, and transfer the money yourself.',
  },
  'payouts/runs': {
    title: 'Payout runs',
    lead: 'Pay many creators at once: draft a run, look at it, approve it.',
  },
  ledger: {
    title: 'Ledger',
    lead: 'Each rule of the money is checked against every stored row of the app: payments, commissions, refunds and payouts.',
  },
  webhooks: {
    title: 'Webhooks',
    lead: 'Messages to your own server about commissions, payouts and webhooks of providers that cannot be processed. Each is signed. If your server does not accept one, it is sent again for three days.',
  },
  settings: {
    title: 'Settings',
    lead: 'Changes apply from now on. Commissions that exist are never calculated again.',
  },
} as const satisfies Record<string, Head>;
