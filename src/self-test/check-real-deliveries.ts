import { findRealDeliveries } from '../db/self-tests.ts';
import type { RealDeliveries } from '../db/self-tests.ts';
import { SIGNED_AT_ANOTHER_TIME } from '../providers/proof.ts';
import { isLocal } from './check-address.ts';
import type { ProviderStep, ProviderTest } from './provider-test.ts';
import { advice, passed } from './steps.ts';

/**
 * Reports the latest deliveries that the provider itself sent. Anyone can post a request that is refused, so this step is
 * never more than advice.
 */
export async function checkRealDeliveries(test: ProviderTest): Promise<void> {
  const { session, provider } = test;
  const latest = await findRealDeliveries(session.deps.sql, session.appId, provider);
  const { acceptedAt, refusedAt } = latest;
  if (refusedAt !== null && (acceptedAt === null || refusedAt > acceptedAt)) {
    test.add(refusedStep(test, latest, refusedAt));
  } else if (acceptedAt === null) {
    test.add(nothingStep(test));
  } else {
    test.add(acceptedStep(test, latest, acceptedAt));
  }
}

function nothingStep({ session, title }: ProviderTest): ProviderStep {
  const { publicUrl } = session.deps;
  return isLocal(new URL(publicUrl).hostname)
    ? advice(
        'real_deliveries',
        `${title} has not delivered anything, and cannot reach ${publicUrl}.`,
        `To try a purchase without ${title}, use the command in the last step of Set-up in the console. For deliveries of ${title}, start the service with PUBLIC_URL=https://… (the operator does this), the address at which the internet reaches this service.`,
      )
    : advice(
        'real_deliveries',
        `${title} has not delivered anything yet.`,
        `Send a test event from ${title}, or make a purchase in its sandbox: it appears on the page Deliveries of the console, and in GET /apps/${session.appId}/diagnostics/webhooks.`,
      );
}

function refusedStep(test: ProviderTest, latest: RealDeliveries, refusedAt: number): ProviderStep {
  const { acceptedAt, refusedReason, refusedCount } = latest;
  const accepted =
    acceptedAt === null
      ? `No delivery from ${test.title} was accepted yet`
      : `The last accepted delivery from ${test.title} arrived at ${isoTime(acceptedAt)}`;
  const isRightSignature = refusedReason?.startsWith(SIGNED_AT_ANOTHER_TIME) === true;
  return advice(
    'real_deliveries',
    `${accepted}; one was refused at ${isoTime(refusedAt)} (${refusedReason ?? 'no reason'}, ${refusedCount ?? 1} in that hour).`,
    isRightSignature
      ? "Have the operator synchronize the server's clock. If the clock is correct, someone sent an old delivery again."
      : `If ${test.title} sent it, its secret differs from the one set here. Set the secret again ${test.secretSetting}.`,
  );
}

function acceptedStep(test: ProviderTest, latest: RealDeliveries, acceptedAt: number): ProviderStep {
  const at = isoTime(acceptedAt);
  return latest.acceptedStatus === 'failed'
    ? advice(
        'real_deliveries',
        `The last delivery from ${test.title}, at ${at}, could not be read: ${latest.acceptedError ?? 'no reason was stored'}.`,
        `Check that ${test.title} sends the events and the format that Set-up in the console names, and setupHint in GET /apps/${test.session.appId}/webhooks.`,
      )
    : passed('real_deliveries', `The last delivery from ${test.title} was accepted at ${at}.`, 'advice');
}

function isoTime(at: number): string {
  return new Date(at).toISOString();
}
