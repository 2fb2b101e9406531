import type { StoredDelivery } from '../db/deliveries.ts';
import type { WebhookSecretRow } from '../db/webhook-secrets.ts';
import type { AppId, DeliveryId } from '../domain/ids.ts';

/** The most apps whose erasures are remembered. Forgetting them costs another statement per webhook. */
const MOST_APPS = 10_000;
/** The most apps and providers whose secrets are remembered. */
const MOST_SECRETS = 1_000;

/**
 * What a process remembers of webhooks in order not to read it again: the valid secrets of apps, and deliveries that were
 * just stored. The database decides all the same: it stores a delivery only under secrets that are still current
 * (`acceptDelivery`), so a secret that was revoked or replaced in any process is not accepted anywhere from then on.
 */
export class WebhookCache {
  readonly #secrets = new Map<string, readonly WebhookSecretRow[]>();
  readonly #deliveries = new Map<DeliveryId, StoredDelivery>();
  readonly #appsWithErasures = new Set<AppId>();

  /** Returns the secrets that were valid when they were read. Undefined if none are remembered. */
  secretsOf(appId: AppId, provider: string): readonly WebhookSecretRow[] | undefined {
    return this.#secrets.get(`${appId} ${provider}`);
  }

  /** Remembers the secrets of an app and provider, if one of them is the current one. Otherwise forgets them. */
  rememberSecrets(appId: AppId, provider: string, secrets: readonly WebhookSecretRow[]): void {
    const key = `${appId} ${provider}`;
    this.#secrets.delete(key);
    if (!secrets.some(({ isCurrent }) => isCurrent)) return;
    // The one that was read longest ago is the first.
    const [oldest] = this.#secrets.keys();
    if (this.#secrets.size >= MOST_SECRETS && oldest !== undefined) this.#secrets.delete(oldest);
    this.#secrets.set(key, secrets);
  }

  /** Whether an identifier of the app is known to be erased. Then each body is compared with the erased ones. */
  hasErasedUsers(appId: AppId): boolean {
    return this.#appsWithErasures.has(appId);
  }

  /** Remembers that an identifier of the app is erased. That never ends. */
  rememberErasedUsers(appId: AppId): void {
    if (this.#appsWithErasures.size >= MOST_APPS) this.#appsWithErasures.clear();
    this.#appsWithErasures.add(appId);
  }

  /** Keeps a delivery that was just stored while `work` runs, unless an activity takes it. */
  async keeping<T>(delivery: StoredDelivery | null, work: () => Promise<T>): Promise<T> {
    if (delivery === null) return await work();
    this.#deliveries.set(delivery.id, delivery);
    try {
      return await work();
    } finally {
      this.#deliveries.delete(delivery.id);
    }
  }

  /** Returns a kept delivery once. A second attempt reads the rows. */
  take(deliveryId: DeliveryId): StoredDelivery | undefined {
    const delivery = this.#deliveries.get(deliveryId);
    this.#deliveries.delete(deliveryId);
    return delivery;
  }
}
