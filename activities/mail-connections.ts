import type { AccountId } from '../src/domain/ids.ts';

/** How long a mail waits without a connection, ms: at least, and more with each one of its account that was turned away, up to the most. */
const BUSY_MS = { least: 500, each: 250, most: 10_000 };

/** The connections of a process to the mail server. One account leaves one to the others, so that a slow server delays no other account's mails for long. */
export class MailConnections {
  readonly #most: number;
  readonly #accounts = new Map<AccountId, { used: number; turnedAway: number }>();
  #used = 0;

  /** `most` connections at a time, at least two. */
  constructor(most: number) {
    this.#most = most;
  }

  /** Takes a connection. Returns 0, or how long to wait before asking again if there is none for the account, ms. */
  take(accountId: AccountId): number {
    const share = this.#accounts.get(accountId) ?? { used: 0, turnedAway: 0 };
    this.#accounts.set(accountId, share);
    if (this.#used >= this.#most || share.used >= this.#most - 1) {
      share.turnedAway += 1;
      const spread = Math.min(BUSY_MS.most, BUSY_MS.each * share.turnedAway);
      return Math.round(BUSY_MS.least + spread * Math.random());
    }
    share.used += 1;
    this.#used += 1;
    return 0;
  }

  /** Gives a connection back that the account has taken. */
  release(accountId: AccountId): void {
    const share = this.#accounts.get(accountId);
    if (share === undefined) return;
    this.#used -= 1;
    share.used -= 1;
    share.turnedAway = 0;
    if (share.used === 0) this.#accounts.delete(accountId);
  }
}
