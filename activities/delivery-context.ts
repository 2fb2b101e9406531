import { createHash, timingSafeEqual } from 'node:crypto';
import { ApplicationFailure } from '@temporalio/activity';
import type { SecretBox } from '../src/config/secret-box.ts';
import { loadDelivery } from '../src/db/deliveries.ts';
import type { StoredDelivery } from '../src/db/deliveries.ts';
import type { EventFacts } from '../src/db/events.ts';
import { findWaitingPayments, loadPayments } from '../src/db/payments.ts';
import type { StoredPayment } from '../src/db/payments.ts';
import type { Sql } from '../src/db/sql.ts';
import { secretContext } from '../src/db/webhook-secrets.ts';
import type { Environment, NormalizedEvent } from '../src/domain/events.ts';
import type { DeliveryId } from '../src/domain/ids.ts';
import { isProviderName, providers } from '../src/providers/index.ts';
import { checkProof } from '../src/providers/proof.ts';
import type { ParseResult, Provider } from '../src/providers/provider.ts';

/** All payments of one user key that wait are evaluated by the delivery that names the user, this many at most. */
const LINKED_PAYMENTS_LIMIT = 200;

/** A delivery of a provider that this version does not know, as after a step back to an earlier one. */
export class UnknownProvider extends Error {
  override readonly name = 'UnknownProvider';
}

/**
 * One go through a delivery. It keeps what a step has read for the steps that follow; a step that runs on its own, in
 * another process and days later, reads again. The rows are the truth either way.
 */
export class DeliveryContext {
  readonly deliveryId: DeliveryId;
  readonly #sql: Sql;
  #stored: StoredDelivery | undefined;
  #parsed: ParseResult | undefined;
  #payments: readonly StoredPayment[] | undefined;

  constructor(sql: Sql, deliveryId: DeliveryId) {
    this.#sql = sql;
    this.deliveryId = deliveryId;
  }

  async stored(): Promise<StoredDelivery> {
    this.#stored ??= await loadDelivery(this.#sql, this.deliveryId);
    if (this.#stored === undefined) {
      throw ApplicationFailure.nonRetryable(
        `no accepted delivery ${this.deliveryId} in this database`,
        'UnknownDelivery',
      );
    }
    return this.#stored;
  }

  async provider(): Promise<Provider> {
    const { provider } = await this.stored();
    if (!isProviderName(provider)) throw new UnknownProvider(`this version has no provider ${provider}`);
    return providers[provider];
  }

  /**
   * Whether the stored bytes are proved by the secret version that accepted them, as of the time of receipt. If not,
   * the row was changed after it was accepted.
   */
  async isProved(secretBox: SecretBox): Promise<boolean> {
    const { secret, appId, provider, body, proof, receivedAt } = await this.stored();
    const opened = secretBox.decrypt(
      Buffer.from(secret.ciphertext),
      secret.encryptionKeyId,
      secretContext(appId, provider),
    );
    const request = { body: Buffer.from(body), receivedAt };
    return checkProof(await this.provider(), proof, request, opened, secretBox);
  }

  /** Whether the stored body has the hash that was kept with it. */
  async isWhole(): Promise<boolean> {
    const { body, bodySha256 } = await this.stored();
    return timingSafeEqual(createHash('sha256').update(body).digest(), bodySha256);
  }

  async parsed(): Promise<ParseResult> {
    this.#parsed ??= (await this.provider()).parse(Buffer.from((await this.stored()).body));
    return this.#parsed;
  }

  /**
   * The event of a body that has one. Only for steps after `normalize`. What a self-test sent is a test event of the
   * sandbox, whatever it says; the database refuses anything else.
   */
  async event(): Promise<{ event: NormalizedEvent; environment: Environment }> {
    const parsed = await this.parsed();
    if (parsed.outcome === 'failed' || parsed.event === null) throw new Error('the body has no event');
    const { event } = parsed;
    const { isSelfTest, secret } = await this.stored();
    if (isSelfTest) return { event: { ...event, kind: 'test' }, environment: 'sandbox' };
    return { event, environment: event.environment ?? secret.environment };
  }

  /** What the event tells, as it is committed. Only for a body that has an event. */
  async facts(): Promise<EventFacts> {
    const { appId, eventId, provider: source, receivedAt } = await this.stored();
    return { deliveryId: this.deliveryId, eventId, appId, source, receivedAt, ...(await this.event()) };
  }

  async payments(): Promise<readonly StoredPayment[]> {
    this.#payments ??= await this.#loadAffectedPayments();
    return this.#payments;
  }

  async #loadAffectedPayments(): Promise<StoredPayment[]> {
    const sql = this.#sql;
    const { appId } = await this.stored();
    const { event, environment } = await this.event();
    const store = event.payment?.store ?? event.adjustment?.store ?? event.paymentAliases[0]?.store;
    const refs = [
      event.payment?.ref,
      event.adjustment?.paymentRef,
      ...event.paymentAliases.map((a) => a.paymentRef),
    ];
    const known = refs.filter((ref) => ref !== undefined);
    const named =
      store === undefined ? [] : await loadPayments(sql, { appId, environment, store, refs: known });
    if (event.userLinks.length === 0) return named;
    const linked = await findWaitingPayments(
      sql,
      appId,
      { customerUserIds: [], userKeys: event.userLinks.map((link) => link.key) },
      null,
      LINKED_PAYMENTS_LIMIT,
    );
    const missing = linked.filter((id) => named.every((payment) => payment.paymentId !== id));
    return missing.length === 0 ? named : [...named, ...(await loadPayments(sql, { paymentIds: missing }))];
  }
}
