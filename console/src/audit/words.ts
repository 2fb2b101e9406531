import type { Schemas } from '../api/client.ts';
import { NAMESPACES } from '../codes/words.ts';
import type { Namespace } from '../codes/words.ts';
import { METHODS } from '../creators/payee-words.ts';
import type { Method } from '../creators/payee-words.ts';
import { formatInstant, formatMoney, formatRate } from '../format.ts';
import { ENTRY_CATEGORIES, PROVIDERS } from '../words.ts';

type Row = Schemas['AuditRow'];

export const OBJECTS: Readonly<Record<Row['object']['kind'], string>> = {
  account: 'Account',
  account_key: 'Account key',
  member: 'Member',
  passkey: 'Passkey of a member',
  session: 'Session',
  sign_in_link: 'Sign-in link',
  creator_sign_in_link: 'Sign-in link of a creator',
  creator_session: 'Session of a creator',
  app: 'App and its settings',
  sdk_key: 'SDK key',
  webhook_secret: 'Webhook secret',
  identity_secret: 'Identity secret',
  affiliate: 'Creator',
  affiliate_group: 'Group of creators',
  group_membership: 'Membership of a group',
  policy: 'Policy',
  policy_version: 'Version of a policy',
  policy_assignment: 'Assignment of a policy',
  manual_attribution: 'Manual attribution',
  code: 'Purchase code',
  link: 'Link',
  entry: 'Bonus or deduction',
  payout: 'Payout',
  payout_transfer: 'Money of a payout',
  other_transfer: 'Further transfer of a payout',
  payout_block: 'Block of payouts',
  payout_run: 'Payout run',
  payout_file_download: 'Download of a payout file',
  payee: 'Payee of a creator',
  webhook_endpoint: 'Webhook endpoint',
  erasure: 'Erasure of a person',
  reprocess_run: 'Reprocessing',
};

export const ACTIONS: Readonly<Record<Row['action'], string>> = {
  created: 'Created',
  changed: 'Changed',
  replaced: 'Replaced',
  revoked: 'Revoked',
  started: 'Started',
  raised: 'Allowed to pay',
  ended: 'Ended',
  requested: 'Requested',
  cancelled: 'Cancelled',
};

export const ACTORS: Readonly<Record<Row['actor']['kind'], string>> = {
  key: 'By the API',
  session: 'In the console',
  creator: "On the creator's page",
  sign_in: 'With a sign-in link',
  operator: 'By the operator',
  command_line: 'By the command line',
  service: 'By the service itself',
  database: 'In the database itself',
};

/** What a heading calls an object, where its kind in the filter is no beginning of a sentence about it. */
const SUBJECTS: Readonly<Partial<Record<Row['object']['kind'], string>>> = {
  app: 'App',
  passkey: 'Passkey',
  code: 'Code',
  payout_transfer: 'Note on the money of a payout',
};

/** Returns what was done to an object, where its fields say it better than the action. */
function doneTo({ object: { kind }, after }: Row): string | undefined {
  if (kind === 'payout_block' && after['state'] === 'lifted') return 'lifted';
  if (kind !== 'payout_run') return undefined;
  if (Object.hasOwn(after, 'stoppedAt')) return 'cancelled while it was being paid';
  return after['status'] === 'draft' ? 'drafted' : String(after['status']);
}

/** Returns what was done to what kind of object: "Creator created", "Session ended", "Payout run approved". */
export const headingOf = (row: Row): string =>
  `${SUBJECTS[row.object.kind] ?? OBJECTS[row.object.kind]} ${doneTo(row) ?? ACTIONS[row.action].toLowerCase()}`;

/** Returns the name of the object of a change: a code by its value, all else by its label. Null if it has none. */
export function nameOf({ object: { id, kind, label }, after, names }: Row): string | null {
  const value = kind === 'code' ? after['value'] : undefined;
  return typeof value === 'string' ? value : (label ?? names[id] ?? null);
}

/** Fields whose name in the API is not the word of the pages. */
const FIELDS: Readonly<Record<string, string>> = {
  commissionRateBps: 'Commission',
  defaultCommissionRateBps: 'Own commission',
  attributionWindowDays: 'Attribution window, days',
  holdPeriodDays: 'Hold period, days',
  deferredWindowMinutes: 'Deferred match, minutes',
  payeeWaitDays: 'Wait of a new payee, days',
  payoutApproval: 'Approval of payout runs',
  payoutSchedule: 'Payout schedule',
  notificationEmails: 'Addresses for notifications',
  weeklyReport: 'Weekly report',
  brandColor: 'Colour for creators',
  scheduledMonth: 'Month of the payout schedule',
  affiliateId: 'Creator',
  itemCount: 'Commissions',
  totalCents: 'Total',
  iosAppIds: 'iOS apps',
  iosDestinationUrl: 'Destination on iOS',
  androidDestinationUrl: 'Destination on Android',
  destinationUrl: 'Destination',
  email: 'E-mail address',
  emailConfirmed: 'E-mail address may get codes',
  externalId: 'Your own id',
  raisedKeyId: 'Pays with the key',
  raisedUntil: 'May pay until',
  previousExpiresAt: 'End of the previous one',
  secretId: 'Secret',
};

/** Fields whose words depend on what has them. */
const FIELDS_OF: Readonly<Partial<Record<Row['object']['kind'], Readonly<Record<string, string>>>>> = {
  code: { namespace: 'Where it is from', value: 'Code', externalId: 'Id at the provider' },
  manual_attribution: {
    bindingId: 'User, by an internal id',
    attributionId: 'Attribution, by an internal id',
    payments: 'Earlier payments that earned',
    earnedCents: 'They earned',
  },
  member: { appIds: 'Apps' },
  passkey: { memberId: 'Member, by an internal id', raises: 'Lets its member pay' },
  payout_run: { itemCount: 'Creators', minimumCents: 'Minimum', stoppedAt: 'Cancelled' },
};

/** Returns the name of a field in words: "Hold period, days", "Link subdomain". */
export function fieldName(name: string, kind: Row['object']['kind']): string {
  const words = name
    .replace(/(?:At|Id|Cents)$/, '')
    .replaceAll(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
  return FIELDS_OF[kind]?.[name] ?? FIELDS[name] ?? words.charAt(0).toUpperCase() + words.slice(1);
}

/** Returns a text of the service in words, if the pages have words for its values. */
function wordOf(name: string, value: string, kind: Row['object']['kind']): string {
  if (name === 'namespace' && Object.hasOwn(NAMESPACES, value)) return NAMESPACES[value as Namespace].name;
  if (name === 'category' && Object.hasOwn(ENTRY_CATEGORIES, value))
    return ENTRY_CATEGORIES[value as keyof typeof ENTRY_CATEGORIES];
  if (name === 'provider' && Object.hasOwn(PROVIDERS, value))
    return PROVIDERS[value as keyof typeof PROVIDERS];
  if (name === 'purchaseCodes') return 'on';
  // What a founder says about a payout is free text.
  if (kind === 'payee' && name === 'method' && Object.hasOwn(METHODS, value)) return METHODS[value as Method];
  return (name === 'effectiveFrom' || name === 'countsFrom') && !Number.isNaN(Date.parse(value))
    ? formatInstant(Date.parse(value))
    : value;
}

interface Schedule {
  readonly day: number;
  readonly timezone: string;
  readonly minimumCents: number;
  readonly withoutPayee: string;
}

const isSchedule = (value: unknown): value is Schedule =>
  typeof value === 'object' && value !== null && 'day' in value && 'timezone' in value;

const scheduleText = ({ day, timezone, minimumCents, withoutPayee }: Schedule): string =>
  `day ${day} of the month (${timezone}), from ${formatMoney(minimumCents)} on, ${withoutPayee === 'include' ? 'with' : 'without'} creators who have no payee`;

/** The text of an empty value. */
export const NONE = 'none';

/** Returns the value of a field in words. */
export function fieldValue(name: string, value: unknown, kind: Row['object']['kind']): string {
  if (name === 'purchaseCodes' && value === null) return 'off';
  // The default.
  if (name === 'payeeWaitDays' && value === null) return '3';
  if (name === 'payoutApproval') return value === null ? 'any key that may pay' : 'another key';
  if (name === 'weeklyReport' && value === null) return 'yes';
  if (name === 'payoutSchedule' && isSchedule(value)) return scheduleText(value);
  if (value === null || value === undefined || value === '') return NONE;
  if (Array.isArray(value))
    return value.length === 0 ? NONE : value.map((one) => fieldValue('', one, kind)).join(', ');
  switch (typeof value) {
    case 'number':
      if (/(At|Until)$/.test(name)) return formatInstant(value);
      if (name.endsWith('Bps')) return formatRate(value);
      return name.endsWith('Cents') ? formatMoney(value) : String(value);
    case 'boolean':
      return value ? 'yes' : 'no';
    case 'string':
      return wordOf(name, value, kind);
    default:
      return JSON.stringify(value);
  }
}

/** The pages of an app that show something by its id, by the prefix of the id. */
const PAGES: Readonly<Record<string, string>> = {
  aff: 'creators',
  grp: 'policies/groups',
  pay: 'payouts',
  pol: 'policies',
  run: 'payouts/runs',
};

/** Returns the path of the page of a creator, group, payout, payout run or policy of an app by its id. Null for other ids. */
export function pathOfId(appId: string | null, id: unknown): string | null {
  if (appId === null || typeof id !== 'string') return null;
  const prefix = id.split('_', 1)[0] ?? '';
  return Object.hasOwn(PAGES, prefix) ? `/apps/${appId}/${PAGES[prefix]}/${id}` : null;
}

/** Returns the path of the page that shows the object of a change. Null if there is none. */
export function pathOf({ object, appId, after }: Row): string | null {
  const ofApp = appId === null ? null : `/apps/${appId}`;
  switch (object.kind) {
    case 'account':
    case 'account_key':
    case 'passkey':
    case 'session':
    case 'sign_in_link':
      return '/access';
    case 'member':
      return '/team';
    case 'affiliate':
    case 'affiliate_group':
    case 'creator_sign_in_link':
    case 'group_membership':
    case 'payout':
    case 'payout_run':
    case 'policy':
      return pathOfId(appId, object.id);
    case 'policy_version':
    case 'policy_assignment':
      return pathOfId(appId, after['policyId']);
    case 'code':
    case 'creator_session':
    case 'entry':
    case 'payout_block':
    case 'payee':
      return pathOfId(appId, after['affiliateId']);
    case 'payout_transfer':
    case 'other_transfer':
      return pathOfId(appId, after['payoutId']);
    case 'link':
      return ofApp && `${ofApp}/links`;
    case 'app':
      return ofApp && `${ofApp}/settings`;
    case 'sdk_key':
    case 'webhook_secret':
    case 'identity_secret':
      return ofApp && `${ofApp}/setup`;
    case 'webhook_endpoint':
      return ofApp && `${ofApp}/webhooks`;
    case 'payout_file_download':
      return ofApp && `${ofApp}/payouts/runs`;
    case 'reprocess_run':
      return ofApp && `${ofApp}/deliveries`;
    case 'manual_attribution':
      return ofApp && `${ofApp}/unattributed/manual`;
    case 'erasure':
      return null;
  }
}
