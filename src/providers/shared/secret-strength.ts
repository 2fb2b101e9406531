/** Fewer different characters are no random token, whatever its length is. */
const LEAST_DIFFERENT = 8;
const LEAST_TOKEN_LENGTH = 24;
/**
 * Of a signing secret behind its prefix. Providers generate 32 and more; a shorter one was cut off. It is never sent, so it
 * can only be guessed one request at a time.
 */
const LEAST_KEY_LENGTH = 10;
const LEAST_DIFFERENT_IN_KEY = 5;
/** The standard of the Svix scheme asks for 24 to 64 bytes. */
const LEAST_KEY_BYTES = 16;

/** Returns how many different bytes a secret has. */
function differentBytes(secret: string | Uint8Array): number {
  return new Set(Buffer.from(secret)).size;
}

/** Returns what is wrong with a static token, which anybody can guess at the webhook's URL, or null. */
export function weakTokenProblem(token: string): string | null {
  return token.length < LEAST_TOKEN_LENGTH || differentBytes(token) < LEAST_DIFFERENT
    ? `The token is easy to guess. Use at least ${LEAST_TOKEN_LENGTH} random characters, or send no secret to have one generated.`
    : null;
}

/** Returns what is wrong with the key of a signing secret, which is given as characters or as bytes, or null. */
export function weakKeyProblem(key: string | Uint8Array, title: string): string | null {
  const least = typeof key === 'string' ? LEAST_KEY_LENGTH : LEAST_KEY_BYTES;
  return key.length < least || differentBytes(key) < LEAST_DIFFERENT_IN_KEY
    ? `The signing secret is too short to be one of ${title}. Copy the whole secret from there.`
    : null;
}
