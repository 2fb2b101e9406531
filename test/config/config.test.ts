import { randomBytes } from 'node:crypto';
import { Writable } from 'node:stream';
import { describe, expect, test } from '@jest/globals';
import { ConfigError, readConfig } from '../../src/config/config.ts';
import { driverAddress, tlsAdvice } from '../../src/config/database-url.ts';
import { createLogger } from '../../src/config/logger.ts';
import { createSecretBox, SecretUnreadable } from '../../src/config/secret-box.ts';
import type { SecretBox } from '../../src/config/secret-box.ts';

describe('the environment', () => {
  // @promise limit-defaults, variable-defaults
  test('an empty environment has the documented defaults', () => {
    expect(readConfig({ PORT: '', DATABASE_URL: ' ' })).toEqual({
      host: '127.0.0.1',
      port: 3000,
      publicUrl: undefined,
      role: 'all',
      databaseUrl: undefined,
      migrationsDatabaseUrl: undefined,
      temporal: { address: undefined, namespace: 'default', apiKey: undefined },
      dataDir: '.data',
      secretsKeys: [],
      trustProxy: 0,
      maxPaymentCents: 100_000_000,
      retention: {
        idempotency_keys: 1,
        identities: 90,
        refused_counters: 90,
        user_agents: 90,
        bodies: 400,
        webhook_messages: 90,
        emails: 90,
      },
      rateLimits: {
        address: 1_200,
        account: 600,
        sdk: 60,
        clicks: 120,
        identify: 60,
        refusals: 600,
        signIn: 10,
        reports: 30,
        failures: 120,
      },
      maxConnections: 2_000,
      sharedHostApps: 'all',
      drainSeconds: 0,
      admission: { webhooks: 32, openCalls: 32 },
      databaseConnections: 20,
      webhookTargets: 'public',
      mail: null,
      holdTimers: 'workflow',
      lostKeys: 'refuse',
      ratesUrl: 'https://www.ecb.europa.eu/stats/eurofxref/eurofxref.zip',
      temporalUiUrl: undefined,
      tracesEndpoint: null,
      logLevel: 'info',
      metricsPort: undefined,
      metricsHost: '127.0.0.1',
    });
  });

  // @promise variable-defaults
  test('SECRETS_KEY may hold several keys, and PUBLIC_URL may end in a slash', () => {
    const keys = [randomBytes(32), randomBytes(32)];
    const SECRETS_KEY = keys.map((key) => key.toString('base64')).join(', ');
    const config = readConfig({ SECRETS_KEY, PUBLIC_URL: 'https://api.example.com/base/', TRUST_PROXY: '2' });
    expect(config.secretsKeys).toEqual(keys);
    expect(config.publicUrl).toBe('https://api.example.com/base');
    expect(config.trustProxy).toBe(2);
    expect(readConfig({ TEMPORAL_UI_URL: 'https://ui.example.com/' }).temporalUiUrl).toBe(
      'https://ui.example.com',
    );
    expect(() => readConfig({ TEMPORAL_UI_URL: 'ui.example.com' })).toThrow('TEMPORAL_UI_URL must be');
  });

  // @promise database-verified
  test.each([
    ['postgres://u:p@127.0.0.1:5432/d', 'postgres://u:p@127.0.0.1:5432/d'],
    ['postgres://u:p@localhost/d?sslmode=prefer', 'postgres://u:p@localhost/d?sslmode=prefer'],
    ['postgres://u:p@[::1]/d', 'postgres://u:p@[::1]/d'],
    ['postgres://u:p@db.example.com:5432/d', 'postgres://u:p@db.example.com:5432/d?sslmode=verify-full'],
    ['postgres://u@db.example.com/d?sslmode=require', 'postgres://u@db.example.com/d?sslmode=verify-full'],
    ['postgres://u@db.example.com/d?sslmode=prefer', 'postgres://u@db.example.com/d?sslmode=verify-full'],
    ['postgres://u@10.0.0.5/d?sslmode=verify-full', 'postgres://u@10.0.0.5/d?sslmode=verify-full'],
    ['postgres://u@db.internal/d?sslmode=disable', 'postgres://u@db.internal/d?sslmode=disable'],
    ['postgres://u@db.internal/d?sslmode=no-verify', 'postgres://u@db.internal/d?sslmode=no-verify'],
  ])('DATABASE_URL %s is used as %s', (given, used) => {
    expect(readConfig({ DATABASE_URL: given }).databaseUrl).toBe(used);
  });

  test('a database that cannot be verified is reported with the ways out', () => {
    const url = 'postgres://u@db.internal/d?sslmode=verify-full';
    const refused = new Error('The server does not support SSL connections');
    expect(tlsAdvice(url, refused)).toContain('sslmode=disable');
    const selfSigned = Object.assign(new Error('x'), { code: 'DEPTH_ZERO_SELF_SIGNED_CERT' });
    expect(tlsAdvice(url, selfSigned)).toContain('NODE_EXTRA_CA_CERTS');
    expect(tlsAdvice(url, new Error('connect ECONNREFUSED'))).toBeNull();
    expect(tlsAdvice('postgres://u@127.0.0.1/d', refused)).toBeNull();
  });

  test.each([
    ['postgres://u@10.0.0.5/d?sslmode=verify-full', 'postgres://u@10.0.0.5/d', { host: '10.0.0.5' }],
    ['postgres://u@[::2]/d?sslmode=verify-ca', 'postgres://u@[::2]/d', { host: '::2' }],
    ['postgres://u@db/d?sslmode=verify-full&sslrootcert=system', 'postgres://u@db/d', { host: 'db' }],
    ['postgres://u@db/d?sslmode=no-verify', 'postgres://u@db/d', { rejectUnauthorized: false }],
    ['postgres://u@localhost/d?sslmode=require', 'postgres://u@localhost/d', { rejectUnauthorized: false }],
    ['postgres://u@localhost/d?sslmode=prefer', 'postgres://u@localhost/d', false],
    ['postgres://u@db/d?sslmode=disable', 'postgres://u@db/d', false],
    ['postgres://u@127.0.0.1/d', 'postgres://u@127.0.0.1/d', false],
  ])('both drivers receive one TLS option for %s', (address, url, ssl) => {
    expect(driverAddress(address)).toEqual({ url, ssl });
  });

  test('a missing file of sslrootcert is refused with what to do', () => {
    expect(() => readConfig({ DATABASE_URL: 'postgres://u@db/d?sslrootcert=/no/such/file' })).toThrow(
      "DATABASE_URL has an sslrootcert that can't be read. Give it the path of a file with certificates",
    );
  });

  test('MAX_PAYMENT_USD is a million dollars by default and is read as cents', () => {
    expect(readConfig({}).maxPaymentCents).toBe(100_000_000);
    expect(readConfig({ MAX_PAYMENT_USD: '2500' }).maxPaymentCents).toBe(250_000);
  });

  // @promise hold-timers-sweep
  test('HOLD_TIMERS=sweep leaves maturing to the sweep', () => {
    expect(readConfig({}).holdTimers).toBe('workflow');
    expect(readConfig({ HOLD_TIMERS: 'sweep' }).holdTimers).toBe('sweep');
  });

  test('WEBHOOK_TARGETS=any permits endpoints with private addresses, which are refused by default', () => {
    expect(readConfig({}).webhookTargets).toBe('public');
    expect(readConfig({ WEBHOOK_TARGETS: 'any' }).webhookTargets).toBe('any');
  });

  test('each retention is a number of days, and 0 keeps the data', () => {
    const environment = {
      RETAIN_IDEMPOTENCY_DAYS: '2',
      RETAIN_IDENTITIES_DAYS: '30',
      RETAIN_REFUSED_DAYS: '31',
      RETAIN_USER_AGENTS_DAYS: '32',
      RETAIN_BODIES_DAYS: '0',
      RETAIN_MESSAGES_DAYS: '33',
      RETAIN_EMAILS_DAYS: '34',
    };
    expect(readConfig(environment).retention).toEqual({
      idempotency_keys: 2,
      identities: 30,
      refused_counters: 31,
      user_agents: 32,
      bodies: 0,
      webhook_messages: 33,
      emails: 34,
    });
  });

  test('RATES_URL names where exchange rates are fetched from, or switches fetching off', () => {
    const RATES_URL = 'http://127.0.0.1:8080/rates.csv?key=1';
    expect(readConfig({ RATES_URL }).ratesUrl).toBe(RATES_URL);
    expect(readConfig({ RATES_URL: 'off' }).ratesUrl).toBeNull();
    expect(readConfig({ RATES_URL: '' }).ratesUrl).toBeNull();
  });

  test('SMTP_URL and MAIL_FROM name the mail server and the sender', () => {
    const env = {
      SMTP_URL: 'smtps://user:p%40ss@smtp.example.com:2465',
      MAIL_FROM: 'Lantern <partners@example.com>',
    };
    const PUBLIC_URL = 'https://api.example.com/';
    expect(readConfig({ ...env, PUBLIC_URL }).mail).toEqual({
      smtpUrl: env.SMTP_URL,
      from: env.MAIL_FROM,
      publicUrl: 'https://api.example.com',
    });
  });

  test.each([
    [{ SMTP_URL: 'smtp://smtp.example.com', PUBLIC_URL: 'https://a.example.com' }, 'MAIL_FROM'],
    [{ MAIL_FROM: 'partners@example.com', PUBLIC_URL: 'https://a.example.com' }, 'SMTP_URL'],
    [{ SMTP_URL: 'smtp://smtp.example.com', MAIL_FROM: 'partners@example.com' }, 'PUBLIC_URL'],
  ])('settings of mail without the ones that they need are refused: %j needs %s', (env, missing) => {
    expect(() => readConfig(env)).toThrow(new RegExp(`${missing} must be set together with .*\\.`));
  });

  // @promise variable-refused
  test.each([
    ['PORT', '65536'],
    ['PORT', '3000.5'],
    ['ROLE', 'web'],
    ['PUBLIC_URL', 'api.example.com'],
    ['PUBLIC_URL', 'https:///api.example.com'],
    ['PUBLIC_URL', 'https:api.example.com'],
    ['PUBLIC_URL', ' https://api.example.com'],
    ['DATABASE_URL', 'mysql://x'],
    ['MIGRATIONS_DATABASE_URL', 'mysql://x'],
    ['DATABASE_URL', 'postgres://db.example.com/d?sslmode=always'],
    ['TEMPORAL_ADDRESS', 'https://temporal'],
    ['SECRETS_KEY', 'c2hvcnQ='],
    ['TRUST_PROXY', 'true'],
    ['RATE_LIMIT_ADDRESS', '-1'],
    ['MAX_CONNECTIONS', '9'],
    ['SHARED_HOST_APPS', 'android'],
    ['WEBHOOKS_IN_FLIGHT', '-1'],
    ['OPEN_CALLS_IN_FLIGHT', 'many'],
    ['DATABASE_CONNECTIONS', '3'],
    ['HOLD_TIMERS', 'none'],
    ['RETAIN_IDEMPOTENCY_DAYS', '0'],
    ['RETAIN_BODIES_DAYS', '-1'],
    ['MAX_PAYMENT_USD', '0'],
    ['MAX_PAYMENT_USD', '12.50'],
    ['RATES_URL', 'ecb.europa.eu'],
    ['RATES_URL', 'file:///etc/rates.csv'],
    ['SMTP_URL', 'smtp.example.com'],
    ['SMTP_URL', 'https://smtp.example.com'],
    ['SMTP_URL', 'smtp:///smtp.example.com'],
    ['SMTP_URL', 'smtps://user@smtp.example.com'],
    ['SMTP_URL', 'smtps://user:100%@smtp.example.com'],
    ['SMTP_URL', 'smtp://smtp.example.com/?tls=off'],
    ['MAIL_FROM', 'partners'],
    ['MAIL_FROM', 'Lantern <partners>'],
    ['MAIL_FROM', 'one@example.com, two@example.com'],
    ['LOG_LEVEL', 'loud'],
    ['METRICS_PORT', '0'],
  ])('%s=%s is refused with a sentence that names the variable', (name, value) => {
    expect(() => readConfig({ [name]: value })).toThrow(ConfigError);
    expect(() => readConfig({ [name]: value })).toThrow(new RegExp(`${name} must .*\\.`));
  });
});

describe('the secret box', () => {
  const [one, two] = [randomBytes(32), randomBytes(32)];

  // @promise ciphertext-bound
  test('a secret decrypts only unchanged and in its own context, and encrypts differently each time', () => {
    const box = createSecretBox([one]);
    const sealed = box.encrypt('sëcret', 'app:stripe');
    expect(box.decrypt(sealed.ciphertext, sealed.encryptionKeyId, 'app:stripe')).toBe('sëcret');
    expect(box.encrypt('sëcret', 'app:stripe').ciphertext.equals(sealed.ciphertext)).toBe(false);
    expect(() => box.decrypt(sealed.ciphertext, sealed.encryptionKeyId, 'other:stripe')).toThrow(
      SecretUnreadable,
    );
    const changed = Buffer.from(sealed.ciphertext);
    changed[changed.length - 1] = (changed.at(-1) ?? 0) ^ 1;
    expect(() => box.decrypt(changed, sealed.encryptionKeyId, 'app:stripe')).toThrow(SecretUnreadable);
    expect(() => box.decrypt(Buffer.alloc(3), sealed.encryptionKeyId, 'app:stripe')).toThrow(
      SecretUnreadable,
    );
  });

  // @promise first-key-encrypts
  test('the first key encrypts and every key decrypts; without its key a secret is unreadable', () => {
    const sealed = createSecretBox([one]).encrypt('x', 'c');
    const rotated = createSecretBox([two, one]);
    expect(rotated.decrypt(sealed.ciphertext, sealed.encryptionKeyId, 'c')).toBe('x');
    expect(rotated.encrypt('x', 'c').encryptionKeyId).not.toBe(sealed.encryptionKeyId);
    expect(() => createSecretBox([two]).decrypt(sealed.ciphertext, sealed.encryptionKeyId, 'c')).toThrow(
      SecretUnreadable,
    );
  });

  // @promise missing-key-waits
  test('a secret is lost permanently if it was changed, or if its key is missing and the operator accepts that', () => {
    const { ciphertext, encryptionKeyId } = createSecretBox([one]).encrypt('x', 'c');
    const isLost = (box: SecretBox, context: string) => {
      try {
        return box.decrypt(ciphertext, encryptionKeyId, context);
      } catch (error) {
        return error instanceof SecretUnreadable ? error.isLost : error;
      }
    };
    expect(isLost(createSecretBox([one]), 'another context')).toBe(true);
    expect(isLost(createSecretBox([two]), 'c')).toBe(false);
    expect(isLost(createSecretBox([two], { acceptsLostKeys: true }), 'c')).toBe(true);
  });

  // @promise token-hash-keyed
  test('a token matches its hash after another key has become the first', () => {
    const hash = createSecretBox([one]).tokenHash('token');
    expect(createSecretBox([two, one]).matchesTokenHash('token', hash)).toBe(true);
    expect(createSecretBox([two, one]).matchesTokenHash('Token', hash)).toBe(false);
    // Nobody can say without the key.
    expect(() => createSecretBox([two]).matchesTokenHash('token', hash)).toThrow(SecretUnreadable);
    for (const broken of ['', ':', hash.slice(0, -2), hash.split(':')[0] ?? '']) {
      expect(createSecretBox([one]).matchesTokenHash('token', broken)).toBe(false);
    }
  });

  test('the secret box requires at least one key, of 32 bytes', () => {
    expect(() => createSecretBox([])).toThrow(RangeError);
    expect(() => createSecretBox([randomBytes(16)])).toThrow(RangeError);
  });
});

test('a log line contains neither keys nor personal data, also inside a database error', () => {
  const lines: string[] = [];
  const sink = new Writable({
    write(chunk: Buffer, _, done) {
      lines.push(chunk.toString());
      done();
    },
  });
  const error = Object.assign(new Error('invalid input syntax for type uuid: "ann@example.com"'), {
    detail: 'Key (email)=(ann@example.com) exists',
    code: '23505',
    cause: new Error('why'),
  });
  createLogger('info', sink).info({
    err: error,
    email: 'ann@example.com',
    request: { authorization: 'Bearer ann@example.com' },
  });
  const [line = ''] = lines;
  expect(line).not.toContain('ann@');
  expect(JSON.parse(line)).toMatchObject({
    level: 'info',
    err: { code: '23505', cause: { message: 'why' } },
  });
});
