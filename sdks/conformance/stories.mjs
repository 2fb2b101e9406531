// Stories of bad days, told from SPEC.md alone, for the second scripted server (wire-server.mjs). `play` gets the driver of
// play.mjs as `sdk` and the server as `service`. After each story the server must have seen no forbidden request. A story has the
// `needs` and `options` of scenarios.
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';

const START = Date.UTC(2026, 0, 1);
const SECOND = 1_000;
const HOUR = 3_600 * SECOND;
const KEY = 'pk_live_story';
const TOKEN = '1a2b3c4d-0000-4000-8000-0000000000ff';
const LINK = `https://shop.test/?claim_token=${TOKEN}`;
const ATTRIBUTED = { attributionId: 'attribution-1', affiliateId: 'affiliate-1' };
const UNATTRIBUTED = { attributionId: null, affiliateId: null };
const raw = (first, ...lines) =>
  [first, 'Access-Control-Allow-Origin: *', 'Connection: close', ...lines].join('\r\n');
const redirect = (status) => ({ status, headers: { location: '/elsewhere' } });
const date = (ms) => new Date(START + ms).toUTCString();

/** Answers that are none: the SDK sends the same again (rules 9 and 10). */
const NO_ANSWERS = {
  'a lost answer': { isLost: true },
  'half a body': { body: ATTRIBUTED, cut: 20 },
  'bytes that are no HTTP': { raw: 'SSH-2.0-OpenSSH_9.2\r\n\r\n' },
  'a page with status 200': { body: '<p>Sign in to the Wi-Fi</p>', headers: { 'content-type': 'text/html' } },
  'an empty 200': { body: '' },
  'a 200 with null': { body: 'null' },
  'a 200 with a list': { body: '[{"attributionId":"a"}]' },
  'a 200 with a text': { body: '"attributionId"' },
  'a 200 without attributionId': { body: { affiliateId: 'affiliate-1' } },
  'a 200 whose attributionId is a number': { body: { ...ATTRIBUTED, attributionId: 1 } },
  'a 200 of 100,000 lists in each other': { body: '['.repeat(100_000) + ']'.repeat(100_000) },
  'a 200 of 100,000 objects in each other': {
    body: `${'{"a":'.repeat(100_000)}null${'}'.repeat(100_000)}`,
  },
  'a 200 with bytes that are no text': {
    raw: Buffer.concat([
      Buffer.from(`${raw('HTTP/1.1 200 OK')}\r\n\r\n{"attributionId":"`),
      Buffer.of(0xc3, 0x28, 0xff),
    ]),
  },
  'a 201': { status: 201, body: ATTRIBUTED },
  'a 204': { status: 204, body: '' },
  'a 302': redirect(302),
  'a 307': redirect(307),
  'a 308': redirect(308),
  'a 401 of a proxy': { status: 401, body: 'Password?' },
  'a 403 without a code': { status: 403, body: { message: 'Forbidden' } },
  'a 404 of another host': { status: 404, body: '<h1>Not Found</h1>' },
  'a 404 with a code that is no text': { status: 404, body: { code: 404 } },
  'a 408': { status: 408 },
  'a 425': { status: 425 },
  'a 429 without a time': { status: 429, body: { code: 'rate_limited' } },
  'a 500 with a code': { status: 500, body: { code: 'internal_error' } },
  'a 502 of a proxy': { status: 502, body: '<h1>Bad Gateway</h1>' },
  'a 503 with a final code': { status: 503, body: { code: 'no_attributable_click' } },
};

/** Strange answers that count. */
const ANSWERS = {
  'in chunks of one byte': {
    raw: `${raw('HTTP/1.1 200 OK', 'Transfer-Encoding: chunked')}\r\n\r\n${[...JSON.stringify(ATTRIBUTED)]
      .map((byte) => `1\r\n${byte}\r\n`)
      .join('')}0\r\n\r\n`,
  },
  'without a length': { raw: `${raw('HTTP/1.0 200 OK')}\r\n\r\n${JSON.stringify(ATTRIBUTED)}` },
  'with escapes, spaces and strange numbers': {
    body: ` {\n"attributionId" : "\\u0061\\ud83e\\udd8a\\/", "affiliateId":"affiliate\\u002d1",
      "future":[0,-0.0,1E+2,12345678901234567890123,-1.5e-320] }\r\n`,
  },
  'with unknown fields': { body: { ...ATTRIBUTED, future: { deep: [1, { two: null }] } } },
};

/** Answers that end a touch (rule 9). */
const FINAL = {
  'a 400': { status: 400, body: { code: 'invalid_request' } },
  'a 404 no_attributable_click': { status: 404, body: { code: 'no_attributable_click' } },
  'a 409': { status: 409, body: { code: 'ambiguous_match' } },
  'a 413': { status: 413, body: { code: 'payload_too_large' } },
  'a 422': { status: 422 },
};

/** Answers after which nothing is sent until the next start (rule 9). */
const STOPS = {
  'a 401 unauthorized': { status: 401, body: { code: 'unauthorized' } },
  'a 403 forbidden': { status: 403, body: { code: 'forbidden' } },
  'a 404 not_found': { status: 404, body: { code: 'not_found' } },
};

/** Values of `Retry-After`, with the seconds that the SDK waits at least, and at most (rule 10). */
const RETRY_AFTER = {
  'of seconds': [{ 'retry-after': '120' }, 120, 180],
  'of a date, counted from the Date of the answer': [
    { 'retry-after': date(HOUR + 120 * SECOND), date: date(HOUR) },
    120,
    180,
  ],
  'of more than a day': [{ 'retry-after': '9999999' }, 86_400, 129_600],
  'of a date that has passed': [{ 'retry-after': date(-HOUR), date: date(0) }, 1, 2],
  'of words': [{ 'retry-after': 'soon' }, 1, 2],
  'of less than nothing': [{ 'retry-after': '-60' }, 1, 2],
};

const stories = [];
const story = (name, play, needs = [], options = {}) =>
  stories.push({ name: `second server: ${name}`, needs, options, play });
const tokens = (service) => service.requests().filter(({ body }) => body.claimToken === TOKEN).length;
const kinds = (service) =>
  service
    .requests()
    .map(({ body }) => body.customerUserId ?? body.affiliateCode ?? (body.deferred ? 'deferred' : 'token'));
const devices = (service) => new Set(service.requests().map(({ body }) => body.deviceId)).size;

for (const [name, answer] of Object.entries(NO_ANSWERS))
  story(`after ${name} the same is sent again`, async ({ sdk, service }) => {
    service.script(answer);
    await sdk.start(LINK);
    await sdk.settle();
    assert.equal(await sdk.call('attributedAffiliateId'), null);
    await sdk.advance(SECOND - 1);
    assert.equal(tokens(service), 1, 'before the wait is over');
    await sdk.advance(1);
    assert.equal(tokens(service), 2, 'after the wait');
    assert.deepEqual(service.requests()[1], service.requests()[0]);
    assert.equal(await sdk.call('attributedAffiliateId'), 'affiliate-1');
  });

for (const [name, answer] of Object.entries(ANSWERS))
  story(`an answer ${name} counts`, async ({ sdk, service }) => {
    service.script(answer);
    await sdk.start(LINK);
    await sdk.settle();
    assert.equal(await sdk.call('attributedAffiliateId'), 'affiliate-1');
    await sdk.advance(HOUR);
    assert.deepEqual(kinds(service), ['token']);
  });

for (const [name, answer] of Object.entries(FINAL))
  story(`after ${name} the referral is not sent again, and the user is`, async ({ sdk, service }) => {
    service.script(answer);
    await sdk.start(LINK);
    await sdk.settle();
    assert.equal(await sdk.call('identify', 'user-1'), true);
    await sdk.advance(HOUR);
    await sdk.restart();
    await sdk.start();
    await sdk.settle();
    assert.equal(tokens(service), 1);
  });

for (const [name, answer] of Object.entries(STOPS))
  story(`after ${name} everything waits for the next start`, async ({ sdk, service }) => {
    service.script(answer);
    await sdk.start(LINK);
    await sdk.settle();
    assert.equal(await sdk.call('identify', 'user-1'), false);
    await sdk.advance(HOUR / 2);
    assert.deepEqual(kinds(service), ['token']);
    await sdk.restart();
    await sdk.start();
    await sdk.settle();
    assert.deepEqual(kinds(service), ['token', 'token', 'user-1']);
  });

for (const [name, [headers, least, most]] of Object.entries(RETRY_AFTER))
  story(`a Retry-After ${name} is obeyed, also after a restart`, async ({ sdk, service }) => {
    service.script({
      status: 503,
      headers: { ...headers, 'access-control-expose-headers': 'Date, Retry-After' },
    });
    await sdk.start(LINK);
    await sdk.settle();
    await sdk.advance((least * SECOND) / 2);
    if (least > 5) {
      await sdk.restart();
      await sdk.start();
      assert.equal(await sdk.call('identify', 'user-1'), false);
    }
    await sdk.advance((least * SECOND) / 2 - 1);
    assert.equal(tokens(service), 1, 'before the wait is over');
    await sdk.advance((most - least) * SECOND + 1);
    assert.equal(tokens(service), 2, 'after the wait');
  });

story('what a dead service did not take is delivered in order', async ({ sdk, service }) => {
  await service.down();
  await sdk.start(LINK);
  await sdk.settle();
  assert.equal(await sdk.call('identify', 'user-1'), false);
  await sdk.advance(10 * SECOND);
  await sdk.restart();
  await service.up();
  await sdk.start();
  await sdk.advance(60 * SECOND);
  assert.deepEqual(kinds(service), ['token', 'user-1']);
  assert.equal(service.requests()[0].body.firstOpenAt, START);
});

story(
  'a service that takes a request and says nothing is given up after ten seconds',
  async ({ sdk, service }) => {
    service.script({ isHeld: true });
    await sdk.start(LINK);
    await sdk.settle();
    await sdk.advance(10 * SECOND - 1);
    assert.equal(service.state().held, 1);
    await sdk.advance(1);
    // Chromium goes on for half a minute with a request that was given up.
    for (let n = 0; n < 450 && service.state().held > 0; n += 1) await sleep(100);
    assert.equal(service.state().held, 0);
    await sdk.advance(SECOND);
    assert.equal(tokens(service), 2);
  },
);

story('an answer that comes after a reset counts for nothing', async ({ sdk, service }) => {
  service.script({ isHeld: true });
  await sdk.start(LINK);
  await sdk.settle();
  await sdk.call('reset');
  service.release();
  await sdk.settle();
  assert.equal(await sdk.call('attributedAffiliateId'), null);
  await sdk.advance(HOUR);
  assert.equal(tokens(service), 1);
  assert.doesNotMatch((await sdk.stored()) ?? '', new RegExp(`${TOKEN}|affiliate-1`));
});

story('a refusal during a request ends everything, also after a restart', async ({ sdk, service }) => {
  service.script({ isHeld: true });
  await sdk.start(LINK);
  await sdk.settle();
  void sdk.call('identify', 'user-1');
  await sdk.call('setEnabled', false);
  service.release();
  await sdk.settle();
  await sdk.advance(HOUR);
  await sdk.restart();
  await sdk.start(LINK);
  await sdk.advance(HOUR);
  assert.equal(tokens(service), 1);
  assert.doesNotMatch((await sdk.stored()) ?? '', new RegExp(`${TOKEN}|affiliate-1|user-1`));
});

story('a user id is sent exactly as given', async ({ sdk, service }) => {
  await sdk.start();
  const users = [' leading', 'quote " and \\ and </script>', 'Zoe\u0308 \u{1F98A}', '\u{1F98A}'.repeat(256)];
  for (const user of users) assert.equal(await sdk.call('identify', user), true);
  assert.deepEqual(kinds(service), users);
});

story(
  'a user id that is too long or empty is not sent, and one of 512 characters is',
  async ({ sdk, service }) => {
    await sdk.start();
    const fox = '\u{1F98A}';
    for (const user of ['', `${fox.repeat(256)}x`, 'x'.repeat(513)])
      assert.equal(await sdk.call('identify', user), false);
    await sdk.settle();
    assert.deepEqual(service.requests(), []);
    assert.equal(await sdk.call('identify', 'x'.repeat(512)), true);
  },
);

story('a code has the time of its entry, and an accepted one is not sent again', async ({ sdk, service }) => {
  service.script({ status: 503 });
  await sdk.start();
  await sdk.advance(90 * SECOND);
  assert.equal(await sdk.call('applyCode', 'Spring'), false);
  await sdk.advance(60 * SECOND);
  await sdk.call('applyCode', 'SPRING');
  const bodies = service.requests().map(({ body }) => body);
  assert.equal(bodies.length, 2);
  for (const { affiliateCode, codeEnteredAt, firstOpenAt } of bodies)
    assert.deepEqual([affiliateCode, codeEnteredAt, firstOpenAt], ['Spring', START + 90 * SECOND, START]);
});

story('a user without attribution is sent again when the install is attributed', async ({ sdk, service }) => {
  service.script({ body: UNATTRIBUTED });
  await sdk.start();
  assert.equal(await sdk.call('identify', 'user-1'), false);
  assert.equal(await sdk.call('identify', 'user-1'), false);
  await sdk.call('applyCode', 'spring');
  await sdk.settle();
  assert.deepEqual(kinds(service), ['user-1', 'spring', 'user-1']);
  assert.equal(await sdk.call('identify', 'user-1'), true);
  assert.equal(service.requests().length, 3);
});

story('of seven codes of a dead service the last five are sent', async ({ sdk, service }) => {
  await service.down();
  await sdk.start();
  for (let code = 1; code <= 7; code += 1) await sdk.call('applyCode', `code-${code}`);
  await sdk.restart();
  await service.up();
  await sdk.start();
  await sdk.advance(60 * SECOND);
  assert.deepEqual(kinds(service), ['code-3', 'code-4', 'code-5', 'code-6', 'code-7']);
});

story('a wrong clock is corrected once, by the Date of the refusal', async ({ sdk, service }) => {
  const refusal = {
    status: 400,
    headers: { date: date(-240 * HOUR) },
    body: { code: 'invalid_request', errors: [{ path: 'firstOpenAt', message: 'in the future' }] },
  };
  service.script(refusal, refusal);
  await sdk.start(LINK);
  await sdk.advance(HOUR);
  const times = service.requests().map(({ body }) => body.firstOpenAt);
  assert.equal(times.length, 2);
  assert.equal(times[0], START);
  assert.ok(Math.abs(times[1] - (START - 240 * HOUR)) <= SECOND, String(times[1]));
});

story('a user whose signature is refused is dropped, and the next one is not', async ({ sdk, service }) => {
  service.script({ status: 401, body: { code: 'invalid_signature' } });
  await sdk.start();
  assert.equal(await sdk.call('identify', 'user-1', { signature: 'wrong' }), false);
  assert.equal(await sdk.call('identify', 'user-2', { signature: 'right' }), true);
  await sdk.advance(HOUR);
  assert.deepEqual(
    service.requests().map(({ body }) => body.signature),
    ['wrong', 'right'],
  );
  assert.equal(await sdk.call('attributedAffiliateId'), 'affiliate-1');
});

story('an affiliate that is no text is none, and the attribution counts', async ({ sdk, service }) => {
  service.script({ body: { attributionId: 'attribution-1', affiliateId: 7 } });
  await sdk.start(LINK);
  await sdk.advance(HOUR);
  assert.deepEqual(kinds(service), ['token']);
  assert.equal(await sdk.call('attributedAffiliateId'), null);
});

story(
  'of an address only via and claim_token are read, and one request has both',
  async ({ sdk, service }) => {
    await sdk.start('https://shop.test/?code=secret&ref=friend&state=1#via=hash');
    await sdk.call('attribute', 'https://shop.test/?claim_token=&via=');
    await sdk.call('attribute', 'https://shop.test/?claim_token=not-a-uuid');
    await sdk.settle();
    assert.deepEqual(service.requests(), []);
    assert.equal(await sdk.call('attribute', `${LINK}&via=Spring%20Sale&via=second&code=secret`), true);
    const [{ body }] = service.requests();
    assert.deepEqual([body.claimToken, body.affiliateCode], [TOKEN, 'Spring Sale']);
    assert.equal(service.requests().length, 1);
  },
);

story('what has waited more than 90 days is dropped', async ({ sdk, service }) => {
  await service.down();
  await sdk.start(LINK);
  await sdk.settle();
  await sdk.call('identify', 'user-1');
  await sdk.clock(91 * 24 * HOUR);
  await sdk.restart();
  await service.up();
  await sdk.start();
  await sdk.advance(60 * SECOND);
  assert.equal(await sdk.call('applyCode', 'new'), true);
  assert.deepEqual(kinds(service), ['new']);
});

story(
  'calls before the start are sent after it, codes first',
  async ({ sdk, service }) => {
    assert.equal(await sdk.call('identify', 'user-1'), false);
    assert.equal(await sdk.call('applyCode', 'spring'), false);
    assert.deepEqual(service.requests(), []);
    await sdk.start();
    await sdk.settle();
    await sdk.start();
    await sdk.settle();
    assert.deepEqual(kinds(service), ['spring', 'user-1']);
  },
  ['start'],
);

story(
  'while the consent is undecided nothing is sent or stored, and then everything is sent',
  async ({ sdk, service }) => {
    await sdk.call('setEnabled', false);
    await sdk.start(LINK);
    assert.equal(await sdk.call('identify', 'user-1'), false);
    await sdk.advance(HOUR);
    assert.deepEqual(service.requests(), []);
    assert.doesNotMatch(await sdk.stored(), new RegExp(`${TOKEN}|user-1|affiliate-1`));
    await sdk.call('setEnabled', true);
    await sdk.settle();
    assert.deepEqual(kinds(service), ['token', 'user-1']);
    assert.equal(devices(service), 1);
    assert.equal(service.requests()[0].body.firstOpenAt, START);
  },
  ['start'],
);

story(
  'a refusal after an undecided consent deletes what waits, and a later consent begins anew',
  async ({ sdk, service }) => {
    await sdk.call('setEnabled', false);
    await sdk.start(LINK);
    await sdk.call('identify', 'user-1');
    await sdk.call('setEnabled', false);
    await sdk.settle();
    await sdk.restart();
    await sdk.start();
    await sdk.call('setEnabled', true);
    await sdk.advance(HOUR);
    assert.deepEqual(service.requests(), []);
    assert.equal(await sdk.call('applyCode', 'spring'), true);
    assert.equal(service.requests()[0].body.firstOpenAt, START);
  },
  ['start'],
);

story(
  'after a reset the next person is another device, and sends nothing of the first',
  async ({ sdk, service }) => {
    await sdk.start(LINK);
    await sdk.settle();
    assert.equal(await sdk.call('identify', 'user-1'), true);
    await sdk.call('reset');
    assert.equal(await sdk.call('identify', 'user-2'), true);
    // A process that ends before an answer is stored sends the user again.
    await sdk.settle();
    await sdk.restart();
    await sdk.start();
    await sdk.settle();
    assert.deepEqual(kinds(service), ['token', 'user-1', 'user-2']);
    assert.equal(devices(service), 2);
  },
  ['start'],
);

for (const event of ['online', 'foreground']) {
  story(
    `the event "${event}" tries at once, but not within five seconds after a failure`,
    async ({ sdk, service }) => {
      service.script({ status: 503 }, { status: 503 }, { status: 503 }, { status: 503 });
      await sdk.start(LINK);
      await sdk.settle();
      for (const wait of [1, 2, 4]) await sdk.advance(wait * SECOND);
      assert.equal(tokens(service), 4);
      // The next try is eight seconds away.
      await sdk.advance(4 * SECOND);
      await sdk.event(event);
      await sdk.settle();
      assert.equal(tokens(service), 4, 'four seconds after the failure');
      await sdk.advance(SECOND);
      await sdk.event(event);
      await sdk.settle();
      assert.equal(tokens(service), 5, 'five seconds after the failure');
    },
    [event],
  );

  story(
    `the event "${event}" does not shorten a Retry-After`,
    async ({ sdk, service }) => {
      service.script({ status: 503, headers: { 'retry-after': '60' } });
      await sdk.start(LINK);
      await sdk.settle();
      await sdk.advance(59 * SECOND);
      await sdk.event(event);
      await sdk.settle();
      assert.equal(tokens(service), 1);
      await sdk.advance(31 * SECOND);
      assert.equal(tokens(service), 2);
    },
    [event],
  );
}

const NO_MATCH = { status: 404, body: { code: 'no_attributable_click' } };
/** The option is not given. */
const DEFAULT = { deferredMatch: null };

story(
  'a first open without a referral is matched once, after two seconds, and the user waits for it',
  async ({ sdk, service }) => {
    service.script({ status: 503 }, NO_MATCH);
    await sdk.start();
    void sdk.call('identify', 'user-1');
    await sdk.advance(2 * SECOND - 1);
    assert.deepEqual(service.requests(), []);
    await sdk.advance(1);
    assert.deepEqual(kinds(service), ['deferred']);
    await sdk.advance(60 * SECOND);
    assert.deepEqual(kinds(service), ['deferred', 'deferred', 'user-1']);
    await sdk.call('reset');
    await sdk.restart();
    await sdk.start();
    await sdk.advance(HOUR);
    assert.equal(service.requests().length, 3);
  },
  ['deferredOnByDefault'],
  DEFAULT,
);

story(
  'an app that was opened by a link asks for no match',
  async ({ sdk, service }) => {
    service.script({ status: 503 });
    await sdk.start(LINK);
    await sdk.advance(HOUR);
    await sdk.restart();
    await sdk.start();
    await sdk.advance(HOUR);
    assert.deepEqual(kinds(service), ['token', 'token']);
  },
  ['deferredOnByDefault'],
  DEFAULT,
);

story(
  'a match that was not answered is not asked for a day after the first open',
  async ({ sdk, service }) => {
    await service.down();
    await sdk.start();
    await sdk.advance(60 * SECOND);
    await sdk.clock(24 * HOUR);
    await sdk.restart();
    await service.up();
    await sdk.start();
    assert.equal(await sdk.call('identify', 'user-1'), true);
    await sdk.advance(HOUR);
    assert.deepEqual(kinds(service), ['user-1']);
  },
  ['deferredOnByDefault'],
  DEFAULT,
);

story(
  'where the match is off, a first open asks for none',
  async ({ sdk, service }) => {
    await sdk.start();
    await sdk.advance(HOUR);
    assert.deepEqual(service.requests(), []);
  },
  ['deferredOffByDefault'],
  DEFAULT,
);

/** All stories; they have `name` and `needs` as scenarios do. */
export const STORIES = stories;

/** Plays a story with a driver of play.mjs that was made for this server. */
export async function playStory({ play, options }, { server: service, driver }) {
  const held = () => service.state().held;
  service.begin(KEY);
  await driver.begin({ host: service.url, options: { apiKey: KEY, ...options }, store: null, storage: 'ok' });
  const sdk = {
    ...driver,
    start: (url = null) => {
      service.restarted();
      return driver.start(url);
    },
    settle: () => driver.settled(held),
    advance: async (ms) => {
      await driver.settled(held);
      await driver.advance(ms);
      await driver.settled(held);
    },
  };
  try {
    await play({ sdk, service });
    assert.deepEqual(service.problems(), []);
  } finally {
    await driver.end?.();
    if (!service.isUp()) await service.up();
  }
}
