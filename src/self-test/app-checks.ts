import type { CodeInUse } from '../db/code-arrivals.ts';
import { readIdentityOverlap } from '../db/sdk-diagnostics.ts';
import { findCurrenciesInUse, readAppActivity } from '../db/self-tests.ts';
import { RATE_MAX_AGE_DAYS } from '../domain/exchange-rate.ts';
import { DAY_MS } from '../domain/time.ts';
import { PROVIDER_NAMES } from '../providers/index.ts';
import type { ProviderName } from '../providers/index.ts';
import { isLocal } from './check-address.ts';
import { checkPurchaseCodes } from './check-code.ts';
import type { SelfTestSession } from './session.ts';
import { advice, failed, passed } from './steps.ts';
import type { AppStep } from './steps.ts';

/** The window in which clicks, installs and users count as recent. */
const RECENT_DAYS = 30;
/** How many user ids of each side the overlap is read with; the counts do not depend on it. */
const SAMPLES = 3;

/** Checks the app as a whole. All but a missing provider is advice, since an app may be new. */
export async function checkApp(
  session: SelfTestSession,
  connected: readonly ProviderName[],
  codes: readonly CodeInUse[],
): Promise<AppStep[]> {
  return [
    checkProviders(session, connected.length),
    checkPublicUrl(session),
    ...(await checkActivity(session, codes)),
    await checkUserIds(session),
    ...(await checkPurchaseCodes(session, connected, codes)),
    await checkExchangeRates(session),
  ];
}

function checkProviders(session: SelfTestSession, count: number): AppStep {
  return count > 0
    ? passed(
        'providers',
        `${count} of the ${PROVIDER_NAMES.length} billing providers ${count === 1 ? 'is' : 'are'} configured.`,
      )
    : failed(
        'providers',
        'No billing provider is configured, so no sale can arrive.',
        `Set the webhook secret of the provider that you use, in the console (Set-up) or with PUT /apps/${session.appId}/webhooks/PROVIDER/secret.`,
      );
}

function checkPublicUrl({ deps }: SelfTestSession): AppStep {
  const step = 'public_url';
  const { protocol, hostname } = new URL(deps.publicUrl);
  if (isLocal(hostname)) {
    return advice(
      step,
      `Providers would post to ${deps.publicUrl}, which only this network can reach.`,
      'Before you connect a provider, start the service with PUBLIC_URL=https://… (the operator does this), the address at which the internet reaches this service.',
    );
  }
  return protocol === 'https:'
    ? passed(step, `Providers post to ${deps.publicUrl}.`, 'advice')
    : advice(
        step,
        `Providers would post to ${deps.publicUrl}, which is not encrypted.`,
        'Have the operator put https in front of the service and set PUBLIC_URL to that address.',
      );
}

async function checkActivity(
  { deps, appId }: SelfTestSession,
  codes: readonly CodeInUse[],
): Promise<AppStep[]> {
  const since = deps.now() - RECENT_DAYS * DAY_MS;
  const { hasActiveLink, clicks, installs, identified } = await readAppActivity(deps.sql, appId, since);
  const recent = (step: 'clicks' | 'installs' | 'identified', count: number, what: string, fix: string) =>
    count > 0
      ? passed(step, `${count} ${what}${count === 1 ? '' : 's'} in the last ${RECENT_DAYS} days.`, 'advice')
      : advice(step, `No ${what}s in the last ${RECENT_DAYS} days.`, fix);
  return [
    hasActiveLink
      ? passed('links', 'There is an active link.', 'advice')
      : codes.length > 0
        ? passed(
            'links',
            'There is no active link, and none is needed: creators have purchase codes.',
            'advice',
          )
        : advice(
            'links',
            'There is no active link and no purchase code. Either is enough.',
            `Create a creator and a link, in the console (Set-up) or with POST /apps/${appId}/affiliates and POST /apps/${appId}/links; or a purchase code, in the console (Creators) or with POST /apps/${appId}/affiliates/ID/codes.`,
          ),
    recent('clicks', clicks, 'click', 'Open one of your links once, on a phone.'),
    recent(
      'installs',
      installs,
      'attributed install',
      'Have the app call POST /sdk/install at its first start, with the claim token or the affiliate code.',
    ),
    recent(
      'identified',
      identified,
      'identified user',
      'Have the app call POST /sdk/identify as soon as it knows the user, before the first purchase.',
    ),
  ];
}

async function checkUserIds({ deps, appId }: SelfTestSession): Promise<AppStep> {
  const step = 'user_ids';
  const overlap = await readIdentityOverlap(deps.sql, appId, SAMPLES);
  if (!overlap.billed) {
    return advice(
      step,
      'No billing event has named a user yet, so user ids cannot be compared.',
      'Make a sandbox purchase as a user whom the app has identified, then run the self-test again.',
    );
  }
  if (!overlap.identified) {
    return advice(
      step,
      'Billing events name users, but the app has identified none.',
      'Have the app call POST /sdk/identify with exactly the user id that the billing provider reports.',
    );
  }
  return overlap.overlapCount > 0
    ? passed(step, 'Billing events and the app name the same users.', 'advice')
    : advice(
        step,
        'No user of a billing event is a user whom the app has identified.',
        `Compare the ids, in the console (Set-up) or with GET /apps/${appId}/diagnostics/identity. The app must call POST /sdk/identify with exactly the user id that the provider reports.`,
      );
}

async function checkExchangeRates({ deps, appId }: SelfTestSession): Promise<AppStep> {
  const step = 'exchange_rates';
  const inUse = await findCurrenciesInUse(deps.sql, appId);
  if (inUse.length === 0) {
    return passed(
      step,
      'No exchange rates are needed: no recent sale states its price only in another currency than US dollars.',
      'advice',
    );
  }
  const oldest = deps.now() - (RATE_MAX_AGE_DAYS + 1) * DAY_MS;
  const stale = inUse.filter(({ rateAt }) => rateAt === null || rateAt <= oldest);
  const listOf = (rows: typeof inUse) => rows.map(({ currency }) => currency).join(', ');
  return stale.length === 0
    ? passed(step, `Recent exchange rates exist for ${listOf(inUse)}.`, 'advice')
    : advice(
        step,
        `No exchange rate of the last ${RATE_MAX_AGE_DAYS} days exists for ${listOf(stale)}.`,
        'Have the operator check RATES_URL, or import rates with `npm run -s admin -- rates import FILE`. Payments in these currencies wait until then.',
      );
}
