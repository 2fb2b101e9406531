// A scripted stand-in for the service. It answers each request with the next entry of the script for its path. Plain Node
// without packages, so that every SDK's tests can start it: `node server.mjs [PORT]` prints its address and takes
//   PUT /_/script     the script, which also forgets the requests so far
//   PUT /_/network    { "offline": true } breaks every connection
//   POST /_/release   answers the held requests
//   GET /_/state      { requests, held, unused, unexpected }
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { fileURLToPath } from 'node:url';

const ANSWERS = JSON.parse(readFileSync(new URL('answers.json', import.meta.url), 'utf8'));

const CORS = {
  'access-control-allow-origin': '*',
  'access-control-allow-methods': 'POST, PUT, GET',
  'access-control-allow-headers': 'authorization, content-type',
  'access-control-expose-headers': 'date, retry-after, x-request-id',
};

/** Returns the status, headers and text of an entry's answer: a name, or `{ name?, status?, headers?, body?, text? }`. */
export function answerOf({ answer = 'unexpected' }, body = {}) {
  const fields = typeof answer === 'string' ? { name: answer } : answer;
  const named = ANSWERS[fields.name] ?? {};
  const status = fields.status ?? named.status ?? 500;
  const problem = named.problem && {
    type: `urn:tributary:error:${named.problem}`,
    title: named.problem,
    status,
    code: named.problem,
    requestId: 'req_1',
    ...(named.errors && { errors: named.errors }),
  };
  const content = { ...named.body, ...problem, ...fields.body };
  if ('customerUserId' in content) content.customerUserId = body.customerUserId;
  return { status, headers: { ...CORS, ...fields.headers }, text: fields.text ?? JSON.stringify(content) };
}

const FAULTS = {
  reset: (response) => response.socket.resetAndDestroy(),
  hang: () => {},
  portal: (response) =>
    response.writeHead(200, { ...CORS, 'content-type': 'text/html' }).end('<html>Please log in</html>'),
  redirect: (response) => response.writeHead(307, { ...CORS, location: '/_/portal' }).end(),
  cut: (response) => {
    response.writeHead(200, { ...CORS, 'content-type': 'application/json', 'content-length': 500 });
    response.write('{"attributionId":"att_1",');
    setImmediate(() => response.destroy());
  },
};

async function readJson(request) {
  let text = '';
  for await (const chunk of request) text += chunk;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** Starts a server on a loopback port. */
export async function startServer(port = 0) {
  let script = [];
  let requests = [];
  let unexpected = [];
  let offline = false;
  let beforePreflight = async () => {};
  const held = new Set();

  const reply = (response, entry, body) => {
    const { status, headers, text } = answerOf(entry, body);
    response.sendDate = false;
    response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(text);
  };

  const control = async (request, response) => {
    const body = await readJson(request);
    if (request.url === '/_/script') load(body);
    if (request.url === '/_/network') offline = body.offline;
    if (request.url === '/_/release') release();
    const result = request.url === '/_/portal' ? ANSWERS.won.body : state();
    response.writeHead(200, { ...CORS, 'content-type': 'application/json' }).end(JSON.stringify(result));
  };

  const server = createServer(async (request, response) => {
    // A browser repeats a request by itself if a connection breaks that it has used before.
    response.shouldKeepAlive = false;
    if (request.method === 'OPTIONS' && !offline) {
      await beforePreflight();
      return void response.writeHead(204, CORS).end();
    }
    if (request.url.startsWith('/_/')) return void (await control(request, response));
    if (offline) return void FAULTS.reset(response);
    const path = request.url.replace('/sdk/', '');
    const body = await readJson(request);
    const received = { path, body, authorization: request.headers.authorization };
    requests.push(received);
    const index = script.findIndex((entry) => entry.path === path);
    const [entry] = index === -1 ? [] : script.splice(index, 1);
    if (entry === undefined) {
      unexpected.push(received);
      return void reply(response, {}, body);
    }
    if (entry.hold || entry.fault === 'hang') {
      const answer = () => entry.hold && reply(response, entry, body);
      held.add(answer);
      response.on('close', () => held.delete(answer));
      return;
    }
    if (entry.fault) return void FAULTS[entry.fault](response);
    reply(response, entry, body);
  });

  const load = (entries) => {
    script = entries.flatMap(({ times = 1, ...entry }) => Array.from({ length: times }, () => entry));
    requests = [];
    unexpected = [];
    offline = false;
    // What the scenario before has given up is not of this one, also where a browser goes on with it.
    held.clear();
  };
  const release = () => {
    for (const answer of held) answer();
  };
  const state = () => ({ requests, held: held.size, unused: script.length, unexpected });

  await new Promise((resolve) => server.listen(port, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    load,
    release,
    state,
    /** Sets what the answer to a browser's preflight waits for. */
    onPreflight: (wait) => {
      beforePreflight = wait;
    },
    setOffline: (value) => {
      offline = value;
    },
    close: () => {
      server.close();
      server.closeAllConnections();
    },
  };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { url } = await startServer(Number(process.argv[2] ?? 0));
  console.log(url);
}
