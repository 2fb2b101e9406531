/** The settings of a new app that its form shows, as `src/domain/app-defaults.ts` has them. A test compares both. */
export const APP_DEFAULTS = { commissionRateBps: 2000, holdPeriodDays: 30 };
