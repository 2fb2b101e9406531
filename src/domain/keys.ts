/**
 * The format of API keys: a prefix that names the kind, 43 base62 characters for 256 random bits, and six for the CRC32
 * of everything before them. So a scanner can recognize a leaked key offline, and a mistyped key is refused without a
 * query.
 */
export const KEY_PREFIXES = { account: 'tri_sk_live_', sdk: 'pk_live_', sdk_test: 'pk_test_' } as const;

export type KeyKind = keyof typeof KEY_PREFIXES;

/** The kinds of SDK keys. What a test key reports neither counts nor earns. */
export const SDK_KEY_KINDS = ['live', 'test'] as const;
export type SdkKeyKind = (typeof SDK_KEY_KINDS)[number];

/** Number of random bytes in a key. */
export const KEY_RANDOM_BYTES = 32;

const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const RANDOM_LENGTH = 43;
const CHECKSUM_LENGTH = 6;
const BODY = new RegExp(`^[0-9A-Za-z]{${RANDOM_LENGTH + CHECKSUM_LENGTH}}$`);

/** Returns the CRC32 of ASCII text, as used by zip and PNG. */
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

/** Formats 32 random bytes as a key. Throws a RangeError for any other number of bytes. */
export function formatKey(kind: KeyKind, random: Uint8Array): string {
  if (random.length !== KEY_RANDOM_BYTES)
    throw new RangeError(`a key needs ${KEY_RANDOM_BYTES} random bytes`);
  let value = 0n;
  for (const byte of random) value = value * 256n + BigInt(byte);
  const text = KEY_PREFIXES[kind] + base62(value, RANDOM_LENGTH);
  return text + checksum(text);
}

/** Returns the kind of key by its format and checksum, or null when `text` cannot be a key of this service. */
export function keyKind(text: string): KeyKind | null {
  const kinds = Object.keys(KEY_PREFIXES) as KeyKind[];
  const kind = kinds.find((one) => text.startsWith(KEY_PREFIXES[one]));
  if (kind === undefined || !BODY.test(text.slice(KEY_PREFIXES[kind].length))) return null;
  return checksum(text.slice(0, -CHECKSUM_LENGTH)) === text.slice(-CHECKSUM_LENGTH) ? kind : null;
}

/** Returns the form of a key for display: its prefix, and the first and last four characters of the rest. */
export function displayKey(kind: KeyKind, key: string): string {
  const prefix = KEY_PREFIXES[kind];
  return `${key.slice(0, prefix.length + 4)}…${key.slice(-4)}`;
}

/** Permissions of an account key, as named in the API. */
export const PERMISSIONS = ['read', 'write', 'setup', 'payout'] as const;

export type Permission = (typeof PERMISSIONS)[number];

/** Permissions of a key that is created without a list. */
export const DEFAULT_PERMISSIONS: readonly Permission[] = ['read', 'write'];

/** Default time that an old key or secret stays valid after rotation, seconds. */
export const DEFAULT_GRACE_SECONDS = 86_400;
