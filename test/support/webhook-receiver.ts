import { createServer } from 'node:http';
import type { IncomingHttpHeaders, RequestListener } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { SecureContextOptions } from 'node:tls';
import { Webhook } from 'svix';

/** A message as a receiver gets it. */
export interface ReceivedMessage {
  readonly id: string;
  readonly type: string;
  readonly timestamp: string;
  readonly data: Readonly<Record<string, unknown>>;
  /** Whether a library of receivers accepts it with the receiver's secret. */
  readonly isSigned: boolean;
  readonly signatures: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
}

/** A receiver of outgoing webhooks on the loopback address. It verifies messages with a library of Standard Webhooks. */
export interface WebhookReceiver {
  readonly url: string;
  readonly received: ReceivedMessage[];
  /** The secret that it verifies with. */
  secret: string;
  /** The status that it responds with; null for no response. */
  status: number | null;
  readonly close: () => Promise<void>;
}

/** Whether the library accepts a request: one of its signatures is of the secret, and its time is now. */
function isAccepted(secret: string, headers: IncomingHttpHeaders, body: string): boolean {
  try {
    new Webhook(secret).verify(body, headers as Record<string, string>);
    return true;
  } catch {
    return false;
  }
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
        isSigned: isAccepted(receiver.secret, request.headers, body),
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
