import { setTimeout as sleep } from 'node:timers/promises';
import * as z from 'zod';
import { SecretUnreadable } from '../config/secret-box.ts';
import { findActiveWebhookSecrets } from '../db/deliveries.ts';
import type { WebhookSecretRow } from '../db/deliveries.ts';
import {
  announceSelfTest,
  findDeliveryState,
  findMoneyLeft,
  findRealDeliveries,
  findSelfTestEvents,
  wasRefusedHere,
} from '../db/self-tests.ts';
import type { SelfTestEvent } from '../db/self-tests.ts';
import { secretContext } from '../db/webhook-secrets.ts';
import type { EventId } from '../domain/ids.ts';
import { webhookUrl } from '../domain/webhook-url.ts';
import { providers } from '../providers/index.ts';
import { RIGHT_AT_ANOTHER_TIME } from '../providers/proof.ts';
import type { ProviderName } from '../providers/provider.ts';
import type { PostResult } from './post.ts';
import { PROOFS } from './provider-samples.ts';
import { OutOfTime } from './run.ts';
import type { Run } from './run.ts';
import { newSample, sha256Of, tamper } from './sample.ts';
import type { Sample } from './sample.ts';
import { advises, fails, isSound, works } from './steps.ts';
import type { PROVIDER_STEPS, Step } from './steps.ts';

type ProviderStep = Step<(typeof PROVIDER_STEPS)[number]>;

/** How one provider's set-up came out. */
export interface ProviderReport {
  readonly provider: ProviderName;
  readonly configured: boolean;
  readonly ok: boolean;
  readonly steps: readonly ProviderStep[];
}

const OWN_FAULT =
  'This is a fault of the service and not of your set-up: show this answer to whoever operates it.';

/** How long an answer that was pending is waited for, and how often it is looked for. */
const OUTCOME_WITHIN_MS = 3_000;
const OUTCOME_PAUSE_MS = 100;

/** What a webhook is answered with when all is well. */
const acceptedAnswer = z.union([
  z.object({ duplicate: z.literal(true) }).transform(() => ({ kind: 'duplicate' as const })),
  z
    .object({ eventId: z.string(), pending: z.literal(true).optional() })
    .transform(({ eventId, pending }) => ({
      kind: pending === true ? ('pending' as const) : ('done' as const),
      eventId: eventId as EventId,
    })),
]);
/** What `GET /readyz` answers: what it checked, or while something is missing what that is. */
const readyAnswer = z.object({
  checks: z.array(z.object({ name: z.string(), ok: z.boolean(), detail: z.string().nullable() })).optional(),
  detail: z.string().optional(),
});
const refusedAnswer = z.object({ code: z.literal('unauthorized') });

/** What became of one request that was announced before it was posted. */
interface Posted {
  readonly result: PostResult;
  /** What the service said when it took it. */
  readonly accepted: z.infer<typeof acceptedAnswer> | null;
  /** Whether it came to this service whole, byte for byte, and was refused there. */
  readonly refusedHere: boolean;
  readonly isOwnRefusal: boolean;
}

/** Plays one provider against the service, step by step, and stops where nothing more can be learnt. */
class ProviderPlay {
  readonly #run: Run;
  readonly #provider: ProviderName;
  readonly #sent: string[] = [];
  readonly steps: ProviderStep[] = [];

  constructor(run: Run, provider: ProviderName) {
    this.#run = run;
    this.#provider = provider;
  }

  get #putPath(): string {
    return `PUT /apps/${this.#run.appId}/webhooks/${this.#provider}/secret`;
  }

  #add(step: ProviderStep): boolean {
    this.steps.push(step);
    this.#run.deps.onProgress?.(`${this.#provider} ${step.step}: ${step.ok ? 'ok' : step.detail}`);
    return step.ok;
  }

  #newSample(): Sample {
    const sample = newSample(this.#provider, this.#run.deps.now());
    this.#sent.push(sample.sourceEventId);
    return sample;
  }

  async #post(
    baseUrl: string,
    request: { readonly body: Buffer; readonly headers: Readonly<Record<string, string>> },
  ): Promise<Posted> {
    const { sql } = this.#run.deps;
    const { appId } = this.#run;
    const announced = { appId, provider: this.#provider, bodySha256: sha256Of(request.body) };
    await announceSelfTest(sql, announced);
    const result = await this.#run.send(webhookUrl(baseUrl, this.#provider, appId), request);
    const isAnswer = result.kind === 'answer';
    const accepted =
      isAnswer && result.status === 200 ? (acceptedAnswer.safeParse(result.json).data ?? null) : null;
    return {
      result,
      accepted,
      refusedHere: await wasRefusedHere(sql, announced),
      isOwnRefusal: isAnswer && result.status === 401 && refusedAnswer.safeParse(result.json).success,
    };
  }

  async #postSample(baseUrl: string, sample: Sample, secret: string): Promise<Posted> {
    const headers = PROOFS[this.#provider](sample.body, secret, this.#run.deps.now());
    return await this.#post(baseUrl, { body: sample.body, headers });
  }

  /** All steps. Whatever fails by the way is a step; only what nobody foresaw is thrown. */
  async play(secrets: readonly WebhookSecretRow[]): Promise<void> {
    try {
      const secret = this.#openSecret(secrets);
      if (secret !== null) await this.#playWith(secret);
    } catch (error) {
      if (!(error instanceof OutOfTime)) throw error;
      this.#add(
        fails(
          'in_time',
          'The time of the self-test was over before this provider was through.',
          'Mend what the other steps name, which is what took so long, and run the self-test again.',
        ),
      );
    }
    await this.#lookAtRealDeliveries();
  }

  async #playWith(secret: string): Promise<void> {
    // Without a proof, and first: the secret is sent only to an address that was shown to lead here.
    const door = (await this.#reachPublicAddress()) ? this.#run.deps.publicUrl : await this.#ownWebhookUrl();
    if (door === null) return;
    const taken = await this.#deliver(door, secret);
    await this.#tamper(taken?.door ?? door, secret);
    if (taken !== null && (await this.#waitForOutcome(taken.posted))) {
      await this.#lookAtReading(taken.sample);
      await this.#repeat(taken.door, taken.sample, secret);
      await this.#count(taken.sample);
    }
    await this.#lookForMoney();
  }

  /** The newest secret in the clear, which a provider signs with; null when it can't be had. */
  #openSecret([newest]: readonly WebhookSecretRow[]): string | null {
    if (newest === undefined) return null;
    const provider = this.#provider;
    let secret: string;
    try {
      secret = this.#run.deps.secretBox.decrypt(
        Buffer.from(newest.ciphertext),
        newest.encryptionKeyId,
        secretContext(this.#run.appId, provider),
      );
    } catch (error) {
      if (!(error instanceof SecretUnreadable)) throw error;
      this.#add(
        fails(
          'secret',
          `The secret that is set can't be opened: ${error.message}.`,
          `Have the operator put the key that closed it back into SECRETS_KEY, or set the secret anew with ${this.#putPath}.`,
        ),
      );
      return null;
    }
    const fault = providers[provider].secretFault?.(secret) ?? null;
    const isFine = this.#add(
      fault === null
        ? works('secret', `A secret of a plausible form is set, for ${newest.environment}.`)
        : fails(
            'secret',
            `The secret that is set can't be the right one. ${fault}`,
            `Copy the webhook's signing secret from ${provider} (no API key) and set it with ${this.#putPath}.`,
          ),
    );
    return isFine ? secret : null;
  }

  /** Posts what nobody signed, which gives nothing away wherever it goes. */
  async #probe(baseUrl: string): Promise<Posted> {
    return await this.#post(baseUrl, { body: this.#newSample().body, headers: {} });
  }

  /** Where the service listens, past the public address; null where that is the same, or is not the service. */
  async #ownWebhookUrl(): Promise<string | null> {
    const { publicUrl, ownUrl } = this.#run.deps;
    if (ownUrl === null || ownUrl === publicUrl) return null;
    return (await this.#probe(ownUrl)).refusedHere ? ownUrl : null;
  }

  async #reachPublicAddress(): Promise<boolean> {
    const step = 'public_address';
    const { publicUrl } = this.#run.deps;
    const known = this.#run.publicFault;
    const { result, refusedHere, isOwnRefusal } =
      known === null
        ? await this.#probe(publicUrl)
        : { result: { kind: 'none', reason: known } as const, refusedHere: false, isOwnRefusal: false };
    if (result.kind === 'none') {
      this.#run.publicFault = result.reason;
      return this.#add(
        fails(
          step,
          `${publicUrl} can't be reached from the service itself: ${result.reason}.`,
          'Have the operator set PUBLIC_URL to the address that the internet reaches this service by; if that is so, and only this network can’t reach it, look whether a test event of the provider arrives.',
        ),
      );
    }
    const { status, location } = result;
    if (refusedHere && isOwnRefusal) {
      return this.#add(works(step, `${publicUrl} leads here, and what is posted arrives byte for byte.`));
    }
    if (refusedHere) {
      return this.#add(
        fails(
          step,
          `What is posted to ${publicUrl} arrives, but the answer comes back as ${status} of somebody else.`,
          'Have whatever stands in front of the service (proxy, firewall) pass its answers on unchanged.',
        ),
      );
    }
    if (status >= 300 && status < 400) {
      return this.#add(
        fails(
          step,
          `${publicUrl} redirects (${status}${location === null ? '' : ` to ${hostOf(location, publicUrl)}`}), and providers don't follow.`,
          'Have the operator set PUBLIC_URL to the address that is redirected to, then give the new URL to the provider.',
        ),
      );
    }
    return this.#add(
      isOwnRefusal
        ? fails(
            step,
            `Something changes the bytes between ${publicUrl} and this service, or another installation answers there.`,
            'Have whatever stands in front of the service pass bodies on byte for byte, and check that PUBLIC_URL leads to this installation.',
          )
        : fails(
            step,
            `Something else than this service answers at ${publicUrl}, with ${status}.`,
            'Have the operator set PUBLIC_URL to the address of this service, and let what stands in front of it pass POST /webhooks on.',
          ),
    );
  }

  /** Posts a purchase as the provider would. Where the public address does not take it, the service itself is asked. */
  async #deliver(
    door: string,
    secret: string,
  ): Promise<{ door: string; sample: Sample; posted: Posted } | null> {
    const step = 'accepted';
    const sample = this.#newSample();
    const posted = await this.#postSample(door, sample, secret);
    const { result } = posted;
    if (posted.accepted !== null && result.kind === 'answer') {
      this.#add(works(step, `A signed purchase was answered 200 after ${result.tookMs} ms.`));
      return { door, sample, posted };
    }
    const detail = this.#whyNotAccepted(posted);
    const ownWebhookUrl = door === this.#run.deps.publicUrl ? await this.#ownWebhookUrl() : null;
    if (ownWebhookUrl === null) {
      this.#add(fails(step, detail, this.#fixWebhookUrl(posted)));
      return null;
    }
    const again = this.#newSample();
    const past = await this.#postSample(ownWebhookUrl, again, secret);
    if (past.accepted === null) {
      this.#add(fails(step, detail, this.#fixWebhookUrl(past)));
      return null;
    }
    this.#add(
      fails(
        step,
        `${detail} Past the public address it is accepted.`,
        `Have whatever stands in front of the service pass on ${providers[this.#provider].proofHeaders.join(', ')} and the body unchanged, and answer within 5 s.`,
      ),
    );
    return { door: ownWebhookUrl, sample: again, posted: past };
  }

  #whyNotAccepted({ result, refusedHere }: Posted): string {
    if (result.kind === 'none') return `A signed purchase got no answer: ${result.reason}.`;
    if (refusedHere) return 'A signed purchase arrived whole, but its proof was refused (401).';
    if (result.status === 401) return 'A signed purchase was refused (401): it arrived changed, or not here.';
    return `A signed purchase was answered ${result.status}.`;
  }

  #fixWebhookUrl({ result, refusedHere }: Posted): string {
    if (result.kind === 'answer' && result.status === 503) {
      return 'Have the operator look at GET /readyz: the database is out of reach.';
    }
    if (refusedHere) {
      return `Set the secret again with ${this.#putPath}; if that does not help, have the operator set the clock of the server right.`;
    }
    return 'Have the operator look at the log of the service, and that HOST and PORT are those it listens on.';
  }

  async #tamper(door: string, secret: string): Promise<void> {
    const step = 'tampered_refused';
    const sample = this.#newSample();
    const tampered = tamper(this.#provider, sample, secret, this.#run.deps.now());
    const { result, refusedHere, isOwnRefusal } = await this.#post(door, tampered);
    const found = await this.#eventsOf(sample);
    const copy =
      providers[this.#provider].scheme === 'static_token'
        ? 'A copy with another token'
        : 'A copy that was changed in one byte';
    if (result.kind === 'answer' && isOwnRefusal && refusedHere && found.length === 0) {
      this.#add(works(step, `${copy} was refused with 401 and left nothing.`));
      return;
    }
    const answer = result.kind === 'none' ? `no answer (${result.reason})` : String(result.status);
    this.#add(
      fails(
        step,
        `${copy} got ${answer}${found.length > 0 ? ' and was recorded' : ''}.`,
        refusedHere || found.length > 0
          ? OWN_FAULT
          : 'Have whatever stands in front of the service pass requests and answers on unchanged.',
      ),
    );
  }

  /** Whether the delivery has an outcome. A pending one gets a little more time. */
  async #waitForOutcome({ accepted }: Posted): Promise<boolean> {
    const step = 'processed';
    if (accepted?.kind !== 'pending') {
      return this.#add(works(step, 'It was worked on before the answer went out.'));
    }
    const { sql } = this.#run.deps;
    const look = async () => await findDeliveryState(sql, this.#run.appId, accepted.eventId);
    const giveUpAt =
      performance.now() + (this.#run.isWorkStuck ? 0 : Math.min(OUTCOME_WITHIN_MS, this.#run.timeLeftMs));
    let state = await look();
    while (state?.isDone !== true && performance.now() < giveUpAt) {
      await sleep(OUTCOME_PAUSE_MS);
      state = await look();
    }
    const isDone = state?.isDone === true;
    this.#run.isWorkStuck = !isDone;
    const missing = await this.#whatIsMissing();
    if (isDone) {
      this.#add(
        advises(
          step,
          'It was kept and answered as pending, and worked on only after the answer.',
          `If that happens again, have the operator look at ${missing}.`,
        ),
      );
      return true;
    }
    this.#add(
      fails(
        step,
        `It was kept and answered as pending, and nobody works on it${state?.lastError == null ? '' : `: ${state.lastError}`}.`,
        `Have the operator look at ${missing}; a kept delivery goes on by itself, nothing has to be sent again.`,
      ),
    );
    return false;
  }

  /** What `GET /readyz` says of Temporal, and what to look at when it says nothing. */
  async #whatIsMissing(): Promise<string> {
    const { ownUrl, publicUrl } = this.#run.deps;
    const result =
      this.#run.timeLeftMs > 0 ? await this.#run.send(`${ownUrl ?? publicUrl}/readyz`, {}) : null;
    const json = result?.kind === 'answer' ? result.json : undefined;
    const ready = readyAnswer.safeParse(json).data;
    const missing =
      ready?.checks === undefined
        ? ready?.detail
        : ready.checks.find(({ name, ok }) => name === 'temporal' && !ok)?.detail;
    return missing == null
      ? 'the Temporal server (TEMPORAL_ADDRESS) and whether a worker runs (ROLE=worker or all)'
      : `the Temporal server (GET /readyz says: ${missing})`;
  }

  async #eventsOf({ sourceEventId }: Sample): Promise<SelfTestEvent[]> {
    return await findSelfTestEvents(this.#run.deps.sql, this.#run.appId, this.#provider, sourceEventId);
  }

  async #lookAtReading(sample: Sample): Promise<void> {
    const step = 'read';
    const { userId, amountCents } = sample;
    const [event] = await this.#eventsOf(sample);
    if (event === undefined) {
      this.#add(fails(step, 'It was answered as done, but no event of it was recorded.', OWN_FAULT));
      return;
    }
    const faults = [
      event.environment === 'sandbox' ? null : 'environment',
      event.isSelfTest ? null : 'mark of the self-test',
      event.customerUserId === userId ? null : 'user',
      event.amountMinor === amountCents && event.currency === 'USD' ? null : 'amount',
      event.payments === 1 ? null : 'payment',
    ].filter((fault) => fault !== null);
    this.#add(
      faults.length === 0
        ? works(
            step,
            `It was read as a purchase in the sandbox, ${(amountCents / 100).toFixed(2)} USD by the user that was sent.`,
          )
        : fails(step, `It was recorded, but not as it was sent: ${faults.join(', ')}.`, OWN_FAULT),
    );
  }

  async #repeat(door: string, sample: Sample, secret: string): Promise<void> {
    const step = 'repeat_is_duplicate';
    const { accepted, result } = await this.#postSample(door, sample, secret);
    if (accepted?.kind === 'duplicate') {
      this.#add(works(step, 'The same purchase again was answered as a duplicate.'));
      return;
    }
    const answer = result.kind === 'none' ? `no answer (${result.reason})` : `${result.status}, no duplicate`;
    this.#add(
      fails(
        step,
        `The same purchase again got ${accepted?.kind === 'pending' ? 'an answer that is pending' : answer}.`,
        accepted?.kind === 'pending'
          ? `Have the operator look at ${await this.#whatIsMissing()}.`
          : OWN_FAULT,
      ),
    );
  }

  async #count(sample: Sample): Promise<void> {
    const events = await this.#eventsOf(sample);
    this.#add(
      events.length === 1 && events[0]?.payments === 1
        ? works('counted_once', 'It is recorded once, with one payment.')
        : fails('counted_once', `It is recorded ${events.length} times.`, OWN_FAULT),
    );
  }

  async #lookForMoney(): Promise<void> {
    const left = await findMoneyLeft(this.#run.deps.sql, this.#run.appId, this.#provider, this.#sent);
    const found = Object.entries(left).filter(([, count]) => count > 0);
    this.#add(
      found.length === 0
        ? works('no_money', 'Nothing of it is a commission, revenue, or a payment that could earn.')
        : fails(
            'no_money',
            `It left ${found.map(([name, count]) => `${name}: ${count}`).join(', ')}.`,
            OWN_FAULT,
          ),
    );
  }

  /** Everybody may post what is refused here, so this is never more than advice. */
  async #lookAtRealDeliveries(): Promise<void> {
    const step = 'real_deliveries';
    const { sql } = this.#run.deps;
    const real = await findRealDeliveries(sql, this.#run.appId, this.#provider);
    const { acceptedAt, acceptedStatus, acceptedError, refusedAt, refusedReason, refusedCount } = real;
    const accepted =
      acceptedAt === null ? 'none was accepted yet' : `the last was accepted at ${isoOf(acceptedAt)}`;
    if (refusedAt !== null && (acceptedAt === null || refusedAt > acceptedAt)) {
      this.#add(
        advises(
          step,
          `Of ${this.#provider}'s own deliveries ${accepted}; one was refused at ${isoOf(refusedAt)} (${refusedReason ?? 'no reason'}, ${refusedCount ?? 1} in that hour).`,
          refusedReason?.startsWith(RIGHT_AT_ANOTHER_TIME) === true
            ? 'Have the operator synchronise the clock of the server. If that is right, somebody sent an old delivery again.'
            : `If ${this.#provider} sent it, copy the secret anew and set it with ${this.#putPath}.`,
        ),
      );
    } else if (acceptedAt === null) {
      this.#add(
        advises(
          step,
          `${this.#provider} itself has not delivered anything yet.`,
          `Send a test event from ${this.#provider}, or buy something in its sandbox, and look at GET /apps/${this.#run.appId}/diagnostics/webhooks.`,
        ),
      );
    } else if (acceptedStatus === 'failed') {
      this.#add(
        advises(
          step,
          `The last delivery of ${this.#provider}'s own, at ${isoOf(acceptedAt)}, can't be read: ${acceptedError ?? 'no reason was kept'}.`,
          `Check that ${this.#provider} sends the events and the format that its setupHint in GET /apps/${this.#run.appId}/webhooks names.`,
        ),
      );
    } else {
      this.#add(
        works(
          step,
          `Of ${this.#provider}'s own deliveries the last was accepted at ${isoOf(acceptedAt)}.`,
          'advice',
        ),
      );
    }
  }
}

function isoOf(at: number): string {
  return new Date(at).toISOString();
}

/** The origin of a redirect's target. The rest of it may hold anything. */
function hostOf(location: string, base: string): string {
  return URL.canParse(location, base) ? new URL(location, base).origin : 'nowhere';
}

/** Plays one provider's purchase through the whole pipeline, and says step by step what works. */
export async function testProvider(run: Run, provider: ProviderName): Promise<ProviderReport> {
  const { sql, now } = run.deps;
  const secrets = (await findActiveWebhookSecrets(sql, run.appId, provider, now())) ?? [];
  if (secrets.length === 0) {
    const fix = `If you use ${provider}: PUT /apps/${run.appId}/webhooks/${provider}/secret, whose answer says where to fill in what.`;
    const steps = [advises('secret', 'Not configured: no webhook secret is set.', fix)];
    return { provider, configured: false, ok: true, steps };
  }
  const play = new ProviderPlay(run, provider);
  await play.play(secrets);
  return { provider, configured: true, ok: isSound(play.steps), steps: play.steps };
}
