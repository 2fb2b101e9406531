import { hmacSha256 } from '../hashing.ts';
import type { SignedRequest } from '../provider.ts';
import { includesSignature, MAX_HEADER_LENGTH } from './signatures.ts';

/** A provider's format of a signature that covers a time, such as `t=1700000000,v1=<hex>` or `ts=1700000000;h1=<hex>`. */
export interface TimestampedHmacScheme {
  /** Lower case. */
  readonly header: string;
  readonly separator: ',' | ';';
  readonly timeKey: string;
  /** Elements with any other key, such as those of a future scheme, are ignored. */
  readonly signatureKey: string;
  /** The character between the time and the raw body in the signed bytes. */
  readonly joint: '.' | ':';
  readonly toleranceMs: number;
  /** The unit of the age: 1000 counts whole seconds (300.9 s are 300), 1 counts milliseconds. */
  readonly clockStepMs: 1 | 1000;
}

interface TimestampedSignatures {
  /** Unix seconds, exactly as signed. */
  readonly time: string;
  readonly signatures: readonly string[];
}

/** Whole seconds since the epoch. Twelve digits last for 31,000 years. */
export const UNIX_SECONDS = /^\d{1,12}$/;

/** Parses the header. Null unless it has exactly one time in whole seconds and at least one signature. */
export function parseTimestampedHeader(
  header: string,
  scheme: Pick<TimestampedHmacScheme, 'separator' | 'timeKey' | 'signatureKey'>,
): TimestampedSignatures | null {
  const times: string[] = [];
  const signatures: string[] = [];
  for (const element of header.split(scheme.separator)) {
    const equals = element.indexOf('=');
    const key = element.slice(0, Math.max(equals, 0)).trim();
    const value = element.slice(equals + 1);
    if (key === scheme.timeKey) times.push(value);
    else if (key === scheme.signatureKey) signatures.push(value);
  }
  const [time, ...otherTimes] = times;
  // With two times it is unclear which one was signed. Node joins a header that was sent twice, so it has two times.
  if (time === undefined || otherTimes.length > 0 || !UNIX_SECONDS.test(time)) return null;
  return signatures.length === 0 ? null : { time, signatures };
}

function readTimestamped(
  request: SignedRequest,
  scheme: TimestampedHmacScheme,
): TimestampedSignatures | null {
  const header = request.headers[scheme.header];
  return typeof header === 'string' && header.length <= MAX_HEADER_LENGTH
    ? parseTimestampedHeader(header, scheme)
    : null;
}

/** Returns the time that the header states, epoch ms; null where it cannot be read. It is not verified. */
export function timestampedHmacTime(request: SignedRequest, scheme: TimestampedHmacScheme): number | null {
  const parsed = readTimestamped(request, scheme);
  return parsed === null ? null : Number(parsed.time) * 1000;
}

function isRecent(time: string, receivedAt: number, scheme: TimestampedHmacScheme): boolean {
  const now = Math.floor(receivedAt / scheme.clockStepMs) * scheme.clockStepMs;
  // False where the clock is NaN.
  return now - Number(time) * 1000 <= scheme.toleranceMs;
}

/** Returns whether the time that the header states is not older than the tolerance. False if it cannot be read. */
export function isTimestampedHmacOnTime(request: SignedRequest, scheme: TimestampedHmacScheme): boolean {
  const parsed = readTimestamped(request, scheme);
  return parsed !== null && isRecent(parsed.time, request.receivedAt, scheme);
}

/**
 * Returns whether one of the header's signatures is the HMAC-SHA256 of time, joint and raw body under `secret`, and the
 * time is not older than the tolerance. A time in the future passes, as in the providers' own libraries: it is signed too,
 * and a slow clock here must not lose money. False for a header of more than 1 KiB or ten signatures. Never rejects.
 */
export async function verifyTimestampedHmac(
  request: SignedRequest,
  secret: string,
  scheme: TimestampedHmacScheme,
): Promise<boolean> {
  const parsed = readTimestamped(request, scheme);
  if (parsed === null || secret.trim() === '') return false;
  // Before the HMAC, which costs time for each byte of the body.
  if (!isRecent(parsed.time, request.receivedAt, scheme)) return false;
  const expected = await hmacSha256(secret, `${parsed.time}${scheme.joint}`, request.body);
  return includesSignature(parsed.signatures, expected.toString('hex'));
}
