import type { ProviderTest, SentRequest } from './provider-test.ts';
import { failed, passed } from './steps.ts';

/** Returns whether a host cannot be reached from the internet. */
export function isLocal(host: string): boolean {
  return (
    host === 'localhost' ||
    host.endsWith('.localhost') ||
    host.endsWith('.local') ||
    /^(127|10|0|192\.168|169\.254|172\.(1[6-9]|2\d|3[01]))\./.test(host) ||
    /^\[(::1?|f[cd].*|fe80.*)\]$/.test(host)
  );
}

/** Returns where the service listens, past the public address; null where that is the same, or is not the service. */
export async function findOwnAddress(test: ProviderTest): Promise<string | null> {
  const { publicUrl, ownUrl } = test.session.deps;
  if (ownUrl === null || ownUrl === publicUrl) return null;
  return (await test.postUnproven(ownUrl)).isRefusedHere ? ownUrl : null;
}

/** Checks that the public address reaches this service and changes nothing. Sends no proof. */
export async function checkPublicAddress(test: ProviderTest): Promise<boolean> {
  const { session } = test;
  const { publicUrl } = session.deps;
  if (session.publicAddressFault !== null) return addUnreachable(test, session.publicAddressFault);
  const sent = await test.postUnproven(publicUrl);
  if (sent.result.kind === 'no_response') {
    session.publicAddressFault = sent.result.reason;
    return addUnreachable(test, sent.result.reason);
  }
  return addResponse(test, sent, sent.result);
}

function addUnreachable(test: ProviderTest, reason: string): boolean {
  return test.add(
    failed(
      'public_address',
      `${test.session.deps.publicUrl} cannot be reached from the service itself: ${reason}.`,
      'Have the operator set PUBLIC_URL to the address at which the internet reaches this service. If it is correct and only this network cannot reach it, check that a test event from the provider arrives.',
    ),
  );
}

function addResponse(
  test: ProviderTest,
  { isRefusedHere, isRefusalResponse }: SentRequest,
  { status, location }: { readonly status: number; readonly location: string | null },
): boolean {
  const step = 'public_address';
  const { publicUrl } = test.session.deps;
  if (isRefusedHere && isRefusalResponse) {
    return test.add(passed(step, `${publicUrl} reaches this service, and bodies arrive unchanged.`));
  }
  if (isRefusedHere) {
    return test.add(
      failed(
        step,
        `Requests to ${publicUrl} arrive, but something replaces the service's response with a ${status}.`,
        'Have the operator configure the proxy or firewall in front of the service to pass responses through unchanged.',
      ),
    );
  }
  if (status >= 300 && status < 400) {
    return test.add(
      failed(
        step,
        `${publicUrl} redirects (${status}${location === null ? '' : ` to ${originOf(location, publicUrl)}`}), and providers do not follow redirects.`,
        'Have the operator set PUBLIC_URL to the address that it redirects to, then enter the new webhook URL at the provider.',
      ),
    );
  }
  return test.add(
    isRefusalResponse
      ? failed(
          step,
          `Something changes the body between ${publicUrl} and this service, or another installation responds there.`,
          'Have the operator configure the proxy in front of the service to pass bodies through byte for byte, and check that PUBLIC_URL points to this installation.',
        )
      : failed(
          step,
          `Something other than this service responds at ${publicUrl}, with status ${status}.`,
          'Have the operator set PUBLIC_URL to the address of this service, and have the proxy in front of it forward POST /webhooks.',
        ),
  );
}

/** The origin of a redirect's target. The rest may hold anything, so it is not shown. */
function originOf(location: string, base: string): string {
  return URL.canParse(location, base) ? new URL(location, base).origin : 'an invalid address';
}
