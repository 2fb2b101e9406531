/** The settings of a new app that its founder does not state. */
export const APP_DEFAULTS = {
  commissionRateBps: 2000,
  attributionWindowDays: 30,
  holdPeriodDays: 30,
  deferredWindowMinutes: 60,
  identityVerification: false,
  payeeWaitDays: 3,
  payoutApproval: 'any_key',
  payoutSchedule: null,
  notificationEmails: [],
  weeklyReport: true,
} as const;
