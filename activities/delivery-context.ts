import { timingSafeEqual } from 'node:crypto';
import { ApplicationFailure } from '@temporalio/activity';
import { SecretUnreadable } from '../src/config/secret-box.ts';
import type { SecretBox } from '../src/config/secret-box.ts';
import { loadDelivery } from '../src/db/deliveries.ts';
import type { StoredDelivery } from '../src/db/deliveries.ts';
import type { EventFacts } from '../src/db/event-details.ts';
import { pseudonymize } from '../src/db/erased-identifiers.ts';
import { nameUsersOfInvoices } from '../src/db/invoice-users.ts';
import { bindSignedInUsers, findUsersWithKeys } from '../src/db/signed-in-users.ts';
import type { SignedInUser } from '../src/db/signed-in-users.ts';
import { findLinkedPayments, loadCommonPayment, loadPayments } from '../src/db/payments.ts';
import type { StoredPayment } from '../src/db/payments.ts';
import type { Sql } from '../src/db/sql.ts';
import { findActiveWebhookSecrets, openWebhookSecret } from '../src/db/webhook-secrets.ts';
import type { WebhookSecretRow } from '../src/db/webhook-secrets.ts';
import type { Environment, NormalizedEvent } from '../src/domain/events.ts';
import type { BindingId, DeliveryId, PaymentId } from '../src/domain/ids.ts';
import { isProviderName, providers } from '../src/providers/index.ts';
import { sha256 } from '../src/providers/hashing.ts';
import { checkProof, checkReconciliation, keyIdOf } from '../src/providers/proof.ts';
import type { WebhookProof } from '../src/providers/proof.ts';
import type { ParseResult, Provider } from '../src/providers/provider.ts';

/** A delivery that names the user of a key evaluates at most this many waiting payments of that key; the relay the others. */
const LINKED_PAYMENTS_LIMIT = 50;

/** The delivery's provider is unknown to this version, as after a downgrade. */
export class UnknownProvider extends Error {
  override readonly name = 'UnknownProvider';
}

/** Why nobody can check a delivery any more, and what repairs it. */
const LOST = {
  body: 'the stored request cannot be decrypted any more: have the provider send the event again',
  proof:
    'the key that proves the stored request is lost: set the webhook secret again, and have the provider send the event again',
  secret:
    'the webhook secret that accepted the request cannot be decrypted any more: set the same secret again and reprocess the delivery, or have the provider send the event again',
};

function falseIfUnreadable(error: unknown): false {
  if (error instanceof SecretUnreadable) return false;
  throw error;
}

/** Whether an operator made a body. A proof with a key that the service does not have proves nothing: anybody can make one. */
function isProvedByOperator(...claim: Parameters<typeof checkReconciliation>): boolean {
  try {
    return checkReconciliation(...claim);
  } catch (error) {
    return falseIfUnreadable(error);
  }
}

/**
 * What the steps of one delivery share. It caches what one step has read for the next ones; a step that runs alone, in
 * another process or days later, reads it again. The rows are authoritative in both cases.
 */
export class DeliveryContext {
  readonly deliveryId: DeliveryId;
  /** The payment that this process recorded for the event. Null if it recorded none. */
  recordedPayment: PaymentId | null = null;
  readonly #sql: Sql;
  readonly #secretBox: SecretBox;
  #event: NormalizedEvent | undefined;
  #stored: StoredDelivery | undefined;
  #parsed: ParseResult | undefined;
  #payments: readonly StoredPayment[] | undefined;
  #linked: readonly PaymentId[] | undefined;

  /** `stored` is the delivery, if the caller has it. */
  constructor(sql: Sql, secretBox: SecretBox, deliveryId: DeliveryId, stored?: StoredDelivery) {
    this.#stored = stored;
    this.#secretBox = secretBox;
    this.#sql = sql;
    this.deliveryId = deliveryId;
  }

  /** The delivery, if it was read already. */
  get known(): StoredDelivery | undefined {
    return this.#stored;
  }

  /** Returns the accepted delivery. Throws a failure that is not retried when the database has none. */
  async stored(): Promise<StoredDelivery> {
    this.#stored ??= await loadDelivery(this.#sql, this.#secretBox, this.deliveryId);
    if (this.#stored === undefined) {
      throw ApplicationFailure.nonRetryable(
        `no accepted delivery ${this.deliveryId} in this database`,
        'UnknownDelivery',
      );
    }
    return this.#stored;
  }

  /** Whether the delivery still has its body. Retention removes old bodies, and erasure those of a person. */
  async hasBody(): Promise<boolean> {
    this.#stored ??= await loadDelivery(this.#sql, this.#secretBox, this.deliveryId);
    return this.#stored?.hasBody === true;
  }

  /** Throws `UnknownProvider`. */
  async provider(): Promise<Provider> {
    const { provider } = await this.stored();
    if (!isProviderName(provider)) throw new UnknownProvider(`this version has no provider ${provider}`);
    return providers[provider];
  }

  /**
   * Whether the stored signature still matches the stored bytes, under the secret version that accepted them and as of
   * the time of receipt. If not, the row was changed after it was accepted. A body that the operator made from an export has
   * no signature: it is proved by the keys of the secret box. If the secret cannot be read, a valid one proves the request as well: the
   * founder may have set the same secret again. Throws `SecretUnreadable` if the key of the secret or of the proof of a webhook is
   * missing; if it is lost, the message says what repairs the delivery.
   */
  async isProved(): Promise<boolean> {
    const secretBox = this.#secretBox;
    const { secret, appId, provider, body, isBodyLost, proof } = await this.stored();
    if (isBodyLost) throw new SecretUnreadable(LOST.body, { isLost: true });
    if (proof.kind === 'reconciliation') {
      return isProvedByOperator(proof, { appId, provider, bodySha256: await sha256(body) }, secretBox);
    }
    try {
      return await this.#isProvedWith(secret, proof);
    } catch (error) {
      if (!(error instanceof SecretUnreadable)) throw error;
      const valid = (await findActiveWebhookSecrets(this.#sql, appId, provider, Date.now())) ?? [];
      for (const other of valid) {
        if (await this.#isProvedWith(other, proof).catch(falseIfUnreadable)) return true;
      }
      if (!error.isLost) throw error;
      const keyId = keyIdOf(proof);
      const isProofLost = keyId !== null && !secretBox.keyIds.includes(keyId);
      throw new SecretUnreadable(isProofLost ? LOST.proof : LOST.secret, { isLost: true, cause: error });
    }
  }

  async #isProvedWith(
    secret: Pick<WebhookSecretRow, 'ciphertext' | 'encryptionKeyId'>,
    proof: WebhookProof,
  ): Promise<boolean> {
    const { appId, provider, body, receivedAt } = await this.stored();
    const opened = openWebhookSecret(this.#secretBox, { appId, provider }, secret);
    const request = { body: Buffer.from(body), receivedAt };
    return await checkProof(await this.provider(), proof, request, opened, this.#secretBox);
  }

  /** Whether the stored body still has its stored SHA-256. */
  async isWhole(): Promise<boolean> {
    const { body, bodySha256 } = await this.stored();
    return timingSafeEqual(await sha256(body), bodySha256);
  }

  async parsed(): Promise<ParseResult> {
    if (this.#parsed === undefined) {
      const { body, isBodyLost, stripeAccounts } = await this.stored();
      if (isBodyLost) throw new SecretUnreadable(LOST.body, { isLost: true });
      this.#parsed = (await this.provider()).parse(Buffer.from(body), stripeAccounts);
    }
    return this.#parsed;
  }

  /**
   * Returns the event of the body; throws when it has none, so call it only after `normalize`. A delivery of the
   * self-test is always a test event of the sandbox; the database rejects anything else.
   */
  async event(): Promise<{ event: NormalizedEvent; environment: Environment }> {
    const parsed = await this.parsed();
    if (parsed.outcome === 'failed' || parsed.event === null) throw new Error('the body has no event');
    const { isSelfTest, secret, namesErased } = await this.stored();
    if (this.#event === undefined && namesErased) await this.pseudonymize();
    const event = this.#event ?? parsed.event;
    if (isSelfTest) return { event: { ...event, kind: 'test' }, environment: 'sandbox' };
    return { event, environment: event.environment ?? secret.environment };
  }

  /** Whether identifiers of the event were replaced by pseudonyms. */
  get isPseudonymized(): boolean {
    return this.#event !== undefined;
  }

  /** Returns the outcome of a delivery whose body was removed; null for any other. Only a delivery with its outcome loses it. */
  async outcomeWithoutBody<T>(outcomeOf: (delivery: StoredDelivery) => T): Promise<T | null> {
    const delivery = await this.stored();
    return delivery.hasBody ? null : outcomeOf(delivery);
  }

  /** Replaces the identifiers of erased persons, if the stored body names such a person in clear. */
  async replaceErased(): Promise<void> {
    if (!this.isPseudonymized) await this.pseudonymize();
  }

  /** Replaces the identifiers of erased persons in the event by their pseudonyms. */
  async pseudonymize(): Promise<void> {
    const parsed = await this.parsed();
    if (parsed.outcome === 'failed' || parsed.event === null) return;
    const { appId, provider: source } = await this.stored();
    this.#event = await pseudonymize(this.#sql, this.#secretBox, { appId, source, event: parsed.event });
  }

  /**
   * Returns the event's facts as they are committed. Throws when the body has no event. An event of an export did not just
   * arrive: it counts as received when it occurred, so that its payment is attributed as if its webhook had arrived then.
   */
  async facts(): Promise<EventFacts> {
    const { appId, eventId, provider: source, receivedAt, proof } = await this.stored();
    const read = await this.event();
    const isReconciled = proof.kind === 'reconciliation';
    return {
      deliveryId: this.deliveryId,
      eventId,
      appId,
      source,
      receivedAt: isReconciled ? Math.min(receivedAt, read.event.occurredAt) : receivedAt,
      isReconciled,
      ...read,
    };
  }

  /** Returns the payments that the event names by a reference, as of the first call after somebody was bound. */
  async payments(): Promise<readonly StoredPayment[]> {
    this.#payments ??= await this.#loadNamedPayments();
    return this.#payments;
  }

  /** The same, read again: somebody was bound since. */
  async paymentsNow(): Promise<readonly StoredPayment[]> {
    this.#payments = await this.#loadNamedPayments();
    return this.#payments;
  }

  /**
   * Returns why the event does not count; null if it does. A refund or dispute that was ignored counts where its payment is
   * stored: a setting that was changed since then does not keep what was refunded.
   */
  async ignoredReason(): Promise<string | null> {
    const parsed = await this.parsed();
    if (parsed.outcome !== 'ignored') return null;
    const isOfStoredPayment =
      (parsed.event?.adjustment ?? null) !== null && (await this.payments()).length > 0;
    return isOfStoredPayment ? null : parsed.reason;
  }

  /**
   * Returns the users whom the event names with a key that may be bound in their place, and those of its payments that have such a key: one
   * event of a payment may name the user, and another one the key.
   */
  async signedInUsers(): Promise<readonly SignedInUser[]> {
    const { event, environment } = await this.event();
    if (environment === 'sandbox') return [];
    const linked = event.userLinks.map(({ key, customerUserId }) => ({ userKey: key, customerUserId }));
    const payments = await this.payments();
    const boundKeys = payments
      .flatMap(({ candidates }) => candidates.filter(({ via }) => via === 'bound_key'))
      .map(({ customerUserId: key }) => key);
    if (event.payment !== null && boundKeys.length === 0) return linked;
    const named = event.userKeys.flatMap((userKey) =>
      event.userIds.map((customerUserId) => ({ userKey, customerUserId })),
    );
    const ids = payments.map(({ paymentId }) => paymentId);
    return [...linked, ...named, ...(await findUsersWithKeys(this.#sql, ids, boundKeys))];
  }

  /**
   * Binds the users of `signedInUsers`, and returns the bindings that are not healed. Who was bound just now is among those to whom the
   * payments may belong, so they are read again.
   */
  async bindSignedInUsers(): Promise<readonly BindingId[]> {
    const { appId } = await this.stored();
    const bindings = await bindSignedInUsers(this.#sql, appId, await this.signedInUsers());
    if (bindings.length > 0) this.#payments = undefined;
    return bindings;
  }

  /** Returns other payments that wait for a user or a code that the event ties to one of their keys, as of the first call. */
  async linkedPayments(): Promise<readonly PaymentId[]> {
    this.#linked ??= await this.#findLinkedPayments();
    return this.#linked;
  }

  async #findLinkedPayments(): Promise<PaymentId[]> {
    const { appId, provider } = await this.stored();
    const { event } = await this.event();
    const keys = [
      ...event.userLinks.map((link) => link.key),
      ...event.subscriptionCodes.map((code) => code.userKey),
    ];
    if (keys.length === 0) return [];
    const linked = await findLinkedPayments(this.#sql, appId, provider, keys, LINKED_PAYMENTS_LIMIT);
    const named = await this.payments();
    return linked.filter((id) => named.every((payment) => payment.paymentId !== id));
  }

  async #loadNamedPayments(): Promise<StoredPayment[]> {
    const sql = this.#sql;
    const { appId } = await this.stored();
    const { event, environment } = await this.event();
    const store =
      event.payment?.store ??
      event.adjustment?.store ??
      event.paymentAliases[0]?.store ??
      event.codes[0]?.store;
    const refs = [
      event.payment?.ref,
      event.adjustment?.paymentRef,
      ...event.paymentAliases.map((a) => a.paymentRef),
      ...event.codes.map((code) => code.paymentRef),
    ];
    const known = refs.filter((ref) => ref !== undefined);
    if (this.recordedPayment !== null && known.length === 1) {
      const payment = await loadCommonPayment(sql, this.recordedPayment);
      if (payment !== undefined) return [payment];
    }
    if (store === undefined) return [];
    if (store === 'stripe') await nameUsersOfInvoices(sql, appId, environment, known);
    return await loadPayments(sql, { appId, environment, store, refs: known });
  }
}
