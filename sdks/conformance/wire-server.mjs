// A second scripted server, written from SPEC.md and docs/contract.md alone, and not from server.mjs: two readings of the
// rules that must agree. It reads and writes the bytes itself, so that it can also send what no HTTP library sends, and
// checks every request: `problems` has what an SDK must never send.
import { createServer } from 'node:net';

const FIELDS = {
  '/sdk/install': {
    deviceId: (value) => isText(value, 200),
    claimToken: (value) => /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/i.test(value),
    affiliateCode: (value) => typeof value === 'string' && value.length >= 1 && value.length <= 200,
    codeEnteredAt: isTime,
    firstOpenAt: isTime,
    deferred: (value) => value === true,
  },
  '/sdk/identify': {
    deviceId: (value) => isText(value, 200),
    customerUserId: (value) => isText(value, 512),
    identifiedAt: isTime,
    signature: (value) => isText(value, 200),
  },
};
const REQUIRED = {
  '/sdk/install': ['deviceId', 'firstOpenAt'],
  '/sdk/identify': ['deviceId', 'customerUserId', 'identifiedAt'],
};
const CORS = {
  'access-control-allow-origin': '*',
  'access-control-allow-methods': 'POST',
  'access-control-allow-headers': 'authorization, content-type',
  'access-control-expose-headers': 'Date, Retry-After, X-Request-Id',
};

function isText(value, limit) {
  // oxlint-disable-next-line no-control-regex -- the characters that the service refuses
  return typeof value === 'string' && /^[^\u0000-\u001f\u007f-\u009f]+$/.test(value) && value.length <= limit;
}

function isTime(value) {
  return Number.isInteger(value) && value >= 978_307_200_000 && value <= 253_402_300_799_999;
}

/** Returns what is wrong with a request, by the contract and the rules that hold for every single request. */
function problemsOf({ method, path, headers, text, key }) {
  const fields = FIELDS[path];
  if (method !== 'POST' || !fields) return [`${method} ${path} is no route of an SDK`];
  const problems = [];
  const check = (isRight, problem) => {
    if (!isRight) problems.push(problem);
  };
  check(headers.authorization === `Bearer ${key}`, `authorization: ${headers.authorization}`);
  check(
    /^application\/json(; *charset=utf-8)?$/i.test(headers['content-type']),
    `type: ${headers['content-type']}`,
  );
  check(!headers['content-encoding'] && !headers.cookie, 'an encoding or a cookie');
  check(Buffer.byteLength(text) <= 32 * 1024, 'a body over 32 KiB');
  let body;
  try {
    body = JSON.parse(text);
  } catch {
    return [...problems, `no JSON: ${text}`];
  }
  const { acceptUnattributed, sdk, ...rest } = body;
  check(acceptUnattributed === true, 'no acceptUnattributed');
  check(/^[a-z-]+\/\d+\.\d+\.\d+$/.test(sdk), `sdk: ${sdk}`);
  for (const [name, value] of Object.entries(rest))
    check(fields[name]?.(value) === true, `${name}: ${value}`);
  for (const name of REQUIRED[path]) check(name in rest, `no ${name}`);
  if (path === '/sdk/install') {
    const { claimToken, affiliateCode, deferred, codeEnteredAt } = rest;
    check(claimToken || affiliateCode || deferred, 'nothing to attribute to');
    check(!deferred || (!claimToken && !affiliateCode), 'a deferred match beside a referral');
    check(!codeEnteredAt || affiliateCode, 'the time of a code without a code');
  }
  return problems;
}

/** What an SDK makes of an answer (rule 9): `accepted`, `final`, `stopped` or `failed`. */
function outcomeOf({ status, text, isWhole }) {
  let body = null;
  try {
    body = JSON.parse(text);
  } catch {
    // A body that is no JSON has neither an attribution nor a code.
  }
  if (!isWhole) return 'failed';
  if (status === 200)
    return typeof body?.attributionId === 'string' || body?.attributionId === null ? 'accepted' : 'failed';
  if ([400, 409, 413, 422].includes(status)) return 'final';
  const code = typeof body?.code === 'string' && body.code !== '' ? body.code : null;
  if (![401, 403, 404].includes(status) || code === null) return 'failed';
  const finals =
    status === 404
      ? ['no_attributable_click', 'no_attribution']
      : ['signature_required', 'invalid_signature'];
  return finals.includes(code) ? 'final' : 'stopped';
}

/** Reads one request from what a connection has sent; null if it is incomplete. */
function parse(bytes) {
  const end = bytes.indexOf('\r\n\r\n');
  if (end === -1) return null;
  const [first, ...lines] = bytes.subarray(0, end).toString('latin1').split('\r\n');
  const headers = {};
  for (const line of lines) {
    const [, name, value] = /^([^:]+): *(.*)$/.exec(line);
    const previous = headers[name.toLowerCase()];
    headers[name.toLowerCase()] = previous === undefined ? value : `${previous}, ${value}`;
  }
  let rest = bytes.subarray(end + 4);
  let body = rest.subarray(0, Number(headers['content-length'] ?? 0));
  if (/chunked/i.test(headers['transfer-encoding'])) {
    const parts = [];
    for (;;) {
      const line = rest.indexOf('\r\n');
      if (line === -1) return null;
      const size = Number.parseInt(rest.subarray(0, line).toString(), 16);
      if (rest.length < line + 2 + size + 2) return null;
      parts.push(rest.subarray(line + 2, line + 2 + size));
      rest = rest.subarray(line + 2 + size + 2);
      if (size === 0) break;
    }
    body = Buffer.concat(parts);
  } else if (rest.length < Number(headers['content-length'] ?? 0)) return null;
  const [method, path] = first.split(' ');
  return { method, path, headers, text: body.toString('utf8') };
}

/**
 * Starts the server. An answer is `{ status, headers, body }`, where `body` is JSON or text, and one of: `cut`, the bytes of the
 * body that are sent before the connection breaks; `isLost`, the connection breaks instead; `isHeld`, nothing is sent until
 * `release`; `raw`, the bytes of the whole answer. Without a script the service knows every code and token.
 */
export async function startWireServer() {
  const sockets = new Set();
  let port = 0;
  let key;
  let answers;
  let requests;
  let problems;
  let held;
  let underWay;
  let isStopped;
  const server = createServer((socket) => {
    let bytes = Buffer.alloc(0);
    sockets.add(socket);
    socket.on('error', () => {});
    socket.on('data', (data) => {
      bytes = Buffer.concat([bytes, data]);
      const request = parse(bytes);
      if (request === null) return;
      bytes = Buffer.alloc(0);
      receive(socket, request);
    });
    socket.on('close', () => {
      sockets.delete(socket);
      underWay.delete(socket);
      held = held.filter((other) => other.socket !== socket);
    });
  });

  const write = (socket, { status = 200, headers = {}, body, cut, raw }) => {
    underWay.delete(socket);
    if (raw !== undefined) return socket.end(raw);
    const content = Buffer.from(typeof body === 'string' ? body : JSON.stringify(body ?? {}));
    const all = {
      'content-type': status < 400 ? 'application/json' : 'application/problem+json',
      'content-length': content.length,
      connection: 'close',
      ...CORS,
      ...headers,
    };
    const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
    socket.write(`HTTP/1.1 ${status} Scripted\r\n${lines.join('')}\r\n`);
    if (cut === undefined) return socket.end(content);
    return socket.write(content.subarray(0, cut), () => socket.destroy());
  };

  const success = (path, body) =>
    path === '/sdk/install'
      ? {
          attributionId: 'attribution-1',
          affiliateId: 'affiliate-1',
          matchMethod: 'claim_token',
          touch: 'won',
        }
      : { attributionId: 'attribution-1', customerUserId: body.customerUserId, affiliateId: 'affiliate-1' };

  const receive = (socket, request) => {
    if (request.method === 'OPTIONS') return write(socket, { status: 204, body: '' });
    // Where the stories redirect to: what answers here must count for nothing.
    if (request.path === '/elsewhere') return write(socket, { body: success('/sdk/install') });
    problems.push(...problemsOf({ ...request, key }));
    let body = {};
    try {
      body = JSON.parse(request.text);
    } catch {
      // `problems` says so.
    }
    if (isStopped) problems.push('a request after the service refused the key (rule 9)');
    if (underWay.size > 0) problems.push('two requests at once (rule 7)');
    underWay.add(socket);
    requests.push({ path: request.path, body });
    const answer = answers.shift() ?? { body: success(request.path, body) };
    const isWhole = answer.cut === undefined && !answer.isLost && answer.raw === undefined;
    const text = typeof answer.body === 'string' ? answer.body : JSON.stringify(answer.body ?? {});
    isStopped = outcomeOf({ status: answer.status ?? 200, text, isWhole }) === 'stopped';
    if (answer.isHeld) return held.push({ socket, answer: { body: success(request.path, body), ...answer } });
    return answer.isLost ? socket.destroy() : write(socket, answer);
  };

  const listen = async () => {
    await new Promise((resolve) => server.listen(port, '127.0.0.1', resolve));
    ({ port } = server.address());
  };
  const begin = (sdkKey) => {
    key = sdkKey;
    [answers, requests, problems, held, underWay, isStopped] = [[], [], [], [], new Set(), false];
  };
  /** Refuses connections until `up`. */
  const down = async () => {
    const closed = new Promise((resolve) => server.close(resolve));
    for (const socket of sockets) socket.destroy();
    await closed;
  };
  begin('');
  await listen();
  return {
    url: `http://127.0.0.1:${port}`,
    begin,
    /** Sets the next answers. */
    script: (...next) => answers.push(...next),
    /** Answers what is held. */
    release: () => {
      for (const { socket, answer } of held.splice(0)) write(socket, answer);
    },
    /** A new start of the SDK may try a key again; a process that ended has no request under way. */
    restarted: () => {
      isStopped = false;
      underWay.clear();
    },
    state: () => ({ held: held.length }),
    requests: () => requests,
    problems: () => problems,
    down,
    up: listen,
    isUp: () => server.listening,
    close: down,
  };
}
