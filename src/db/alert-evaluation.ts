import { decideAlerts } from '../domain/alerts.ts';
import type { AlertDecision } from '../domain/alerts.ts';
import type { AppId } from '../domain/ids.ts';
import { loadAlertInputs } from './alert-facts.ts';
import { applyAlertDecisions, findOpenAlerts } from './alerts.ts';
import type { ChangedAlerts } from './alerts.ts';
import type { Sql } from './sql.ts';

/** Opens and closes the alerts of apps, as the rules say at `now`, epoch ms. Safe to run again, and at the same time as another one. */
export async function evaluateAlerts(
  sql: Sql,
  appIds: readonly AppId[],
  { providers, now }: { readonly providers: readonly string[]; readonly now: number },
): Promise<ChangedAlerts> {
  const alerts = await findOpenAlerts(sql, appIds);
  const silent = new Set(
    alerts
      .filter(({ rule }) => rule === 'provider_silent')
      .map(({ appId, subject }) => `${appId} ${subject}`),
  );
  const inputs = await loadAlertInputs(sql, appIds, {
    providers,
    now,
    hasAlert: (appId, provider) => silent.has(`${appId} ${provider}`),
  });
  const decisions = new Map<AppId, AlertDecision>();
  for (const [appId, known] of inputs) {
    const open = alerts.filter((alert) => alert.appId === appId);
    decisions.set(appId, decideAlerts(known, open, now));
  }
  return await applyAlertDecisions(sql, decisions, now);
}
