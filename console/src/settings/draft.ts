import type { Schemas } from '../api/client.ts';
import { timeZone } from '../format.ts';
import { isNumber } from '../parts/number-field.tsx';
import type { Entered } from '../parts/number-field.tsx';

type Settings = Schemas['AppSettings'];
type Change = Schemas['AppSettingsChange'];

const PERCENT_IN_BPS = 100;
/** The wait of a new payee where the settings have none. */
const PAYEE_WAIT_DAYS = 3;

/** What the page calls the settings, by their paths in the API. */
export const SETTING_LABELS = {
  name: 'Name',
  brandColor: 'Colour',
  commissionRateBps: 'Commission',
  holdPeriodDays: 'Hold period',
  attributionWindowDays: 'Attribution window',
  deferredWindowMinutes: 'Deferred match',
  identityVerification: 'Accept only user ids that your server signed',
  payeeWaitDays: 'Wait of a new payee',
  'payoutSchedule.day': 'Day of the month',
  'payoutSchedule.timezone': 'Time zone',
  'payoutSchedule.minimumCents': 'Minimum payout',
  notificationEmails: 'E-mail addresses',
  linkSubdomain: 'Subdomain',
  destinationSchemes: 'Own schemes',
  iosAppIds: 'iOS apps',
  androidApps: 'Android apps',
  stripeAccounts: 'Connected accounts of Stripe',
} as const;

/** The refusals that are about one setting. */
export const SETTING_CODES = {
  subdomain_taken: ['linkSubdomain', 'Another app has this subdomain, or had it. Choose another one.'],
  too_many_subdomains: ['linkSubdomain', 'The app has had 20 subdomains. Choose one of those.'],
} as const;

/** What is being entered. Lists have one entry per line. */
export interface Draft {
  readonly name: string;
  readonly linkSubdomain: string;
  /** Percent. */
  readonly rate: Entered;
  readonly attributionWindowDays: Entered;
  readonly holdPeriodDays: Entered;
  readonly deferredWindowMinutes: Entered;
  readonly payeeWaitDays: Entered;
  readonly payoutApproval: NonNullable<Settings['payoutApproval']>;
  /** Whether a run is drafted each month, and its terms. */
  readonly hasSchedule: boolean;
  readonly scheduleDay: Entered;
  readonly scheduleTimezone: string;
  /** US dollars. */
  readonly scheduleMinimum: Entered;
  readonly schedulePaysWithoutPayee: boolean;
  readonly notificationEmails: string;
  readonly weeklyReport: boolean;
  /** Such as #0b7285. Empty: none. */
  readonly brandColor: string;
  readonly identityVerification: boolean;
  readonly purchaseCodes: NonNullable<Settings['purchaseCodes']>;
  readonly destinationSchemes: string;
  readonly stripeAccounts: string;
  readonly iosAppIds: string;
  readonly androidApps: string;
}

const CENTS_IN_DOLLAR = 100;

export function draftOf(settings: Settings): Draft {
  const { payoutSchedule: schedule } = settings;
  return {
    name: settings.name,
    linkSubdomain: settings.linkSubdomain,
    rate: settings.commissionRateBps / PERCENT_IN_BPS,
    attributionWindowDays: settings.attributionWindowDays,
    holdPeriodDays: settings.holdPeriodDays,
    deferredWindowMinutes: settings.deferredWindowMinutes,
    payeeWaitDays: settings.payeeWaitDays ?? PAYEE_WAIT_DAYS,
    payoutApproval: settings.payoutApproval ?? 'any_key',
    hasSchedule: schedule !== undefined,
    scheduleDay: schedule?.day ?? 1,
    scheduleTimezone: schedule?.timezone ?? timeZone,
    scheduleMinimum: (schedule?.minimumCents ?? 0) / CENTS_IN_DOLLAR,
    schedulePaysWithoutPayee: schedule?.withoutPayee === 'include',
    notificationEmails: (settings.notificationEmails ?? []).join('\n'),
    weeklyReport: settings.weeklyReport ?? true,
    brandColor: settings.brandColor ?? '',
    identityVerification: settings.identityVerification,
    // Absent: off.
    purchaseCodes: settings.purchaseCodes ?? 'off',
    destinationSchemes: (settings.destinationSchemes ?? []).join('\n'),
    stripeAccounts: settings.stripeAccounts.join('\n'),
    iosAppIds: settings.iosAppIds.join('\n'),
    androidApps: settings.androidApps
      .map(({ packageName, sha256CertFingerprints }) => [packageName, ...sha256CertFingerprints].join(' '))
      .join('\n'),
  };
}

/** Whether every field that needs a value has one. The service checks the rest. */
export function isComplete(draft: Draft): boolean {
  return (
    draft.name.trim() !== '' &&
    draft.linkSubdomain.trim() !== '' &&
    [
      draft.rate,
      draft.attributionWindowDays,
      draft.holdPeriodDays,
      draft.deferredWindowMinutes,
      draft.payeeWaitDays,
      ...(draft.hasSchedule ? [draft.scheduleDay, draft.scheduleMinimum] : []),
    ].every(isNumber) &&
    (!draft.hasSchedule || draft.scheduleTimezone.trim() !== '')
  );
}

const linesOf = (text: string) =>
  text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '');

function settingsOf(draft: Draft): Required<Change> {
  const schemes = linesOf(draft.destinationSchemes);
  return {
    name: draft.name.trim(),
    linkSubdomain: draft.linkSubdomain.trim(),
    commissionRateBps: Math.round(Number(draft.rate) * PERCENT_IN_BPS),
    attributionWindowDays: Number(draft.attributionWindowDays),
    holdPeriodDays: Number(draft.holdPeriodDays),
    deferredWindowMinutes: Number(draft.deferredWindowMinutes),
    payeeWaitDays: Number(draft.payeeWaitDays),
    payoutApproval: draft.payoutApproval,
    payoutSchedule: draft.hasSchedule
      ? {
          day: Number(draft.scheduleDay),
          timezone: draft.scheduleTimezone.trim(),
          minimumCents: Math.round(Number(draft.scheduleMinimum) * CENTS_IN_DOLLAR),
          withoutPayee: draft.schedulePaysWithoutPayee ? 'include' : 'exclude',
        }
      : null,
    notificationEmails: linesOf(draft.notificationEmails),
    weeklyReport: draft.weeklyReport,
    brandColor: draft.brandColor.trim() === '' ? null : draft.brandColor.trim(),
    identityVerification: draft.identityVerification,
    purchaseCodes: draft.purchaseCodes,
    // An empty list would allow only the web; an empty field allows every scheme.
    destinationSchemes: schemes.length === 0 ? null : schemes,
    stripeAccounts: linesOf(draft.stripeAccounts),
    iosAppIds: linesOf(draft.iosAppIds),
    androidApps: linesOf(draft.androidApps).map((line) => {
      const [packageName = '', ...sha256CertFingerprints] = line.split(/[\s,]+/);
      return { packageName, sha256CertFingerprints };
    }),
  };
}

const SCHEDULE_FIELDS = [
  'hasSchedule',
  'scheduleDay',
  'scheduleTimezone',
  'scheduleMinimum',
  'schedulePaysWithoutPayee',
] as const;

/** Returns what is entered for a setting. */
function fieldsOf(name: keyof Settings): readonly (keyof Draft)[] {
  if (name === 'payoutSchedule') return SCHEDULE_FIELDS;
  return [name === 'commissionRateBps' ? 'rate' : name];
}

/** Returns the settings that the draft changes. A setting that was not touched is not sent: somebody else may change it. */
export function changesOf(saved: Settings, draft: Draft): Change {
  const before = draftOf(saved);
  const after = settingsOf(draft);
  const names = Object.keys(after) as (keyof Settings)[];
  const hasSchedule = draft.hasSchedule || before.hasSchedule;
  const isTouched = (name: keyof Settings) =>
    (name !== 'payoutSchedule' || hasSchedule) &&
    fieldsOf(name).some((field) => String(draft[field]).trim() !== String(before[field]).trim());
  return Object.fromEntries(names.filter(isTouched).map((name) => [name, after[name]]));
}
