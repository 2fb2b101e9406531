import { readIdentityOverlap } from '../db/diagnostics.ts';
import { findCurrenciesInUse, readAppActivity } from '../db/self-tests.ts';
import { RATE_MAX_AGE_DAYS } from '../domain/exchange-rate.ts';
import { DAY_MS } from '../domain/time.ts';
import type { Run } from './run.ts';
import { advises, fails, works } from './steps.ts';
import type { APP_STEPS, Step } from './steps.ts';

type AppStep = Step<(typeof APP_STEPS)[number]>;

/** How far back clicks, installs and users are looked for. */
const RECENT_DAYS = 30;
/** User ids shown of each side. */
const SAMPLES = 3;

function configured(run: Run, count: number): AppStep {
  return count > 0
    ? works('providers', `${count} of the five billing providers ${count === 1 ? 'is' : 'are'} configured.`)
    : fails(
        'providers',
        'No billing provider is configured, so no sale can ever arrive.',
        `Set the webhook secret of the one that you use: PUT /apps/${run.appId}/webhooks/PROVIDER/secret.`,
      );
}

/** Hosts that nobody on the internet can reach. */
function isLocal(host: string): boolean {
  return (
    host === 'localhost' ||
    host.endsWith('.localhost') ||
    host.endsWith('.local') ||
    /^(127|10|0|192\.168|169\.254|172\.(1[6-9]|2\d|3[01]))\./.test(host) ||
    /^\[(::1?|f[cd].*|fe80.*)\]$/.test(host)
  );
}

function publicUrl({ deps }: Run): AppStep {
  const step = 'public_url';
  const { protocol, hostname } = new URL(deps.publicUrl);
  if (isLocal(hostname)) {
    return advises(
      step,
      `Providers would post to ${deps.publicUrl}, which only this network can reach.`,
      'Before a provider is to post, have the operator set PUBLIC_URL to the https address that the internet reaches this service by.',
    );
  }
  return protocol === 'https:'
    ? works(step, `Providers post to ${deps.publicUrl}.`, 'advice')
    : advises(
        step,
        `Providers would post to ${deps.publicUrl}, in the clear.`,
        'Have the operator put https in front of the service and set PUBLIC_URL to that address.',
      );
}

async function activity({ deps, appId }: Run): Promise<AppStep[]> {
  const since = deps.now() - RECENT_DAYS * DAY_MS;
  const { hasActiveLink, clicks, installs, identified } = await readAppActivity(deps.sql, appId, since);
  const seen = (step: 'clicks' | 'installs' | 'identified', count: number, what: string, fix: string) =>
    count > 0
      ? works(step, `${count} ${what} in the last ${RECENT_DAYS} days.`, 'advice')
      : advises(step, `No ${what} in the last ${RECENT_DAYS} days.`, fix);
  return [
    hasActiveLink
      ? works('links', 'There is a link to share.', 'advice')
      : advises('links', 'There is no active link.', `Make a creator and a link: POST /apps/${appId}/links.`),
    seen('clicks', clicks, 'clicks', 'Open a link of your own once, on a phone.'),
    seen(
      'installs',
      installs,
      'attributed installs',
      'Have the app call POST /sdk/install at its first start, with the claim token or the code that brought it.',
    ),
    seen(
      'identified',
      identified,
      'identified users',
      'Have the app call POST /sdk/identify as soon as it knows the user, before the first purchase.',
    ),
  ];
}

async function userIds({ deps, appId }: Run): Promise<AppStep> {
  const step = 'user_ids';
  const overlap = await readIdentityOverlap(deps.sql, appId, SAMPLES);
  if (!overlap.billed) {
    return advises(
      step,
      'No billing event has named a user yet, so the ids can’t be compared.',
      'Buy something in the sandbox with a user that the app has identified, and run this again.',
    );
  }
  if (!overlap.told) {
    return advises(
      step,
      'Billing events name users, but the app has told of none.',
      'Have the app call POST /sdk/identify with the very text that the billing provider reports.',
    );
  }
  return overlap.overlapCount > 0
    ? works(step, 'Users of billing events and users that the app told of are the same.', 'advice')
    : advises(
        step,
        'No user of a billing event is one that the app told of.',
        `Compare the ids in GET /apps/${appId}/diagnostics/identity: the app must give identify() the very text that the provider reports.`,
      );
}

async function exchangeRates({ deps, appId }: Run): Promise<AppStep> {
  const step = 'exchange_rates';
  const inUse = await findCurrenciesInUse(deps.sql, appId);
  if (inUse.length === 0)
    return works(step, 'No rates are needed: the latest sales state US dollars.', 'advice');
  const oldest = deps.now() - (RATE_MAX_AGE_DAYS + 1) * DAY_MS;
  const stale = inUse.filter(({ rateAt }) => rateAt === null || rateAt <= oldest);
  return stale.length === 0
    ? works(step, `There are fresh rates of ${inUse.map(({ currency }) => currency).join(', ')}.`, 'advice')
    : advises(
        step,
        `There is no rate of the last ${RATE_MAX_AGE_DAYS} days for ${stale.map(({ currency }) => currency).join(', ')}.`,
        'Have the operator check RATES_URL, or import rates with `npm run -s admin -- rates import FILE`; payments wait until then.',
      );
}

/** What the app as a whole lacks. All but a missing provider is advice: an app may be new. */
export async function testApp(run: Run, configuredProviders: number): Promise<AppStep[]> {
  return [
    configured(run, configuredProviders),
    publicUrl(run),
    ...(await activity(run)),
    await userIds(run),
    await exchangeRates(run),
  ];
}
