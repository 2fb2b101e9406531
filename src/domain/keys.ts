/**
 * The form of the keys that callers hold: a prefix that names the kind, 43 base62 characters that are 256 random bits,
 * and six that are the CRC32 of all before them. A scanner can recognise a leaked key without asking anybody, and a
 * mistyped one is refused without a look-up.
 */
export const KEY_PREFIXES = { account: 'tri_sk_live_', sdk: 'pk_live_' } as const;

export type KeyKind = keyof typeof KEY_PREFIXES;

/** How many random bytes a key is made of. */
export const KEY_RANDOM_BYTES = 32;

const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const RANDOM_LENGTH = 43;
const CHECKSUM_LENGTH = 6;
const BODY = new RegExp(`^[0-9A-Za-z]{${RANDOM_LENGTH + CHECKSUM_LENGTH}}$`);

/** CRC32 as zip and PNG use it, of a text of ASCII characters. */
export function crc32(ascii: string): number {
  let crc = 0xffffffff;
  for (let index = 0; index < ascii.length; index += 1) {
    crc ^= ascii.charCodeAt(index);
    for (let bit = 0; bit < 8; bit += 1) crc = (crc >>> 1) ^ (crc & 1 ? 0xedb88320 : 0);
  }
  return (crc ^ 0xffffffff) >>> 0;
}

function base62(value: bigint, length: number): string {
  let text = '';
  for (let rest = value; text.length < length; rest /= 62n) text = ALPHABET.charAt(Number(rest % 62n)) + text;
  return text;
}

function checksum(text: string): string {
  return base62(BigInt(crc32(text)), CHECKSUM_LENGTH);
}

/** The key that 32 random bytes make. */
export function formatKey(kind: KeyKind, random: Uint8Array): string {
  if (random.length !== KEY_RANDOM_BYTES)
    throw new RangeError(`a key needs ${KEY_RANDOM_BYTES} random bytes`);
  let value = 0n;
  for (const byte of random) value = value * 256n + BigInt(byte);
  const text = KEY_PREFIXES[kind] + base62(value, RANDOM_LENGTH);
  return text + checksum(text);
}

/** What kind of key `text` is by its form and checksum, or null when it can't be one that was ever given out. */
export function keyKind(text: string): KeyKind | null {
  const kind: KeyKind = text.startsWith(KEY_PREFIXES.account) ? 'account' : 'sdk';
  const prefix = KEY_PREFIXES[kind];
  if (!text.startsWith(prefix) || !BODY.test(text.slice(prefix.length))) return null;
  return checksum(text.slice(0, -CHECKSUM_LENGTH)) === text.slice(-CHECKSUM_LENGTH) ? kind : null;
}

/** A key as people may see it later: its kind, and the first and last four characters of the rest. */
export function displayKey(kind: KeyKind, key: string): string {
  const prefix = KEY_PREFIXES[kind];
  return `${key.slice(0, prefix.length + 4)}…${key.slice(-4)}`;
}

/** What an account key may do; the names are the contract's. */
export const PERMISSIONS = ['read', 'write', 'setup', 'payout'] as const;

export type Permission = (typeof PERMISSIONS)[number];

/** What a key may do when nobody says otherwise. */
export const DEFAULT_PERMISSIONS: readonly Permission[] = ['read', 'write'];

/** How long an old key or secret stays valid beside its successor when nobody says otherwise, seconds. */
export const DEFAULT_GRACE_SECONDS = 86_400;
