/** The most passkeys that a member has at a time. */
export const MOST_PASSKEYS = 20;
/** How long a challenge can be answered, ms. */
export const PASSKEY_CHALLENGE_MS = 5 * 60_000;
