import { randomBytes, randomUUID } from 'node:crypto';
import { newId } from '../../src/db/new-id.ts';
import { newToken } from '../../src/db/sessions.ts';
import type { PacketDelivery } from './packets.ts';

/** What the requests need to know about the instance. */
export interface Target {
  readonly url: string;
  readonly appId: string;
  readonly slug: string;
  readonly linkSubdomain: string;
  readonly sdkKey: string;
}

/** A request as it is sent. */
export interface SentRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer | null;
}

/** How the bytes of a request arrive. */
export type Delivery =
  | 'at once'
  | 'in chunks of one byte'
  | 'a byte per packet'
  | 'the head too in a byte per packet'
  | 'in chunks with long extensions'
  | 'with long trailers'
  | 'as many as fit into 64 KiB'
  | 'without its end'
  | PacketDelivery;

/** The worst request of a route, of one kind. */
export interface WorstCase {
  readonly route: string;
  /** What is bad about it. */
  readonly what: string;
  readonly delivery: Delivery;
  /** The most processor time that is accepted, ms. */
  readonly mostMs?: number;
  readonly request: (target: Target) => SentRequest;
}

const KIB = 1024;
const OPEN_BODY = 32 * KIB;
const WEBHOOK_BODY = KIB * KIB;
/** Almost everything that the parser of Node accepts: 16 KiB for the address and all headers together. */
const LONG_HEADER = 15 * KIB;

const json = (body: string) => ({
  headers: { 'content-type': 'application/json' },
  body: Buffer.from(body),
});

/** Fills the JSON text of an object up to the limit with another field, whose value `filled` returns for a length. */
function filled(body: object, value: (length: number) => string): string {
  const start = `${JSON.stringify(body).slice(0, -1)},"padding":`;
  return `${start}${value(OPEN_BODY - start.length - 1)}}`;
}

const repeated = (unit: string, length: number) => unit.repeat(Math.max(0, Math.floor(length / unit.length)));

/** Values of unknown fields that cost the most for each way of reading a body. */
const PADDINGS: readonly (readonly [string, (length: number) => string])[] = [
  ['one long text', (length) => `"${repeated('x', length - 2)}"`],
  ['nested arrays', (length) => `${repeated('[', length / 2)}${repeated(']', length / 2)}`],
  ['many values after an escape', (length) => `["\\ud83d\\ude00"${repeated(',1', length - 16)}]`],
  ['many objects after an escape', (length) => `["\\ud83d\\ude00"${repeated(',{"a":1}', length - 16)}]`],
  [
    'names that look like array indexes',
    (length) => {
      const names = Array.from({ length: Math.floor(length / 12) }, (_, nth) => `"${nth * 16_384}":1`);
      return `{${names
        .join(',')
        .slice(0, length - 2)
        .replace(/,[^,]*$/, '')}}`;
    },
  ],
  ['many fields', (length) => `{${repeated('"abcdefg":1,', length - 14)}"last":1}`],
  ['many ids', (length) => `["${randomUUID()}"${repeated(`,"${randomUUID()}"`, length - 40)}]`],
  ['texts that cannot be stored', (length) => `[${repeated('"\\u0000",', length - 14)}"\\u0000"]`],
  ['an error at the end', (length) => `[${repeated('{"a":1},', length - 2)}`],
];

const longAgent = `Mozilla/5.0 ${'(compatible; bot; like Gecko) '.repeat(500)}`;

function post(
  route: string,
  body: (target: Target) => object,
  key: (target: Target) => string | null,
): WorstCase[] {
  return PADDINGS.map(([what, value]) => ({
    route: `POST ${route}`,
    what,
    delivery: 'at once',
    request: (target) => {
      const { headers, body: bytes } = json(filled(body(target), value));
      const bearer = key(target);
      return {
        method: 'POST',
        path: route,
        headers: { ...headers, ...(bearer === null ? {} : { authorization: `Bearer ${bearer}` }) },
        body: bytes,
      };
    },
  }));
}

function get(
  route: string,
  what: string,
  path: (target: Target) => string,
  headers: Record<string, string> = {},
): WorstCase {
  return {
    route: `GET ${route}`,
    what,
    delivery: 'at once',
    request: (target) => ({ method: 'GET', path: path(target), headers, body: null }),
  };
}

const madeUpKey = () => `tri_sk_live_${randomBytes(24).toString('hex').slice(0, 43)}`;
const ownCookie = (kind: string) => ({
  cookie: `tributary${kind}=${newToken()}`,
  'sec-fetch-site': 'same-origin',
});

const nowSeconds = () => Math.floor(Date.now() / 1000);
const ten = (signature: string, separator: string) =>
  Array.from({ length: 10 }, () => signature).join(separator);

function webhook(
  provider: string,
  what: string,
  headers: () => Record<string, string>,
  appOf = ({ appId }: Target) => appId,
): WorstCase {
  const body = Buffer.alloc(WEBHOOK_BODY, '{"a":1},');
  return {
    route: 'POST /webhooks/:provider/:customerAppId',
    what: `${provider}: ${what}`,
    delivery: 'at once',
    request: (target) => ({
      method: 'POST',
      path: `/webhooks/${provider}/${appOf(target)}`,
      headers: { 'content-type': 'application/json', ...headers() },
      body,
    }),
  };
}

/** The worst requests of every route that needs no account key, each sent at once. */
const SENT_AT_ONCE: readonly WorstCase[] = [
  ...post(
    '/clicks',
    ({ appId, slug }) => ({
      customerAppId: appId,
      slug,
      claimToken: randomUUID(),
      ipHash: randomUUID().repeat(5),
      userAgent: longAgent.slice(0, 8_000),
    }),
    () => null,
  ),
  ...post(
    '/sdk/install',
    ({ slug }) => ({
      deviceId: randomUUID().repeat(5),
      claimToken: randomUUID(),
      affiliateCode: slug,
      firstOpenAt: Date.now(),
      deferred: true,
    }),
    ({ sdkKey }) => sdkKey,
  ),
  ...post(
    '/sdk/identify',
    () => ({
      deviceId: randomUUID().repeat(5),
      customerUserId: randomUUID().repeat(14),
      identifiedAt: Date.now(),
    }),
    ({ sdkKey }) => sdkKey,
  ),
  get(
    '/l/:linkSubdomain/:slug',
    'a long User-Agent',
    ({ linkSubdomain, slug }) => `/l/${linkSubdomain}/${slug}`,
    { 'user-agent': longAgent.slice(0, LONG_HEADER) },
  ),
  get(
    '/l/:linkSubdomain/:slug',
    'many parameters',
    ({ linkSubdomain, slug }) => `/l/${linkSubdomain}/${slug}?${repeated('a&', LONG_HEADER)}`,
  ),
  get('/l/:slug', 'an unknown host', ({ slug }) => `/l/${slug}`, {
    host: repeated('a.', 250) + 'example.com',
  }),
  get(
    '/.well-known/apple-app-site-association',
    'an unknown host',
    () => '/.well-known/apple-app-site-association',
    {
      host: repeated('a.', 250) + 'example.com',
    },
  ),
  get(
    '/.well-known/assetlinks.json',
    'many parameters',
    () => `/.well-known/assetlinks.json?${repeated('a&', LONG_HEADER)}`,
  ),
  webhook('stripe', '1 MiB, ten wrong signatures, three secrets', () => ({
    'stripe-signature': `t=${nowSeconds()},${ten(`v1=${'0'.repeat(64)}`, ',')}`,
  })),
  webhook('stripe', '1 MiB, an old time, three secrets', () => ({
    'stripe-signature': `t=1,${ten(`v1=${'0'.repeat(64)}`, ',')}`,
  })),
  webhook('stripe', '1 MiB, thousands of signatures', () => ({
    'stripe-signature': `t=${nowSeconds()}${repeated(',v1=', LONG_HEADER)}`,
  })),
  webhook('superwall', '1 MiB, ten wrong signatures, three secrets', () => ({
    'svix-id': 'msg_1',
    'svix-timestamp': String(nowSeconds()),
    'svix-signature': ten(`v1,${'0'.repeat(44)}`, ' '),
  })),
  webhook('adapty', '1 MiB, a long wrong token, three secrets', () => ({
    authorization: `Bearer ${repeated('x', LONG_HEADER)}`,
  })),
  webhook(
    'stripe',
    '1 MiB for an unknown app',
    () => ({}),
    () => newId('app'),
  ),
  ...post(
    '/session',
    () => ({ key: madeUpKey() }),
    () => null,
  ),
  {
    route: 'POST /session',
    what: 'an answer of a made-up passkey, each field as long as it may be',
    delivery: 'at once',
    request: () => ({
      method: 'POST',
      path: '/session',
      ...json(
        JSON.stringify({
          passkey: {
            id: repeated('a', 1_364),
            clientDataJSON: Buffer.from(repeated('[', 1_536) + repeated(']', 1_536)).toString('base64url'),
            authenticatorData: repeated('a', 2_048),
            signature: repeated('a', 2_048),
          },
        }),
      ),
    }),
  },
  ...post(
    '/session/passkeys/sign-in-options',
    () => ({}),
    () => null,
  ),
  ...post(
    '/creator/session',
    () => ({ token: newToken() }),
    () => null,
  ),
  ...post(
    '/operator/session',
    () => ({ token: newToken() }),
    () => null,
  ),
  ...post(
    '/sign-in-links',
    () => ({ email: `${randomUUID()}@example.com` }),
    () => null,
  ),
  ...['', '-creator', '-operator'].map((kind) =>
    get(
      `${kind.replace('-', '/')}/session`,
      'a made-up session',
      () => `${kind.replace('-', '/')}/session`,
      ownCookie(kind),
    ),
  ),
  get('/sessions', 'a made-up session', () => '/sessions', ownCookie('')),
  get('/creator/overview', 'a made-up session', () => '/creator/overview', ownCookie('-creator')),
  get('/operator/state', 'a made-up session', () => '/operator/state', ownCookie('-operator')),
  get('/apps', 'a made-up key', () => '/apps', { authorization: `Bearer ${madeUpKey()}` }),
  get('/session', 'many cookies', () => '/session', { cookie: repeated('tributary;', LONG_HEADER) }),
  get('/console', 'an Accept header of one long parameter', () => '/console', {
    accept: `a/a;b="${repeated(';', LONG_HEADER)}`,
  }),
  get('/console/', 'a long path', () => `/console/${repeated('a/', LONG_HEADER)}`),
  get('/console/assets/:file', 'many encodings', () => '/console/assets/x.js', {
    'accept-encoding': repeated('a,', LONG_HEADER),
  }),
  get(
    '/healthz',
    'many headers',
    () => '/healthz',
    Object.fromEntries(Array.from({ length: 1_500 }, (_, nth) => [`a${nth}`, ''])),
  ),
  get('/healthz', 'an address with a long host', () => `http://${repeated('a.', LONG_HEADER)}/healthz`),
  get('(no route)', 'an address without a host', () => `http://[x/${repeated('a/', LONG_HEADER)}`),
  get('/healthz', 'many parameters', () => `/healthz?${repeated('a&', LONG_HEADER)}`),
  get('/readyz', 'many parameters', () => `/readyz?${repeated('a&', LONG_HEADER)}`),
  get('/openapi.json', 'the document', () => '/openapi.json'),
  get('/', 'the redirect', () => '/'),
  get('/docs', 'the page', () => '/docs'),
  get('/docs/:file', 'the largest file', () => '/docs/swagger-ui-bundle.js'),
  get('(no route)', 'a long path', () => `/${repeated('a/', LONG_HEADER)}`),
  get('(no route)', 'a path of escapes', () => `/l/${repeated('%e2%82%ac', LONG_HEADER)}`),
  get('/apps', 'a long invalid key', () => '/apps', {
    authorization: `Bearer ${repeated('x', LONG_HEADER)}`,
  }),
  {
    route: 'OPTIONS /clicks',
    what: 'a long preflight',
    delivery: 'at once',
    request: () => ({
      method: 'OPTIONS',
      path: '/clicks',
      headers: {
        origin: 'https://example.com',
        'access-control-request-method': 'POST',
        'access-control-request-headers': repeated('a,', LONG_HEADER - 200),
      },
      body: null,
    }),
  },
];

/** Bodies in pieces that are just large enough not to be refused, and in those of a slow network. */
const IN_PACKETS = [
  'in chunks of 512 bytes',
  'slowly in packets of 250 bytes',
  'slowly in packets of 500 bytes',
  'slowly in packets of 1448 bytes',
  'slowly in chunks of 512 bytes, a packet each',
] as const;

/** Returns the deliveries that a request can have besides `at once`. */
function otherDeliveries(route: string): readonly Delivery[] {
  const bodies = [
    'in chunks of one byte',
    'a byte per packet',
    'in chunks with long extensions',
    'with long trailers',
  ] as const;
  return [
    ...(route.startsWith('POST') ? bodies : []),
    ...(route === 'POST /clicks' || route.startsWith('POST /webhooks') ? IN_PACKETS : []),
    // The head is the same work for each route.
    ...(route === 'GET /healthz' ? (['the head too in a byte per packet'] as const) : []),
    'as many as fit into 64 KiB',
    'without its end',
  ];
}

/** The parser passes on 2,048 chunks, or some hundred reads, of 1 MiB: docs/security.md says so. */
const IN_MANY_PARTS = /in (chunks|packets) of \d+ bytes/;
const MANY_PARTS_MS = 12;
const NO_TARGET: Target = { url: '', appId: '', slug: '', linkSubdomain: '', sdkKey: '' };

/** The first case of each route, with its other deliveries. */
const DELIVERED: readonly WorstCase[] = [...new Set(SENT_AT_ONCE.map(({ route }) => route))].flatMap(
  (route) => {
    const [first] = SENT_AT_ONCE.filter((worst) => worst.route === route);
    if (first === undefined) return [];
    return otherDeliveries(route).map((delivery) => ({
      ...first,
      what: delivery,
      delivery,
      ...(first.request(NO_TARGET).body?.length === WEBHOOK_BODY && IN_MANY_PARTS.test(delivery)
        ? { mostMs: MANY_PARTS_MS }
        : {}),
    }));
  },
);

/** The worst requests of every route that needs no account key. */
export const WORST_CASES = [...SENT_AT_ONCE, ...DELIVERED];
