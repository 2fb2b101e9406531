import { execFile } from 'node:child_process';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { IncomingMessage, RequestListener, Server } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { createSecureContext } from 'node:tls';
import type { SecureContext } from 'node:tls';
import { promisify } from 'node:util';
import { afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { postWebhook, resolveName } from '../../src/webhooks-out/post.ts';
import type { PostOptions, PostResult } from '../../src/webhooks-out/post.ts';
import { createAuthority, createCertificate } from '../support/certificates.ts';
import type { Certificate } from '../support/certificates.ts';
import { eventually } from '../support/eventually.ts';
import { startNameServer } from '../support/name-server.ts';

const servers: Server[] = [];

async function serve(listener: RequestListener): Promise<string> {
  const server = createServer(listener);
  servers.push(server);
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`;
}
afterEach(async () => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    await new Promise((resolve) => {
      server.close(resolve);
    });
  }
});

const send = async (url: string, over: Partial<PostOptions> = {}) =>
  await postWebhook({ url, headers: { 'webhook-id': 'msg_1' }, body: '{"a":"é"}', targets: 'any', ...over });

/** A resolver that returns these addresses for every name, and counts how often it is asked. */
function resolver(...answers: readonly (readonly string[])[]) {
  const asked: string[] = [];
  const resolve = async (hostname: string) => {
    const addresses = answers[Math.min(asked.length, answers.length - 1)] ?? [];
    asked.push(hostname);
    return await Promise.resolve(addresses);
  };
  return { asked, resolve };
}

const REFUSED = 'The address of the host is private or reserved, so the service does not connect to it.';

describe('an attempt', () => {
  test('a message arrives as JSON with its headers, and the start of the response is returned', async () => {
    let received: { request: IncomingMessage; body: string } | undefined;
    const url = await serve((request, response) => {
      let body = '';
      request.on('data', (part) => (body += String(part)));
      request.on('end', () => {
        received = { request, body };
        response.writeHead(202).end('o\0k');
      });
    });
    expect(await send(url)).toMatchObject({
      statusCode: 202,
      problem: null,
      response: 'ok',
      retryAfterMs: null,
    });
    expect(received?.body).toBe('{"a":"é"}');
    expect(received?.request).toMatchObject({
      method: 'POST',
      headers: { 'content-type': 'application/json', 'content-length': '10', 'webhook-id': 'msg_1' },
    });
  });

  test.each([
    [400, 'The endpoint responded with 400.'],
    [410, 'The endpoint responded with 410.'],
    [503, 'The endpoint responded with 503.'],
  ])('the status %d is a failure', async (status, problem) => {
    const url = await serve((_, response) => response.writeHead(status).end('no'));
    expect(await send(url)).toMatchObject({ statusCode: status, problem, response: 'no' });
  });

  test('a redirect is a failure and is not followed', async () => {
    const paths: string[] = [];
    const url = await serve((request, response) => {
      paths.push(request.url ?? '');
      response.writeHead(307, { location: '/elsewhere' }).end();
    });
    expect((await send(url)).problem).toBe(
      'The endpoint responded with 307. Redirects are not followed: change the URL.',
    );
    expect(paths).toEqual(['/hook']);
  });

  test.each([
    ['30', 30_000],
    ['soon', null],
    [undefined, null],
  ])('Retry-After: %s is read as %s ms', async (header, retryAfterMs) => {
    const url = await serve((_, response) => {
      response.writeHead(429, header === undefined ? {} : { 'retry-after': header }).end();
    });
    expect((await send(url)).retryAfterMs).toBe(retryAfterMs);
  });

  // @promise webhooks-out-limits
  test('an endpoint that does not respond is given up on after the time limit', async () => {
    const url = await serve(() => {});
    const result = await send(url, { timeoutMs: 100 });
    expect(result).toMatchObject({
      statusCode: null,
      problem: 'The endpoint did not respond within 0.1 s.',
      response: null,
    });
  });

  // @promise webhooks-out-limits
  test('of a response without an end only the first part is read, and its status counts', async () => {
    const url = await serve((_, response) => {
      response.writeHead(200);
      const write = () => {
        while (response.write('x'.repeat(4_096)));
      };
      response.on('drain', write);
      write();
    });
    const result = await send(url, { timeoutMs: 5_000 });
    expect(result.response).toBe('x'.repeat(2_048));
    expect(result).toMatchObject({ statusCode: 200, problem: null });
    expect(result.durationMs).toBeLessThan(4_000);
  });

  test('a response that stops in its body is given up on after the time limit, and its status counts', async () => {
    const url = await serve((_, response) => {
      response.writeHead(500);
      response.write('half');
    });
    let result = await send(url, { timeoutMs: 200 });
    // On a busy machine the limit may end the attempt before the response has begun.
    if (result.statusCode === null) result = await send(url, { timeoutMs: 5_000 });
    expect(result).toMatchObject({ statusCode: 500, response: 'half' });
  });

  test('a connection that is refused or closed has a problem in words', async () => {
    const url = await serve((request) => request.socket.destroy());
    expect((await send(url)).problem).toBe('The host closed the connection without a response.');
    servers[0]?.close();
    expect((await send('http://127.0.0.1:1/')).problem).toBe('The host refused the connection.');
  });

  test('the variables of a proxy change nothing', async () => {
    const url = await serve((_, response) => response.end());
    const names = ['HTTP_PROXY', 'http_proxy', 'HTTPS_PROXY', 'https_proxy', 'ALL_PROXY'];
    for (const name of names) process.env[name] = 'http://127.0.0.1:1';
    process.env['NODE_USE_ENV_PROXY'] = '1';
    try {
      expect((await send(url)).statusCode).toBe(200);
    } finally {
      for (const name of [...names, 'NODE_USE_ENV_PROXY']) delete process.env[name];
    }
  });
});

// Only addresses of this machine, so that a broken check connects to no other one. `public-addresses.test.ts` has the others.
describe('private addresses', () => {
  /** Counts the connections to a server on the loopback address. */
  async function watched() {
    let connections = 0;
    const url = new URL(await serve((_, response) => response.end()));
    servers.at(-1)?.on('connection', () => (connections += 1));
    return { port: url.port, connections: () => connections };
  }

  // @promise webhooks-out-public-addresses
  test.each([
    'https://127.0.0.1',
    'https://[::1]',
    'https://[::ffff:127.0.0.1]',
    'https://2130706433',
    'https://0x7f.1',
    'https://127.1',
  ])('nothing connects to %s', async (base) => {
    const { port, connections } = await watched();
    expect((await send(`${base}:${port}/`, { targets: 'public' })).problem).toMatch(
      /^The URL is not allowed\. Must have a public host/,
    );
    expect(connections()).toBe(0);
  });

  // @promise webhooks-out-public-addresses
  test.each([[['127.0.0.1']], [['::ffff:127.0.0.1']], [['127.0.0.2', '::1']]])(
    'nothing connects to a name that has the addresses %s',
    async (addresses) => {
      const { port, connections } = await watched();
      const { resolve } = resolver(addresses);
      const result = await send(`https://internal.example.com:${port}/`, { targets: 'public', resolve });
      expect(result.problem).toBe(REFUSED);
      expect(connections()).toBe(0);
    },
  );

  // @promise webhooks-out-public-addresses
  test('a name is resolved once for each attempt, so that one which changes its address gains nothing', async () => {
    const { port, connections } = await watched();
    // The second answer would be the private one that a second look-up gets.
    const { asked, resolve } = resolver(['127.0.0.2', '127.0.0.1'], ['127.0.0.1']);
    const result = await send(`https://rebinding.example.com:${port}/`, {
      targets: 'public',
      resolve,
      timeoutMs: 500,
    });
    expect(result.problem).toBe(REFUSED);
    expect(asked).toHaveLength(1);
    expect(connections()).toBe(0);
  });

  // @promise webhooks-out-isolated
  test('a name whose servers do not respond ends with the attempt and delays no other look-up of the process', async () => {
    const silent = createSocket('udp4');
    const questions: Buffer[] = [];
    silent.on('message', (question) => questions.push(question));
    await new Promise<void>((done) => {
      silent.bind(0, '127.0.0.1', done);
    });
    try {
      const nameServers = [`127.0.0.1:${silent.address().port}`];
      const resolve = async (name: string, signal: AbortSignal) =>
        await resolveName(name, signal, nameServers);
      const attempts = Array.from({ length: 8 }, async () => {
        return await send('https://silent.example.com/', { targets: 'public', resolve, timeoutMs: 700 });
      });
      await setImmediate();
      // The look-up of the system would take one of the few threads that all look-ups of the process share.
      expect(process.getActiveResourcesInfo()).not.toContain('GetAddrInfoReqWrap');
      const results = await Promise.all(attempts);
      expect(new Set(results.map(({ problem }) => problem))).toEqual(
        new Set(['The endpoint did not respond within 0.7 s.']),
      );
      await eventually('a question arrives', async () => await Promise.resolve(questions.length > 0));
    } finally {
      silent.close();
    }
  });

  test('http is refused where only public addresses are allowed, also for an endpoint that exists', async () => {
    const { port, connections } = await watched();
    const result = await send(`http://127.0.0.1:${port}/`, { targets: 'public' });
    expect(result.problem).toBe('The URL is not allowed. Must begin with https://.');
    expect(connections()).toBe(0);
  });
});

// A process of its own posts, as Node reads the authorities that it trusts when it starts. A name server of the test resolves names.
describe('a receiver with TLS', () => {
  /** What became of an attempt at each host, and the requests that arrived. */
  const results = new Map<string, PostResult>();
  const arrived: (string | undefined)[] = [];
  const names = new Set<string>();

  beforeAll(async () => {
    const folder = await mkdtemp(path.join(tmpdir(), 'tributary-test-'));
    const nameServer = await startNameServer();
    const contexts = new Map<string, SecureContext>();
    const server = createTlsServer(
      { SNICallback: (name, use) => use(null, contexts.get(name)) },
      (request, response) => {
        arrived.push(request.headers.host);
        response.writeHead(204).end();
      },
    ).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const plain = new URL(await serve((_, response) => response.end()));
    try {
      const trusted = await createAuthority(folder, 'authority');
      const signed = async (name: string, over: { by?: Certificate; hosts?: string; days?: number } = {}) => {
        const { by = trusted, hosts = `DNS:${name}.example.test`, ...days } = over;
        return await createCertificate(folder, by, { name, hosts, ...days });
      };
      const certificates = {
        trusted: await signed('trusted'),
        'other-name': await signed('other-name', { hosts: 'DNS:trusted.example.test' }),
        expired: await signed('expired', { days: -1 }),
        untrusted: await signed('untrusted', { by: await createAuthority(folder, 'other-authority') }),
        'self-signed': await createAuthority(folder, 'self-signed'),
      };
      for (const [name, { certificate, key }] of Object.entries(certificates)) {
        const [cert, pem] = await Promise.all([readFile(certificate), readFile(key)]);
        contexts.set(`${name}.example.test`, createSecureContext({ cert, key: pem }));
      }
      const urls = new Map(
        Object.keys(certificates).map((name) => [name, `https://${name}.example.test:${port}/`]),
      );
      urls.set('plain', `https://plain.example.test:${plain.port}/`);
      const script = new URL('post-child.ts', import.meta.url).pathname;
      const { stdout } = await promisify(execFile)(
        process.execPath,
        ['--import', 'tsx', script, nameServer.address, ...urls.values()],
        { env: { PATH: process.env['PATH'] ?? '', NODE_EXTRA_CA_CERTS: trusted.certificate } },
      );
      const outcomes = JSON.parse(stdout) as PostResult[];
      [...urls.keys()].forEach((name, n) => results.set(name, outcomes[n] as PostResult));
      for (const name of nameServer.asked) names.add(name);
    } finally {
      server.closeAllConnections();
      server.close();
      nameServer.close();
      await rm(folder, { recursive: true, force: true });
    }
  });

  // @promise webhooks-out-tls
  test('a message arrives at a host that a name server resolves and whose certificate a trusted authority has signed', () => {
    expect(results.get('trusted')).toMatchObject({ statusCode: 204, problem: null });
    expect(names).toContain('trusted.example.test');
  });

  // @promise webhooks-out-tls
  test.each([
    ['other-name', 'The certificate of the host is for another name.'],
    ['expired', 'The certificate of the host has expired.'],
    ['untrusted', 'The certificate of the host is not issued by a trusted authority.'],
    ['self-signed', 'The certificate of the host is not issued by a trusted authority.'],
    ['plain', 'The TLS handshake with the host failed.'],
  ])('nothing is sent to the host %s.example.test, and the attempt says: %s', (name, problem) => {
    expect(results.get(name)).toMatchObject({ statusCode: null, problem, response: null });
    expect(arrived).toHaveLength(1);
  });
});
