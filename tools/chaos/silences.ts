import { setTimeout as sleep } from 'node:timers/promises';
import { PROVIDER_NAMES } from '../../src/providers/index.ts';
import type { ProviderName } from '../../src/providers/index.ts';
import { triggerSchedule } from './faults/mid-work.ts';
import type { Load } from './load.ts';
import { BONUS_APP, duePayment, planKnownUser } from './plan.ts';
import type { Fact, Story } from './plan.ts';
import type { Random } from './random.ts';
import type { Stack } from './stack.ts';

/*
 * Providers that fall silent: the webhooks of an app seem to be a day older, until an alert is open. Then the provider sends one,
 * and the alert closes. The Schedule of the alerts is triggered, instead of waiting five minutes for it.
 */

/** With fewer webhooks, a provider has no rhythm. */
const RHYTHM = 20;
const AGAIN_MS = 1_000;
const USER = 'silent';
const MINOR = 5_000;

/** A silence whose alert has opened and closed. */
export interface Silence {
  readonly provider: ProviderName;
  readonly alertId: string;
}

/** Evaluates all alerts now. Does nothing while Temporal is away. */
export async function evaluateAlerts({ temporal }: Pick<Stack, 'temporal'>): Promise<void> {
  await triggerSchedule(`127.0.0.1:${temporal.port}`, 'alerts').catch(() => {});
}

export class Silences {
  readonly ended: Silence[] = [];
  readonly #stack: Stack;
  readonly #load: Load;
  readonly #random: Random;
  readonly #facts: Fact[] = [...planKnownUser(USER, BONUS_APP, 0)];
  #begun: { readonly provider: ProviderName; alertId: string | undefined } | undefined;

  constructor(stack: Stack, load: Load, random: Random) {
    this.#stack = stack;
    this.#load = load;
    this.#random = random;
  }

  /** All that was sent, for the model. */
  get story(): Story {
    return { app: BONUS_APP, creator: 0, facts: this.#facts };
  }

  get #appId(): string {
    return this.#load.tenant.apps[BONUS_APP]?.id ?? '';
  }

  async #send(facts: readonly Fact[]): Promise<void> {
    await this.#load.play({ stories: [{ ...this.story, facts }], exports: [] });
  }

  #nextWebhook(provider: ProviderName): Fact {
    const n = this.#facts.length;
    const fact: Fact = {
      id: `silent ${n}`,
      sentAt: 0,
      after: [],
      copies: [],
      process: n,
      kind: 'event',
      event: { ...duePayment(USER, `660${n}`, MINOR), provider },
      skewMs: 0,
    };
    this.#facts.push(fact);
    return fact;
  }

  /** Sends as many webhooks of each provider as a rhythm needs. */
  async setUp(): Promise<void> {
    await this.#send([...this.#facts]);
    for (const provider of PROVIDER_NAMES)
      await this.#send(Array.from({ length: RHYTHM }, () => this.#nextWebhook(provider)));
  }

  /** Lets one provider after another fall silent until that moment, epoch ms. */
  async play(until: number): Promise<void> {
    while (Date.now() < until) {
      for (const provider of this.#random.shuffled(PROVIDER_NAMES))
        if (Date.now() < until) await this.#beSilent(provider, until);
    }
  }

  async #beSilent(provider: ProviderName, until: number): Promise<void> {
    const begun = { provider, alertId: undefined };
    this.#begun = begun;
    await this.#untilDone(async () => {
      // A delivery that waits is verified again, as of the time at which it was received.
      const waiting = await this.#stack.sql().maybe`
        select from deliveries
         where app_id = ${this.#appId} and provider = ${provider} and signature_valid and completed_at is null limit 1`;
      if (waiting !== undefined) return false;
      // The rhythm stays as it was.
      await this.#stack.sql()`
        update deliveries set received_at = received_at - interval '1 day'
         where app_id = ${this.#appId} and provider = ${provider} and signature_valid and received_at > now() - interval '12 hours'`;
      return true;
    });
    await this.#untilDone(async () => {
      const open = await this.#openAlert(provider);
      if (open === undefined) await evaluateAlerts(this.#stack);
      else if (this.#begun !== undefined) this.#begun.alertId = open;
      return open !== undefined || Date.now() >= until;
    });
    await this.end();
    await sleep(this.#random.int(0, 3_000));
  }

  /** Ends the silence that has begun: the provider sends a webhook. */
  async end(): Promise<void> {
    const begun = this.#begun;
    if (begun === undefined) return;
    this.#begun = undefined;
    const { provider } = begun;
    await this.#send([this.#nextWebhook(provider)]);
    await this.#untilDone(async () => {
      const open = await this.#openAlert(provider);
      if (open !== undefined) {
        begun.alertId ??= open;
        await evaluateAlerts(this.#stack);
      }
      return open === undefined;
    });
    // One that opened and closed between two looks.
    await this.#untilDone(async () => {
      const known = this.ended.map((silence) => silence.alertId);
      const row = await this.#stack.sql().maybe<{ id: string }>`
        select id from alerts where app_id = ${this.#appId} and rule = 'provider_silent' and subject = ${provider}
           and id <> all(${known}::text[]) order by opened_at limit 1`;
      begun.alertId ??= row?.id;
      return true;
    });
    await this.#untilDone(async () => {
      await this.#stack.sql()`
        update deliveries set received_at = received_at + interval '1 day'
         where app_id = ${this.#appId} and provider = ${provider} and signature_valid and received_at < now() - interval '12 hours'`;
      return true;
    });
    if (begun.alertId !== undefined) this.ended.push({ provider, alertId: begun.alertId });
  }

  async #openAlert(provider: ProviderName): Promise<string | undefined> {
    const row = await this.#stack.sql().maybe<{ id: string }>`
      select id from alerts where app_id = ${this.#appId} and rule = 'provider_silent' and subject = ${provider} and closed_at is null`;
    return row?.id;
  }

  /** Repeats a step until it says that it is done, also after Postgres was away. */
  async #untilDone(step: () => Promise<boolean>): Promise<void> {
    while (!(await step().catch(() => false))) await sleep(AGAIN_MS);
  }
}
