/** The most passkeys that a member has at a time. */
export const MOST_PASSKEYS = 20;
/** How long a challenge can be answered, ms. */
export const PASSKEY_CHALLENGE_MS = 5 * 60_000;
/** The fewest and the most bytes of the id of a credential: those of WebAuthn. */
export const CREDENTIAL_ID_BYTES = { least: 16, most: 1_023 };
/** The most bytes of the public key of a credential, as COSE has it. Those of authenticators have a few hundred. */
export const MOST_PUBLIC_KEY_BYTES = 2_048;
