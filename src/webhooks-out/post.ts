import { lookup as lookUp, Resolver } from 'node:dns/promises';
import { request as requestHttp } from 'node:http';
import type { ClientRequest, IncomingMessage, RequestOptions } from 'node:http';
import { request as requestHttps } from 'node:https';
import { isIP } from 'node:net';
import type { LookupFunction } from 'node:net';
import { webhookUrlProblem } from '../domain/outgoing-webhooks.ts';
import type { WebhookTargets } from '../domain/outgoing-webhooks.ts';
import { hostOf } from '../domain/addresses.ts';
import { isPublicAddress } from '../domain/public-addresses.ts';
import { startDeadline } from '../lib/deadline.ts';

/** How long an attempt may take. Standard Webhooks recommends 15 to 30 seconds. */
const TIMEOUT_MS = 15_000;
/** How long a name server has for its first answer, ms. It is asked twice. */
const RESOLVE_MS = 2_000;
/** The part of a response that is read and stored. */
const RESPONSE_BYTES = 2_048;
/** Responses with a status of 1xx before the one that counts. */
const MAX_INFORMATION = 16;
const USER_AGENT = 'Tributary-Webhooks/1';

/** What became of an attempt. */
export interface PostResult {
  /** Null if there was no response. */
  readonly statusCode: number | null;
  /** Why the attempt failed, in one sentence. Null for a status from 200 to 299. */
  readonly problem: string | null;
  readonly durationMs: number;
  /** The first part of the response as text. Null if there was none. */
  readonly response: string | null;
  /** The wait that the response asks for, ms. Null if it asks for none. */
  readonly retryAfterMs: number | null;
}

export interface PostOptions {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  readonly targets: WebhookTargets;
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
  /** Resolves host names; `resolveName` by default. */
  readonly resolve?: NameResolver;
}

/** The endpoint sends `1xx` without an end. Each costs processor time. */
class TooMuchInformation extends Error {
  override readonly name = 'TooMuchInformation';
}

class ConnectionClosed extends Error {
  override readonly name = 'ConnectionClosed';
  readonly code = 'ECONNRESET';
}

/** The address of an endpoint is not one of the public internet. */
class AddressRefused extends Error {
  override readonly name = 'AddressRefused';
}

const REFUSED = 'The address of the host is private or reserved, so the service does not connect to it.';

const NO_HANDSHAKE = 'The TLS handshake with the host failed.';
const UNTRUSTED = 'The certificate of the host is not issued by a trusted authority.';

/** The problems of connections by their codes. */
const PROBLEMS: Readonly<Record<string, string>> = {
  ENOTFOUND: 'The host was not found.',
  EAI_AGAIN: 'The host was not found: the name server did not respond.',
  ECONNREFUSED: 'The host refused the connection.',
  ECONNRESET: 'The host closed the connection without a response.',
  EHOSTUNREACH: 'The host cannot be reached.',
  ENETUNREACH: 'The host cannot be reached.',
  EPROTO: NO_HANDSHAKE,
  ERR_SSL_WRONG_VERSION_NUMBER: NO_HANDSHAKE,
  CERT_HAS_EXPIRED: 'The certificate of the host has expired.',
  CERT_NOT_YET_VALID: 'The certificate of the host is not valid yet.',
  DEPTH_ZERO_SELF_SIGNED_CERT: UNTRUSTED,
  SELF_SIGNED_CERT_IN_CHAIN: UNTRUSTED,
  UNABLE_TO_GET_ISSUER_CERT: UNTRUSTED,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: UNTRUSTED,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: UNTRUSTED,
  ERR_TLS_CERT_ALTNAME_INVALID: 'The certificate of the host is for another name.',
};

/** Returns the problem of an error of the connection, without any text that the host has sent. */
function problemOf(error: unknown): string {
  if (error instanceof AddressRefused) return REFUSED;
  if (error instanceof NameNotFound) return error.message;
  if (error instanceof TooMuchInformation)
    return `The endpoint sent more than ${MAX_INFORMATION} 1xx responses.`;
  const { code, errors } = error as { code?: unknown; errors?: unknown };
  // Several addresses failed, each with its own error.
  if (Array.isArray(errors) && errors.length > 0) return problemOf(errors[0]);
  if (typeof code !== 'string') return 'The connection failed.';
  return PROBLEMS[code] ?? `The connection failed (${code}).`;
}

/** Returns the addresses of a host name. */
type NameResolver = (name: string, signal: AbortSignal) => Promise<readonly string[]>;

/** The name servers do not know the name, or did not respond. */
class NameNotFound extends Error {
  override readonly name = 'NameNotFound';
  constructor(code: unknown) {
    super(code === 'ENOTFOUND' || code === 'ENODATA' ? PROBLEMS['ENOTFOUND'] : PROBLEMS['EAI_AGAIN']);
  }
}

/**
 * Asks name servers for the addresses of a name until `signal`. It does not use the look-up of the system, which blocks a thread
 * for each name: a few names whose servers do not respond would stop the other look-ups of the process. It reads no hosts file.
 */
export async function resolveName(
  name: string,
  signal: AbortSignal,
  servers?: readonly string[],
): Promise<string[]> {
  const resolver = new Resolver({ timeout: RESOLVE_MS, tries: 2 });
  if (servers !== undefined) resolver.setServers(servers);
  const cancel = () => resolver.cancel();
  signal.addEventListener('abort', cancel);
  try {
    const answers = await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)]);
    const addresses = answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []));
    if (addresses.length > 0) return addresses;
    const codes = answers.map((answer) =>
      answer.status === 'rejected' ? (answer.reason as { code?: unknown }).code : 'ENODATA',
    );
    throw new NameNotFound(codes.find((code) => code !== 'ENODATA') ?? 'ENODATA');
  } finally {
    signal.removeEventListener('abort', cancel);
  }
}

/**
 * Returns the addresses that an attempt may connect to. Where private addresses are allowed, names that only the system knows
 * are, too: those of the hosts file, and those without a dot.
 */
async function allowedAddresses(
  name: string,
  isOpen: boolean,
  resolve: NameResolver,
  signal: AbortSignal,
): Promise<readonly string[]> {
  if (!isOpen) {
    const allowed = (await resolve(name, signal)).filter(isPublicAddress);
    if (allowed.length === 0) throw new AddressRefused(name);
    return allowed;
  }
  if (name.includes('.')) {
    try {
      return await resolve(name, signal);
    } catch (error) {
      if (signal.aborted) throw error;
    }
  }
  return (await lookUp(name, { all: true })).map(({ address }) => address);
}

/**
 * Returns the look-up of a connection that has only these addresses. The connection asks no second time, so a name that changes
 * its address meanwhile gains nothing.
 */
function fixedLookup(addresses: readonly string[]): LookupFunction {
  const found = addresses.map((address) => ({ address, family: isIP(address) }));
  return (hostname, options, callback) => {
    const [first] = found;
    if (first === undefined) callback(new NameNotFound('ENODATA'), '');
    else if (options.all === true) callback(null, found);
    else callback(null, first.address, first.family);
  };
}

/** Returns the wait that `Retry-After` asks for, ms. Null for none and for text that is neither seconds nor a date. */
function retryAfterOf(header: string | undefined): number | null {
  if (header === undefined) return null;
  if (/^\d{1,9}$/.test(header)) return Number(header) * 1000;
  const at = Date.parse(header);
  return Number.isNaN(at) ? null : Math.max(0, at - Date.now());
}

/** Returns the problem that a status states. Null from 200 to 299. */
function statusProblem(status: number): string | null {
  if (status >= 200 && status <= 299) return null;
  const redirect = status >= 300 && status <= 399 ? ' Redirects are not followed: change the URL.' : '';
  return `The endpoint responded with ${status}.${redirect}`;
}

/** Reads the first part of a response until its end, the limit or `ended`. */
async function readStart(response: IncomingMessage, ended: AbortSignal): Promise<string> {
  const parts: Buffer[] = [];
  let length = 0;
  await new Promise<void>((finish) => {
    const settle = () => {
      ended.removeEventListener('abort', settle);
      finish();
    };
    response.on('data', (part: Buffer) => {
      parts.push(part);
      length += part.length;
      if (length >= RESPONSE_BYTES) settle();
    });
    // The status has arrived, and it decides. A body that breaks off is stored as far as it came.
    for (const event of ['end', 'error', 'close']) response.on(event, settle);
    if (ended.aborted) settle();
    ended.addEventListener('abort', settle);
  });
  response.destroy();
  const text = Buffer.concat(parts).subarray(0, RESPONSE_BYTES).toString('utf8');
  // oxlint-disable-next-line no-control-regex -- Postgres stores no NUL, and no other control character is of use
  return text.replaceAll(/[\u0000-\u0008\u000b-\u001f\u007f]/g, '');
}

/** What an endpoint answers: a response whose body is to be read, or one that has none. */
interface Answer {
  readonly response: IncomingMessage;
  readonly hasBody: boolean;
}

/** Resolves with the answer to a request. Rejects when the connection ends without one. */
async function answerTo(request: ClientRequest): Promise<Answer> {
  return await new Promise<Answer>((resolve, reject) => {
    let informed = 0;
    request.on('response', (response) => resolve({ response, hasBody: true }));
    request.on('error', reject);
    // Node ends no request that the other side has turned into another protocol: no response follows, and no error.
    request.on('upgrade', (response, socket) => {
      socket.destroy();
      resolve({ response, hasBody: false });
    });
    request.on('information', () => {
      informed += 1;
      if (informed > MAX_INFORMATION) request.destroy(new TooMuchInformation());
    });
    request.on('close', () => reject(new ConnectionClosed()));
  });
}

/**
 * Sends a message to an endpoint. Never throws. It connects to no private address unless `targets` allows it, follows no
 * redirect, uses no proxy, and ends after `timeoutMs` or after the first part of the response.
 */
export async function postWebhook({
  url,
  headers,
  body,
  targets,
  timeoutMs = TIMEOUT_MS,
  signal,
  resolve = resolveName,
}: PostOptions): Promise<PostResult> {
  const startedAt = performance.now();
  const failed = (problem: string): PostResult => ({
    statusCode: null,
    problem,
    durationMs: Math.round(performance.now() - startedAt),
    response: null,
    retryAfterMs: null,
  });
  // The setting may have changed since the endpoint got its URL. This refuses private addresses; names are checked below.
  const urlProblem = webhookUrlProblem(url, targets);
  if (urlProblem !== null) return failed(`The URL is not allowed. ${urlProblem}`);
  const target = new URL(url);
  const isOpen = targets === 'any';
  const host = hostOf(target);
  const options: RequestOptions = {
    method: 'POST',
    // A connection of its own: no shared agent, whose settings could name a proxy, and no connection that was checked before.
    agent: false,
    headers: {
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(body),
      'user-agent': USER_AGENT,
      ...headers,
    },
  };
  const deadline = startDeadline(timeoutMs, signal);
  const ended = deadline.signal;
  try {
    // An address instead of a name is never looked up.
    if (isIP(host) === 0) {
      options.lookup = fixedLookup(await deadline.race(allowedAddresses(host, isOpen, resolve, ended)));
    }
    const request =
      target.protocol === 'https:'
        ? requestHttps(target, { ...options, signal: ended, rejectUnauthorized: true })
        : requestHttp(target, { ...options, signal: ended });
    request.on('socket', (socket) => {
      // The address that is connected to decides, whatever led to it.
      socket.on('connect', () => {
        if (!isOpen && !isPublicAddress(socket.remoteAddress ?? '')) socket.destroy(new AddressRefused(host));
      });
    });
    const answered = answerTo(request);
    request.end(body);
    const { response, hasBody } = await deadline.race(answered);
    const text = hasBody ? await readStart(response, ended) : '';
    const statusCode = response.statusCode ?? 0;
    return {
      statusCode,
      problem: statusProblem(statusCode),
      durationMs: Math.round(performance.now() - startedAt),
      response: text,
      retryAfterMs: retryAfterOf(response.headers['retry-after']),
    };
  } catch (error) {
    if (deadline.isExceeded()) return failed(`The endpoint did not respond within ${timeoutMs / 1000} s.`);
    return failed(problemOf(error));
  } finally {
    deadline.end();
  }
}
