import { randomBytes } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { providers } from '../../src/providers/index.ts';
import type { ProviderName } from '../../src/providers/index.ts';
import { PROVIDER_NAMES } from '../../src/providers/index.ts';
import { fakeSecret } from '../../test/support/provider-fixtures.ts';
import { bodyOf } from '../provider-payloads.ts';
import { AnswerLog, send } from './answers.ts';
import type { Answer, RequestOptions } from './answers.ts';
import { creatorName, ratesFile } from './books.ts';
import { payloadOf } from './events.ts';
import { HOLD_DAYS, WINDOW_DAYS } from './plan.ts';
import type { Fact, Plan, PlannedExport, Story } from './plan.ts';
import type { Stack } from './stack.ts';

/** What the plan's apps and creators are called in the service. */
export interface Tenant {
  readonly key: string;
  readonly apps: readonly {
    readonly id: string;
    readonly sdkKey: string;
    readonly secrets: Readonly<Record<ProviderName, string>>;
  }[];
  /** Ids of the creators by `creatorName`. */
  readonly creators: ReadonlyMap<string, string>;
}

/** Creates the account, the apps with a secret of each provider, the creators with their links, and the exchange rates. */
export async function createTenant(stack: Stack, plan: Plan, folder: string): Promise<Tenant> {
  const [{ base } = { base: '' }] = stack.processes;
  const account = JSON.parse(await stack.admin('accounts', 'create', '--name', 'Chaos', '--json')) as {
    id: string;
  };
  const permissions = ['--permissions', 'read,write,setup,payout'];
  const { key } = JSON.parse(
    await stack.admin('keys', 'create', '--account', account.id, ...permissions, '--json'),
  ) as { key: string };
  const rates = path.join(folder, 'rates.csv');
  await writeFile(rates, ratesFile(Date.now()));
  await stack.admin('rates', 'import', rates);

  const call = async (method: string, route: string, body: object) => {
    const answer = await send(base, method, route, { body, headers: { authorization: `Bearer ${key}` } });
    if (answer.status >= 300)
      throw new Error(`${method} ${route}: ${answer.status} ${answer.body.toString()}`);
    return JSON.parse(answer.body.toString()) as Record<string, string>;
  };
  const apps: Tenant['apps'][number][] = [];
  const creators = new Map<string, string>();
  for (const [app, planned] of plan.apps.entries()) {
    const settings = {
      commissionRateBps: 1_000,
      attributionWindowDays: WINDOW_DAYS,
      holdPeriodDays: HOLD_DAYS,
    };
    const { id = '', sdkKey = '' } = await call('POST', '/apps', { name: `Chaos ${app}`, ...settings });
    const secrets: Partial<Record<ProviderName, string>> = {};
    for (const provider of PROVIDER_NAMES) {
      const secret = fakeSecret(provider);
      const body = { environment: 'production', ...(secret === null ? {} : { secret }) };
      const put = await call('PUT', `/apps/${id}/webhooks/${provider}/secret`, body);
      secrets[provider] = secret ?? put['secret'] ?? '';
    }
    apps.push({ id, sdkKey, secrets: secrets as Record<ProviderName, string> });
    for (const [n, { slug, rateBps, isPaused }] of planned.entries()) {
      const body = { name: slug, defaultCommissionRateBps: rateBps };
      const { id: affiliateId = '' } = await call('POST', `/apps/${id}/affiliates`, body);
      await call('POST', `/apps/${id}/links`, {
        affiliateId,
        slug,
        destinationUrl: 'https://example.com/app',
      });
      if (isPaused) await call('PATCH', `/apps/${id}/affiliates/${affiliateId}`, { status: 'paused' });
      creators.set(creatorName(app, n), affiliateId);
    }
  }
  return { key, apps, creators };
}

/** A payout as a client received it. */
export interface ReceivedPayout {
  readonly app: number;
  readonly affiliateId: string;
  /** The key of the export. Null: a run has paid it. */
  readonly key: string | null;
  /** Undefined when nothing was due. */
  readonly payoutId: string | undefined;
  readonly csv: Buffer;
}

const SECRET_OF_FORGER = `forged-${randomBytes(8).toString('hex')}`;
/**
 * A signature of Paddle may have become too old on its way to a process that answers after this time: it is valid for five seconds,
 * and states its time in whole ones.
 */
const STALE_MS = 4_000;
/** A client waits at least this long, and as long as `Retry-After` asks. Providers wait longer. */
/** Where payouts are stopped, `Retry-After` asks for minutes, until an operator has resumed them. The run does it at once. */
const MOST_ASKED_MS = 10_000;
const RETRY_MS = [300, 700, 1_500, 3_000] as const;

/** What a call of the founder has besides its route. */
export interface FounderCall {
  readonly method?: string;
  readonly body?: object;
  /** The `Idempotency-Key`. */
  readonly key?: string;
  /** Which process is asked first. */
  readonly process?: number;
  /** Statuses beside 2xx that end the call. */
  readonly expected?: readonly number[];
}

export interface FounderAnswer<T> extends Answer {
  readonly json: T;
}

/** Another call with the same `Idempotency-Key` is in progress, or was when its process ended. */
const isInUse = ({ status, body }: Answer): boolean =>
  status === 409 && body.includes('"idempotency_key_in_use"');

/** Sends the facts and exports of a plan, each until it is accepted. */
export class Load {
  readonly answers = new AnswerLog();
  readonly payouts: ReceivedPayout[] = [];
  readonly clicks: string[] = [];
  /** What a noisy tenant has sent. */
  noise: Story | undefined;
  accepted = 0;
  retries = 0;
  waiting = 0;
  /** Whether a copy of a fact was sent, so that the progress shows it. */
  copies = 0;
  readonly #begun: Promise<unknown>[] = [];
  readonly #stack: Stack;
  readonly tenant: Tenant;
  readonly #epoch: number;
  #startedAt = Date.now();

  constructor(stack: Stack, tenant: Tenant, epoch: number) {
    this.#stack = stack;
    this.tenant = tenant;
    this.#epoch = epoch;
  }

  /** Ends when every fact and export of the plan was accepted. */
  async play({ stories, exports }: Pick<Plan, 'stories' | 'exports'>): Promise<void> {
    await Promise.all([
      ...stories.map(async (story) => await this.#playStory(story)),
      ...exports.map(async (planned) => await this.#export(planned)),
    ]);
  }

  /** The plan begins now. */
  begin(): void {
    this.#startedAt = Date.now();
  }

  async #until(at: number): Promise<void> {
    await sleep(Math.max(0, this.#startedAt + at - Date.now()));
  }

  async #playStory({ app, facts }: Story): Promise<void> {
    const accepted = new Map<string, Promise<unknown>>();
    for (const fact of facts) {
      const before = fact.after.map((id) => accepted.get(id));
      accepted.set(
        fact.id,
        (async () => {
          await Promise.all([this.#until(fact.sentAt), ...before]);
          await this.#sendFact(app, fact);
        })(),
      );
    }
    await Promise.all(accepted.values());
  }

  async #sendFact(app: number, fact: Fact): Promise<void> {
    const copies = fact.copies.map(async (delayMs, n) => {
      await sleep(delayMs);
      this.copies += 1;
      await this.#untilAccepted(fact, app, n + 1);
    });
    await this.#untilAccepted(fact, app, 0);
    this.accepted += 1;
    if (fact.kind === 'click') this.clicks.push(fact.token);
    await Promise.all(copies);
  }

  async #untilAccepted(fact: Fact, app: number, copy: number): Promise<void> {
    await this.#repeat(
      fact.kind === 'event' ? fact.event.provider : fact.kind,
      fact.process + copy,
      () => this.requestOf(fact, app),
      fact.kind === 'forged' ? [401] : [],
    );
  }

  /** The request of a fact; a webhook is signed anew each time. */
  requestOf(fact: Fact, app: number): readonly [route: string, options: RequestOptions] {
    const { id = '', sdkKey = '', secrets } = this.tenant.apps[app] ?? {};
    const sdk = { authorization: `Bearer ${sdkKey}` };
    switch (fact.kind) {
      case 'click': {
        const { slug, token: claimToken } = fact;
        const clickedAt = this.#epoch + fact.at;
        return ['/clicks', { body: { customerAppId: id, slug, claimToken, clickedAt } }];
      }
      case 'install': {
        const { device: deviceId, token, slug } = fact;
        const firstOpenAt = this.#epoch + fact.at;
        const touch =
          token === null ? { affiliateCode: slug, codeEnteredAt: firstOpenAt } : { claimToken: token };
        return ['/sdk/install', { headers: sdk, body: { deviceId, ...touch, firstOpenAt } }];
      }
      case 'identify': {
        const body = { deviceId: fact.device, customerUserId: fact.user, identifiedAt: this.#epoch };
        return ['/sdk/identify', { headers: sdk, body }];
      }
      case 'event':
      case 'forged': {
        const { provider } = fact.event;
        const body = bodyOf(payloadOf(fact.event, this.#epoch));
        const isForged = fact.kind === 'forged';
        const secret = isForged ? SECRET_OF_FORGER : (secrets?.[provider] ?? '');
        const headers = providers[provider].sample.sign(
          body,
          secret,
          Date.now() + (isForged ? 0 : fact.skewMs),
        );
        return [`/webhooks/${provider}/${id}`, { body, headers }];
      }
    }
  }

  /** Calls the API as the founder until the call is done. `route` is that below an app. */
  async ask<T>(
    name: string,
    app: number,
    route: string,
    { method = 'POST', body, key, process = 0, expected = [] }: FounderCall = {},
  ): Promise<FounderAnswer<T>> {
    const headers = {
      authorization: `Bearer ${this.tenant.key}`,
      ...(key === undefined ? {} : { 'idempotency-key': key }),
    };
    const options = { headers, ...(body === undefined ? {} : { body }) };
    const whole = `/apps/${this.tenant.apps[app]?.id}${route}`;
    const answer = await this.#repeat(name, process, () => [whole, options], expected, method);
    return {
      ...answer,
      get json() {
        return JSON.parse(answer.body.toString()) as T;
      },
    };
  }

  /** Sends a request until it is done, to one process after the other. */
  async #repeat(
    name: string,
    firstProcess: number,
    next: () => readonly [route: string, options: RequestOptions],
    expected: readonly number[] = [],
    method = 'POST',
  ): Promise<Answer> {
    const { processes } = this.#stack;
    this.waiting += 1;
    try {
      for (let attempt = 0; ; attempt += 1) {
        const target = processes[(firstProcess + attempt) % processes.length];
        if (target === undefined) throw new Error('the stack has no process');
        const [route, options] = next();
        const sentAt = Date.now();
        const answer = await send(target.base, method, route, options).catch((error: unknown) => {
          this.answers.failed(name, error, target.wasAway(sentAt, Date.now()));
          return undefined;
        });
        if (answer !== undefined) {
          // Paddle signs each attempt again.
          const isStale = name === 'paddle' && answer.status === 401 && Date.now() - sentAt > STALE_MS;
          // Such an answer is no fault of the caller, whom another process answers rightly.
          const isOdd =
            isStale ||
            isInUse(answer) ||
            (target.tolerated.has(answer.status) && !expected.includes(answer.status));
          if (this.answers.answered(name, answer, isOdd ? [answer.status] : expected) && !isOdd)
            return answer;
        }
        this.retries += 1;
        const askedMs = Math.min(Number(answer?.retryAfter ?? 0) * 1_000, MOST_ASKED_MS);
        await sleep(Math.max(askedMs, RETRY_MS[attempt] ?? 3_000));
      }
    } finally {
      this.waiting -= 1;
    }
  }

  async #export({ sentAt, app, creator, keys }: PlannedExport): Promise<void> {
    await this.#until(sentAt);
    await Promise.all(keys.map(async (key, n) => await this.pay(app, creator, key, n)));
  }

  /** Begins an export of each creator at each process, which `rest` waits for. */
  payAll(prefix: string): void {
    for (const name of this.tenant.creators.keys()) {
      const [app, creator] = name.split('/creator-').map(Number);
      if (app === undefined || creator === undefined) throw new Error(`${name} is not a creator`);
      for (const n of this.#stack.processes.keys())
        this.#begun.push(this.pay(app, creator, `${prefix}-${name}-${n}`, n));
    }
  }

  /** Waits for the exports that were begun. */
  async rest(): Promise<void> {
    await Promise.all(this.#begun);
  }

  affiliateOf(app: number, creator: number): string {
    return this.tenant.creators.get(creatorName(app, creator)) ?? '';
  }

  /** Exports what is due to a creator. */
  async pay(app: number, creator: number, key: string, firstProcess: number): Promise<ReceivedPayout> {
    const affiliateId = this.affiliateOf(app, creator);
    const { body: csv, payoutId } = await this.#repeat('export', firstProcess, () =>
      exportRequest(this.tenant, app, affiliateId, key),
    );
    const payout = { app, affiliateId, key, payoutId, csv };
    this.payouts.push(payout);
    return payout;
  }
}

/** The request of an export under an idempotency key. */
export function exportRequest(
  { apps, key: bearer }: Tenant,
  app: number,
  affiliateId: string,
  key: string,
): readonly [route: string, options: RequestOptions] {
  return [
    `/apps/${apps[app]?.id}/affiliates/${affiliateId}/payouts/export`,
    { headers: { authorization: `Bearer ${bearer}`, 'idempotency-key': key } },
  ];
}
