import { createHmac } from 'node:crypto';
import type { MessageType } from '../domain/outgoing-webhooks.ts';

/** How a secret begins in text. The rest is its bytes in base64. */
const SECRET_PREFIX = 'whsec_';

/** Returns the headers of an attempt, as Standard Webhooks 1.0.0 defines them: one signature for each secret, the current first. */
export function signedHeaders(
  secrets: readonly string[],
  { id, at, body }: { readonly id: string; readonly at: number; readonly body: string },
): Readonly<Record<string, string>> {
  const timestamp = String(Math.floor(at / 1000));
  const signatures = secrets.map((secret) => {
    const key = Buffer.from(secret.slice(SECRET_PREFIX.length), 'base64');
    return `v1,${createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64')}`;
  });
  return {
    'webhook-id': id,
    'webhook-timestamp': timestamp,
    'webhook-signature': signatures.join(' '),
  };
}

/** Returns the body of a message. It has the same bytes at each attempt. */
export function messageBody(message: {
  readonly type: MessageType;
  /** When the fact was written, epoch ms. */
  readonly createdAt: number;
  readonly data: Readonly<Record<string, unknown>>;
}): string {
  const { type, createdAt, data } = message;
  return JSON.stringify({ type, timestamp: new Date(createdAt).toISOString(), data });
}
