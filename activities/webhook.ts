import { asyncLocalStorage } from '@temporalio/activity';
import type { Logger } from 'pino';
import type { SecretBox } from '../src/config/secret-box.ts';
import { signingSecretContext } from '../src/db/webhook-endpoints.ts';
import { decryptUnlessLost } from '../src/db/reencryption.ts';
import { slackUrlContext } from '../src/db/slack-endpoint.ts';
import {
  claimProbe,
  failUnsentMessage,
  loadMessageToSend,
  postponeMessage,
  recordWebhookAttempt,
} from '../src/db/webhook-attempts.ts';
import type { MessageToSend, Postponement } from '../src/db/webhook-attempts.ts';
import type { Sql } from '../src/db/sql.ts';
import { alertText } from '../src/domain/alert-text.ts';
import type { AccountId, WebhookEndpointId } from '../src/domain/ids.ts';
import { RETRY_DELAYS_MS, retryDelayMs } from '../src/domain/outgoing-webhooks.ts';
import type { AttemptResult, WebhookTargets } from '../src/domain/outgoing-webhooks.ts';
import { HOUR_MS } from '../src/domain/time.ts';
import { titleOf } from '../src/providers/index.ts';
import { postWebhook } from '../src/webhooks-out/post.ts';
import type { PostOptions } from '../src/webhooks-out/post.ts';
import { messageBody, signedHeaders } from '../src/webhooks-out/signature.ts';
import { throwIfCancelled } from './cancellation.ts';
import { parseId } from './parse-id.ts';

export interface WebhookActivityDeps {
  readonly sql: Sql;
  readonly secretBox: SecretBox;
  readonly logger: Logger;
  /** Which addresses endpoints may have; only public ones by default. */
  readonly webhookTargets?: WebhookTargets | undefined;
  /** The waits between attempts, ms; those of the domain by default. */
  readonly webhookRetryMs?: readonly number[] | undefined;
  /** The address of the service without a trailing slash, for links to the console. Null or absent if it is not known. */
  readonly publicUrl?: string | null;
  readonly observeWebhook?: ((result: AttemptResult) => void) | undefined;
}

/** What an attempt at a message came to. */
export interface WebhookProgress {
  /**
   * - `delivered`: the endpoint has accepted the message, now or before.
   * - `failed`: no attempt follows.
   * - `retry`: the attempt failed, and another one follows.
   * - `later`: no attempt was made: it is too early, or the endpoint has enough to do.
   */
  readonly state: 'delivered' | 'failed' | 'retry' | 'later';
  /** The attempts at the message so far. */
  readonly attempts: number;
  /** Why the last attempt failed, in one sentence without parts of the response. Null if it did not. */
  readonly problem: string | null;
  /** How long to wait before the next attempt, ms. */
  readonly waitMs: number;
}

export interface WebhookActivities {
  sendMessage(messageId: string): Promise<WebhookProgress>;
}

/** Attempts of a process at one endpoint at a time. A slow endpoint then leaves the others their share. */
const PER_ENDPOINT = 8;
/** Attempts of a process at all endpoints of an account at a time: less than a third of those that it makes in all. */
const PER_ACCOUNT = 12;
/** Database connections that attempts of a process have at a time. */
const CONNECTIONS = 4;
/** The wait of a message whose endpoint has enough to do, ms: longer with each message that was turned away. */
const BUSY_MS = { least: 1_000, most: 5 * 60_000 };
/** For each so many messages that were turned away, the wait grows by `BUSY_MS.least`. */
const TURNED_AWAY = 32;
/** No other message tries an endpoint that fails for this long, ms: longer than an attempt takes. */
const PROBE_MS = 30_000;
/**
 * Messages that wait for an endpoint that fails look again within this long after the time of the next attempt, ms: within as
 * long as it has failed, so that each looks seldom, and all follow soon when it works again after a moment.
 */
const SPREAD_MS = { least: 10_000, most: 2 * HOUR_MS };
/** Why a message cannot be sent whose secret nobody can read any more, and what to do. */
const LOST = {
  secret:
    "The endpoint's secret cannot be decrypted any more. Rotate the secret, then send the message again.",
  slackUrl: 'The Slack URL cannot be decrypted any more. Set it again, then send the message again.',
};
/** The status with which an endpoint says that it wants no messages any more. */
const GONE = 410;

/** Returns a response to text for Slack as far as it is a word such as `no_service`: others may repeat the URL, which is a secret. */
function shownOfSlack(response: string | null): string | null {
  return response !== null && /^[a-z]{1,20}(_[a-z]{1,20}){0,3}$/.test(response) ? response : null;
}

/** The activity of the webhook workflow. */
export function createWebhookActivities({
  sql: allSql,
  secretBox,
  logger,
  webhookTargets = 'public',
  webhookRetryMs = RETRY_DELAYS_MS,
  publicUrl = null,
  observeWebhook,
}: WebhookActivityDeps): WebhookActivities {
  const sql = allSql.share(CONNECTIONS);
  /** The attempts in flight, and the messages that were turned away since there was none, of endpoints and of accounts. */
  const busy = new Map<WebhookEndpointId | AccountId, { inFlight: number; turnedAway: number }>();

  /** Runs `attempt` if the endpoint and its account have room for it. Returns the wait otherwise. */
  async function withRoom<T>(
    { endpointId, accountId }: MessageToSend,
    attempt: () => Promise<T>,
  ): Promise<T | Postponement> {
    const shares = [
      { id: endpointId, most: PER_ENDPOINT },
      { id: accountId, most: PER_ACCOUNT },
    ].map(({ id, most }) => ({ id, most, load: busy.get(id) ?? { inFlight: 0, turnedAway: 0 } }));
    const full = shares.find(({ most, load }) => load.inFlight >= most)?.load;
    if (full !== undefined) {
      full.turnedAway += 1;
      const spread = Math.min(BUSY_MS.most, BUSY_MS.least * (1 + full.turnedAway / TURNED_AWAY));
      return { waitMs: Math.round(BUSY_MS.least + spread * Math.random()), until: 'room' };
    }
    for (const { id, load } of shares) {
      load.inFlight += 1;
      busy.set(id, load);
    }
    try {
      return await attempt();
    } finally {
      for (const { id, load } of shares) {
        load.inFlight -= 1;
        if (load.inFlight === 0) busy.delete(id);
      }
    }
  }

  /** Returns the wait of a message whose endpoint fails. Null if it makes the next attempt. */
  async function probeWait({ endpointId, isFailing }: MessageToSend): Promise<Postponement | null> {
    if (!isFailing) return null;
    const { isAllowed, waitMs, failingMs } = await claimProbe(sql, endpointId, PROBE_MS);
    if (isAllowed) return null;
    const spreadMs = Math.min(SPREAD_MS.most, Math.max(SPREAD_MS.least, failingMs));
    return { waitMs: Math.ceil(waitMs + 1 + spreadMs * Math.random()), until: 'probe' };
  }

  /**
   * Returns the secrets that sign a message, the current one first, or the URL of Slack. Empty if the current one is lost. Throws
   * `SecretUnreadable` if this process lacks a key, and another one may have it.
   */
  function secretsOf(message: MessageToSend): string[] {
    const { ciphertext, encryptionKeyId, previousCiphertext, previousEncryptionKeyId } = message;
    const context = message.isSlack
      ? slackUrlContext(message.secretId)
      : signingSecretContext(message.endpointId);
    const current = decryptUnlessLost(secretBox, { ciphertext, encryptionKeyId }, context);
    if (current === null) return [];
    if (previousCiphertext === null || previousEncryptionKeyId === null) return [current];
    const former = { ciphertext: previousCiphertext, encryptionKeyId: previousEncryptionKeyId };
    const previous = decryptUnlessLost(secretBox, former, context);
    return previous === null ? [current] : [current, previous];
  }

  /** Returns the request of an attempt: signed, or of text for Slack, where the secret is the URL. */
  function requestOf(
    message: MessageToSend,
    secrets: readonly string[],
    at: number,
  ): Pick<PostOptions, 'url' | 'headers' | 'body'> {
    const { messageId, url, isSlack, appId, appName } = message;
    if (!isSlack) {
      const body = messageBody(message);
      return { url, headers: signedHeaders(secrets, { id: messageId, at, body }), body };
    }
    const text = alertText(message, {
      appName,
      pageUrl: publicUrl === null ? null : `${publicUrl}/console/apps/${appId}/alerts`,
      titleOf,
    });
    return { url: secrets[0] ?? url, headers: {}, body: JSON.stringify({ text }) };
  }

  /** Ends a message without an attempt. */
  async function end({ messageId, attempts }: MessageToSend, problem: string): Promise<WebhookProgress> {
    await failUnsentMessage(sql, messageId, problem);
    return { state: 'failed', attempts, problem, waitMs: 0 };
  }

  /** Sends a message once, and records the attempt. */
  async function attemptOnce(message: MessageToSend, secrets: readonly string[]): Promise<WebhookProgress> {
    const { messageId, endpointId } = message;
    const startedAt = Date.now();
    const signal = asyncLocalStorage.getStore()?.cancellationSignal;
    const result = await postWebhook({
      ...requestOf(message, secrets, startedAt),
      targets: webhookTargets,
      ...(signal === undefined ? {} : { signal }),
    });
    const { problem, retryAfterMs } = result;
    // A shutdown has cut the request off, which says nothing about the endpoint.
    if (problem !== null) throwIfCancelled();
    const attempts = message.attempts + 1;
    const isGone = result.statusCode === GONE;
    const delay = retryDelayMs(
      attempts - message.earlierAttempts,
      { retryAfterMs, random: Math.random() },
      webhookRetryMs,
    );
    const nextInMs = problem === null || isGone ? null : delay;
    const state = problem === null ? 'delivered' : nextInMs === null ? 'failed' : 'retry';
    const deactivated = await recordWebhookAttempt(sql, messageId, {
      ...result,
      response: message.isSlack ? shownOfSlack(result.response) : result.response,
      number: attempts,
      url: message.url,
      secretId: message.secretId,
      earlierAttempts: message.earlierAttempts,
      startedAt,
      nextInMs,
      isGone,
      isProbe: message.isFailing,
      retryMs: webhookRetryMs,
    });
    observeWebhook?.(state === 'retry' ? 'retried' : state);
    if (deactivated !== null) {
      logger.warn({ endpointId, reason: deactivated, msg: 'a webhook endpoint was deactivated' });
    }
    return { state, attempts, problem, waitMs: nextInMs ?? 0 };
  }

  return {
    /**
     * Makes the next attempt at a message if it is due and its endpoint has room. A failed attempt is a result, no failure: the
     * database holds when the next one is due.
     */
    sendMessage: async (id) => {
      const messageId = parseId('webhookMessage', id);
      const message = await loadMessageToSend(sql, messageId);
      if (message === undefined)
        return { state: 'failed', attempts: 0, problem: 'The message does not exist.', waitMs: 0 };
      const { status, attempts, lastProblem: problem, dueInMs } = message;
      if (status !== 'pending' || dueInMs === null) {
        return { state: status === 'delivered' ? 'delivered' : 'failed', attempts, problem, waitMs: 0 };
      }
      if (!message.isActive) return await end(message, 'The endpoint is not active.');
      if (dueInMs > 0) return { state: 'later', attempts, problem, waitMs: dueInMs };
      const secrets = secretsOf(message);
      if (secrets.length === 0) return await end(message, message.isSlack ? LOST.slackUrl : LOST.secret);
      const result = await withRoom(
        message,
        async () => (await probeWait(message)) ?? (await attemptOnce(message, secrets)),
      );
      if ('state' in result) return result;
      await postponeMessage(sql, messageId, result);
      return { state: 'later', attempts, problem, waitMs: result.waitMs };
    },
  };
}
