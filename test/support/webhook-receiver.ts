import { createHmac } from 'node:crypto';
import { createServer } from 'node:http';
import type { RequestListener } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { SecureContextOptions } from 'node:tls';

/** A message as a receiver gets it. */
export interface ReceivedMessage {
  readonly id: string;
  readonly type: string;
  readonly timestamp: string;
  readonly data: Readonly<Record<string, unknown>>;
  /** Whether one of its signatures is that of the receiver's secret. */
  readonly isSigned: boolean;
  readonly signatures: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
}

/** A receiver of outgoing webhooks on the loopback address. It verifies signatures as docs/webhooks-out.md describes. */
export interface WebhookReceiver {
  readonly url: string;
  readonly received: ReceivedMessage[];
  /** The secret that it verifies with. */
  secret: string;
  /** The status that it responds with; null for no response. */
  status: number | null;
  readonly close: () => Promise<void>;
}

/** Whether a request has a signature of the secret, as Standard Webhooks defines it. */
function isSignedWith(secret: string, headers: Readonly<Record<string, unknown>>, body: string): boolean {
  const { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': signatures } = headers;
  const key = Buffer.from(secret.replace(/^whsec_/, ''), 'base64');
  const expected = createHmac('sha256', key)
    .update(`${String(id)}.${String(timestamp)}.${body}`)
    .digest('base64');
  const isRecent = Math.abs(Date.now() / 1000 - Number(timestamp)) < 300;
  return isRecent && String(signatures).split(' ').includes(`v1,${expected}`);
}

/** Starts a receiver, with TLS if a certificate is given. */
export async function startReceiver(tls?: SecureContextOptions): Promise<WebhookReceiver> {
  const received: ReceivedMessage[] = [];
  const receive: RequestListener = (request, response) => {
    const parts: Buffer[] = [];
    request.on('data', (part: Buffer) => parts.push(part));
    request.on('end', () => {
      const body = Buffer.concat(parts).toString('utf8');
      received.push({
        ...(JSON.parse(body) as Pick<ReceivedMessage, 'type' | 'timestamp' | 'data'>),
        id: String(request.headers['webhook-id']),
        isSigned: isSignedWith(receiver.secret, request.headers, body),
        signatures: String(request.headers['webhook-signature']).split(' ').length,
        headers: request.headers,
      });
      if (receiver.status !== null) response.writeHead(receiver.status).end(`status ${receiver.status}`);
    });
  };
  const server = tls === undefined ? createServer(receive) : createTlsServer(tls, receive);
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  const base = tls === undefined ? 'http://127.0.0.1' : 'https://localhost';
  const receiver: WebhookReceiver = {
    url: `${base}:${(server.address() as AddressInfo).port}/webhooks`,
    received,
    secret: '',
    status: 204,
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => {
        server.close(resolve);
      });
    },
  };
  return receiver;
}
