import { setTimeout as sleep } from 'node:timers/promises';
import * as z from 'zod';
import type { CodeInUse } from '../db/code-arrivals.ts';
import { announceSelfTest, findSelfTestEvents, wasRefusedHere } from '../db/self-tests.ts';
import type { Announcement, SelfTestEvent } from '../db/self-tests.ts';
import type { EventId } from '../domain/ids.ts';
import { webhookUrl } from '../domain/webhook-url.ts';
import { codeHintOf } from '../providers/code-hints.ts';
import { providers } from '../providers/index.ts';
import type { ProviderName } from '../providers/index.ts';
import type { SendResult } from './send-request.ts';
import type { SelfTestSession } from './session.ts';
import type { PROVIDER_STEPS, Step } from './steps.ts';
import { newPurchase, sha256Of } from './test-purchase.ts';
import type { Purchase } from './test-purchase.ts';

export type ProviderStep = Step<(typeof PROVIDER_STEPS)[number]>;

/** The fix of a step that only a defect of the service can fail. */
export const SERVICE_FAULT =
  'This is a fault of the service, not of your setup. Send this report to the operator of the service.';

/** How long the self-test waits until a refused request is recorded, and how often it checks. */
const REFUSALS_WITHIN_MS = 1_300;
const REFUSALS_PAUSE_MS = 50;

/** The responses to an accepted webhook. */
const acceptedResponse = z.union([
  z.object({ duplicate: z.literal(true) }).transform(() => ({ kind: 'duplicate' as const })),
  z
    .object({ eventId: z.string(), pending: z.literal(true).optional() })
    .transform(({ eventId, pending }) => ({
      kind: pending === true ? ('pending' as const) : ('done' as const),
      eventId: eventId as EventId,
    })),
]);
const refusedResponse = z.object({ code: z.literal('unauthorized') });

/** What became of one announced request. */
export interface SentRequest {
  readonly result: SendResult;
  /** The response of this service when it accepted the request; else null. */
  readonly accepted: z.infer<typeof acceptedResponse> | null;
  /** Whether the request reached this service byte for byte and was refused there. */
  readonly isRefusedHere: boolean;
  /** Whether the response is a refusal in the form of this service. */
  readonly isRefusalResponse: boolean;
}

/** The test of one provider within a session: its steps so far, and the requests that it sends. */
export class ProviderTest {
  readonly session: SelfTestSession;
  readonly provider: ProviderName;
  readonly steps: ProviderStep[] = [];
  /** The event ids of all purchases so far. */
  readonly sourceEventIds: string[] = [];
  /** The latest code of a creator that the provider's purchases can state. Null: none, or codes attribute nothing. */
  readonly code: CodeInUse | null;

  constructor(session: SelfTestSession, provider: ProviderName, codes: readonly CodeInUse[]) {
    this.session = session;
    this.provider = provider;
    this.code =
      codes
        .filter(({ namespace }) => codeHintOf(provider, namespace) !== null)
        .toSorted((a, b) => b.createdAt - a.createdAt)[0] ?? null;
  }

  /** The provider's name for people. */
  get title(): string {
    return providers[this.provider].title;
  }

  /** Where the provider's secret is set. */
  get secretSetting(): string {
    return `in the console (Set-up) or with PUT /apps/${this.session.appId}/webhooks/${this.provider}/secret`;
  }

  /** Adds a step to the report. Returns whether it passed. */
  add(step: ProviderStep): boolean {
    this.steps.push(step);
    this.session.deps.onProgress?.(`${this.provider} ${step.step}: ${step.ok ? 'ok' : step.detail}`);
    return step.ok;
  }

  /** Returns a new purchase, with a code of a creator where it is given. */
  newPurchase(code: CodeInUse | null = null): Purchase {
    const stated = code && { namespace: code.namespace, value: code.externalId ?? code.value };
    const purchase = newPurchase(this.provider, this.session.deps.now(), stated);
    this.sourceEventIds.push(purchase.sourceEventId);
    return purchase;
  }

  /** Announces a webhook request to the database and posts it. */
  async post(
    baseUrl: string,
    request: { readonly body: Buffer; readonly headers: Readonly<Record<string, string>> },
  ): Promise<SentRequest> {
    const { session, provider } = this;
    const { sql } = session.deps;
    const announcement = { appId: session.appId, provider, bodySha256: sha256Of(request.body) };
    await announceSelfTest(sql, announcement);
    const result = await session.send(webhookUrl(baseUrl, provider, session.appId), request);
    const { status, json } = result.kind === 'response' ? result : { status: 0, json: undefined };
    return {
      result,
      accepted: status === 200 ? (acceptedResponse.safeParse(json).data ?? null) : null,
      isRefusedHere: await this.#wasRefusedHere(announcement, status === 401),
      isRefusalResponse: status === 401 && refusedResponse.safeParse(json).success,
    };
  }

  /** Returns whether a request was refused here. A process writes the requests that it refused once a second. */
  async #wasRefusedHere(announcement: Announcement, isRefused: boolean): Promise<boolean> {
    const { sql, flushRefusals } = this.session.deps;
    await flushRefusals?.();
    const { session } = this;
    const waitMs =
      isRefused && !session.isRefusedElsewhere ? Math.min(REFUSALS_WITHIN_MS, session.timeLeftMs) : 0;
    const giveUpAt = performance.now() + waitMs;
    for (;;) {
      if (await wasRefusedHere(sql, announcement)) return true;
      if (performance.now() >= giveUpAt) {
        session.isRefusedElsewhere ||= isRefused;
        return false;
      }
      await sleep(REFUSALS_PAUSE_MS);
    }
  }

  /** Posts a purchase as the provider would, with the proof that `secret` makes. */
  async postPurchase(baseUrl: string, { body }: Purchase, secret: string): Promise<SentRequest> {
    const headers = providers[this.provider].sample.sign(body, secret, this.session.deps.now());
    return await this.post(baseUrl, { body, headers });
  }

  /** Posts a purchase without a proof, which reveals nothing wherever it goes. */
  async postUnproven(baseUrl: string): Promise<SentRequest> {
    return await this.post(baseUrl, { body: this.newPurchase().body, headers: {} });
  }

  async findEvents({ sourceEventId }: Purchase): Promise<SelfTestEvent[]> {
    return await findSelfTestEvents(this.session.deps.sql, this.session.appId, this.provider, sourceEventId);
  }
}
