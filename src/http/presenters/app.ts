import type { App } from '../../db/apps.ts';

/** An app with its settings, as it leaves. */
export function presentApp(app: App) {
  const {
    id,
    name,
    commissionRateBps,
    attributionWindowDays,
    holdPeriodDays,
    deferredWindowMinutes,
    linkSubdomain,
  } = app;
  return {
    id,
    name,
    commissionRateBps,
    attributionWindowDays,
    holdPeriodDays,
    deferredWindowMinutes,
    linkSubdomain,
  };
}

/** An app in the list of an account's apps. */
export function presentAppSummary({ id, name }: Pick<App, 'id' | 'name'>) {
  return { id, name };
}
