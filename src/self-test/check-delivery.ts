import { providers } from '../providers/index.ts';
import { findOwnAddress } from './check-address.ts';
import { SERVICE_FAULT } from './provider-test.ts';
import type { ProviderTest, SentRequest } from './provider-test.ts';
import type { SendResult } from './send-request.ts';
import { failed, passed } from './steps.ts';
import { tamperedRequest } from './test-purchase.ts';
import type { Purchase } from './test-purchase.ts';

/** A test purchase that the service accepted. */
export interface AcceptedPurchase {
  readonly baseUrl: string;
  readonly purchase: Purchase;
  readonly sent: SentRequest;
}

/** Returns what came back, for the end of a sentence such as "The request got …". */
export function describeResult(result: SendResult): string {
  return result.kind === 'no_response' ? `no response (${result.reason})` : `status ${result.status}`;
}

/**
 * Posts a signed purchase as the provider would. Where the public address does not accept it, posts another one directly
 * to the service, so that the later steps can run. Returns null when neither was accepted.
 */
export async function checkAccepted(
  test: ProviderTest,
  baseUrl: string,
  secret: string,
): Promise<AcceptedPurchase | null> {
  const step = 'accepted';
  const purchase = test.newPurchase(test.code);
  const sent = await test.postPurchase(baseUrl, purchase, secret);
  if (sent.accepted !== null && sent.result.kind === 'response') {
    test.add(passed(step, `A signed purchase was accepted with 200 after ${sent.result.durationMs} ms.`));
    return { baseUrl, purchase, sent };
  }
  const detail = whyNotAccepted(sent);
  const ownUrl = baseUrl === test.session.deps.publicUrl ? await findOwnAddress(test) : null;
  if (ownUrl === null) {
    test.add(failed(step, detail, fixFor(test, sent)));
    return null;
  }
  const second = test.newPurchase(test.code);
  const sentDirectly = await test.postPurchase(ownUrl, second, secret);
  if (sentDirectly.accepted === null) {
    test.add(failed(step, detail, fixFor(test, sentDirectly)));
    return null;
  }
  const { proofHeaders, bodySignature } = providers[test.provider];
  test.add(
    failed(
      step,
      `${detail} Sent directly to the service, it is accepted.`,
      `Have the operator configure the proxy in front of the service to pass ${[...proofHeaders, ...(bodySignature?.headers ?? [])].join(', ')} and the body through unchanged, and to respond within 5 s.`,
    ),
  );
  return { baseUrl: ownUrl, purchase: second, sent: sentDirectly };
}

function whyNotAccepted({ result, isRefusedHere }: SentRequest): string {
  if (result.kind === 'no_response') return `A signed purchase got no response: ${result.reason}.`;
  if (isRefusedHere) return 'A signed purchase arrived unchanged, but its proof was refused (401).';
  return result.status === 401
    ? 'A signed purchase was refused (401): it arrived changed, or at another installation.'
    : `A signed purchase got status ${result.status}.`;
}

function fixFor(test: ProviderTest, { result, isRefusedHere }: SentRequest): string {
  if (result.kind === 'response' && result.status === 503) {
    return 'Have the operator check GET /readyz: the database cannot be reached.';
  }
  if (isRefusedHere) {
    return `Set the secret again ${test.secretSetting}. If that does not help, have the operator correct the server's clock.`;
  }
  return 'Have the operator check the log of the service, and that HOST and PORT are the address that it listens on.';
}

/** Checks that a request whose proof does not match is refused and leaves nothing. */
export async function checkTamperedRefused(
  test: ProviderTest,
  baseUrl: string,
  secret: string,
): Promise<void> {
  const step = 'tampered_refused';
  const purchase = test.newPurchase();
  const request = tamperedRequest(test.provider, purchase, secret, test.session.deps.now());
  const { result, isRefusedHere, isRefusalResponse } = await test.post(baseUrl, request);
  const isRecorded = (await test.findEvents(purchase)).length > 0;
  const copy =
    providers[test.provider].scheme === 'static_token'
      ? 'A copy with another token'
      : 'A copy with one changed byte';
  if (isRefusalResponse && isRefusedHere && !isRecorded) {
    test.add(passed(step, `${copy} was refused with 401, and nothing was recorded.`));
    return;
  }
  test.add(
    failed(
      step,
      `${copy} got ${describeResult(result)}${isRecorded ? ' and was recorded' : ''}.`,
      isRefusedHere || isRecorded
        ? SERVICE_FAULT
        : 'Have the operator configure the proxy in front of the service to pass requests and responses through unchanged.',
    ),
  );
}
