import * as z from 'zod';
import { DEFAULT_LIMITS } from '../domain/evaluation.ts';
import { DEFAULT_RETENTION } from '../domain/retention.ts';
import type { RetentionSettings } from '../domain/retention.ts';
import { hasKnownSslMode, hasReadableRootCertificate, withVerifiedHost } from './database-url.ts';

/** The settings from the environment, read once at the start. */
export interface Config {
  readonly host: string;
  readonly port: number;
  /** Base address in URLs, without a trailing slash. Undefined: the address that the service listens on. */
  readonly publicUrl: string | undefined;
  readonly role: 'all' | 'api' | 'worker';
  /** Undefined: the service starts the built-in Postgres in the data folder. */
  readonly databaseUrl: string | undefined;
  /** Address with the role that owns the schema, for migrations only. Undefined: that of `databaseUrl`. */
  readonly migrationsDatabaseUrl: string | undefined;
  /**
   * Without an address the service starts the built-in Temporal server in the data folder. The SDK reads TLS settings
   * from Temporal's own variables.
   */
  readonly temporal: {
    readonly address: string | undefined;
    readonly namespace: string;
    readonly apiKey: string | undefined;
  };
  /** Base address of the Temporal UI for links to workflows. Undefined: no links, except to the built-in server. */
  readonly temporalUiUrl: string | undefined;
  readonly dataDir: string;
  /** 32 bytes each; the first encrypts. Empty: the key in the data folder is used, and generated if it is missing. */
  readonly secretsKeys: readonly Buffer[];
  readonly trustProxy: number;
  /** Requests per minute and caller; 0 for no limit. */
  readonly rateLimits: {
    readonly address: number;
    readonly account: number;
    readonly sdk: number;
    readonly clicks: number;
    readonly identify: number;
    readonly refusals: number;
    readonly signIn: number;
    readonly reports: number;
    readonly failures: number;
  };
  /** The most connections to the API at one time. */
  readonly maxConnections: number;
  /** The mobile apps that open links of a host that all apps share. */
  readonly sharedHostApps: 'all' | 'ios' | 'off';
  /** How long a stopping process still accepts requests, while its readiness tells a balancer to send no more; seconds. */
  readonly drainSeconds: number;
  /** Webhooks, and clicks and SDK calls, that a process works on at one time; 0 for no limit. */
  readonly admission: { readonly webhooks: number; readonly openCalls: number };
  /** Maximum number of database connections of a process. */
  readonly databaseConnections: number;
  /** Address that exchange rates are fetched from once a day; null when none are fetched. */
  readonly ratesUrl: string | null;
  /** Which addresses endpoints of outgoing webhooks may have: public ones over HTTPS, or any. */
  readonly webhookTargets: 'public' | 'any';
  /** The mail server and the sender of all mails; null when no mail is sent. */
  readonly mail: MailSettings | null;
  /** Whether each commission has a hold timer, or the sweep alone matures commissions. */
  readonly holdTimers: 'workflow' | 'sweep';
  /** Whether a process becomes ready although SECRETS_KEY lacks a key that stored secrets need. */
  readonly lostKeys: 'refuse' | 'accept';
  /** The largest payment that earns, US cents. */
  readonly maxPaymentCents: number;
  readonly retention: RetentionSettings;
  /** Base address of an OpenTelemetry collector (OTLP over HTTP) that receives traces; null when none are sent. */
  readonly tracesEndpoint: string | null;
  readonly logLevel: 'fatal' | 'error' | 'warn' | 'info' | 'debug' | 'trace' | 'silent';
  /** Undefined: metrics are off. */
  readonly metricsPort: number | undefined;
  /** The address on which the metrics listen. */
  readonly metricsHost: string;
}

/** What sending mails needs. */
export interface MailSettings {
  /** The address of the mail server, with the user and the password: `smtp:` or `smtps:`. */
  readonly smtpUrl: string;
  /** An e-mail address, alone or in angle brackets after a name. */
  readonly from: string;
  /** Base address of the links in mails, without a trailing slash. */
  readonly publicUrl: string;
}

/** A variable of the environment is invalid. The message has one sentence per variable. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
}

function wholeNumber(name: string, least: number, most: number) {
  const message = `${name} must be a whole number from ${least} to ${most}.`;
  return z
    .string()
    .regex(/^\d{1,9}$/, message)
    .transform(Number)
    .refine((value) => value >= least && value <= most, message);
}

function oneOf<const T extends readonly [string, ...string[]]>(name: string, values: T) {
  return z.enum(values, `${name} must be one of ${values.join(', ')}.`);
}

/** Whether `text` is a URL of one of these protocols. A web address has its host right after two slashes, where people see it. */
function isUrl(text: string, protocols: readonly string[]): boolean {
  if (!URL.canParse(text) || !protocols.includes(new URL(text).protocol)) return false;
  return !protocols.includes('https:') || /^https?:\/\/[^/\\?#\s]+[^\s]*$/i.test(text);
}

/** Decodes 32 bytes of base64, with or without padding and in either alphabet; null for any other text. */
function keyBytes(text: string): Buffer | null {
  const bytes = Buffer.from(text, 'base64');
  return /^[A-Za-z0-9+/_-]{43}=?$/.test(text) && bytes.length === 32 ? bytes : null;
}

/** Parses comma-separated keys of the secret box, the encrypting one first; null when one of them is invalid. */
export function parseSecretsKeys(text: string): readonly Buffer[] | null {
  const keys = text.split(',').map((part) => keyBytes(part.trim()));
  return keys.includes(null) ? null : keys.filter((key) => key !== null);
}

const secretsKeys = z.string().transform((text, context) => {
  const keys = parseSecretsKeys(text);
  if (keys === null) {
    context.addIssue({
      code: 'custom',
      message:
        'SECRETS_KEY must be 32 bytes in base64 (openssl rand -base64 32), or several of them, separated by commas.',
    });
    return z.NEVER;
  }
  return keys;
});

/** The European Central Bank's rates of the latest working day: a CSV file in a ZIP archive. */
const ECB_DAILY_URL = 'https://www.ecb.europa.eu/stats/eurofxref/eurofxref.zip';

/** Whether `text` is the address of a mail server: a host, and optionally a port, a user and a password. */
function isSmtpUrl(text: string): boolean {
  if (!/^smtps?:\/\/[^/\\?#\s]+\/?$/i.test(text) || !URL.canParse(text)) return false;
  const { hostname, username, password } = new URL(text);
  // A percent sign that begins no code would be sent as it is, or fail at the first mail.
  const isDecodable = [username, password].every((part) => !/%(?![0-9a-f]{2})/i.test(part));
  return hostname !== '' && isDecodable && (username === '') === (password === '');
}

/** Whether `text` is an e-mail address, alone or in angle brackets after a name. */
function isSender(text: string): boolean {
  const address = /^[^<>"\p{Cc}]{1,100} <([^<>]+)>$/u.exec(text)?.[1] ?? text;
  return z.email().max(254).safeParse(address).success;
}

/** The value that switches off a feature that is on by default. */
const OFF = 'off';

/** The address of a database, with the host verified unless it says otherwise. */
function databaseUrl(name: string) {
  return z
    .string()
    .refine(
      (text) => isUrl(text, ['postgres:', 'postgresql:']),
      `${name} must be a Postgres address (postgres://user:password@host:5432/database).`,
    )
    .refine(
      (text) => !URL.canParse(text) || hasKnownSslMode(text),
      `${name} must have the sslmode verify-full, no-verify or disable, or none.`,
    )
    .refine(
      (text) => !URL.canParse(text) || hasReadableRootCertificate(text),
      `${name} has an sslrootcert that can't be read. Give it the path of a file with certificates, or remove it.`,
    )
    .transform(withVerifiedHost);
}

const variables = z.object({
  HOST: z.string().default('127.0.0.1'),
  PORT: wholeNumber('PORT', 0, 65_535).default(3000),
  PUBLIC_URL: z
    .string()
    .refine(
      (text) => isUrl(text, ['http:', 'https:']) && new URL(text).search === '' && new URL(text).hash === '',
      'PUBLIC_URL must be an http or https address without a query.',
    )
    .transform((text) => text.replace(/\/+$/, ''))
    .optional(),
  ROLE: oneOf('ROLE', ['all', 'api', 'worker']).default('all'),
  DATABASE_URL: databaseUrl('DATABASE_URL').optional(),
  MIGRATIONS_DATABASE_URL: databaseUrl('MIGRATIONS_DATABASE_URL').optional(),
  TEMPORAL_ADDRESS: z
    .string()
    .regex(/^[^\s/]+:\d{1,5}$/, 'TEMPORAL_ADDRESS must be a host and a port (temporal.example.com:7233).')
    .optional(),
  TEMPORAL_NAMESPACE: z.string().default('default'),
  TEMPORAL_API_KEY: z.string().optional(),
  TEMPORAL_UI_URL: z
    .string()
    .refine(
      (text) => isUrl(text, ['http:', 'https:']),
      'TEMPORAL_UI_URL must be an http or https address (https://temporal-ui.example.com).',
    )
    .transform((text) => text.replace(/\/+$/, ''))
    .optional(),
  DATA_DIR: z.string().default('.data'),
  SECRETS_KEY: secretsKeys.optional(),
  TRUST_PROXY: wholeNumber('TRUST_PROXY', 0, 100).default(0),
  RATE_LIMIT_ADDRESS: wholeNumber('RATE_LIMIT_ADDRESS', 0, 1_000_000).default(1_200),
  RATE_LIMIT_ACCOUNT: wholeNumber('RATE_LIMIT_ACCOUNT', 0, 1_000_000).default(600),
  RATE_LIMIT_SDK: wholeNumber('RATE_LIMIT_SDK', 0, 1_000_000).default(60),
  RATE_LIMIT_CLICKS: wholeNumber('RATE_LIMIT_CLICKS', 0, 1_000_000).default(120),
  RATE_LIMIT_IDENTIFY: wholeNumber('RATE_LIMIT_IDENTIFY', 0, 1_000_000).default(60),
  RATE_LIMIT_REFUSALS: wholeNumber('RATE_LIMIT_REFUSALS', 0, 1_000_000).default(600),
  RATE_LIMIT_SIGN_IN: wholeNumber('RATE_LIMIT_SIGN_IN', 0, 1_000_000).default(10),
  RATE_LIMIT_REPORTS: wholeNumber('RATE_LIMIT_REPORTS', 0, 1_000_000).default(30),
  RATE_LIMIT_FAILURES: wholeNumber('RATE_LIMIT_FAILURES', 0, 1_000_000).default(120),
  WEBHOOKS_IN_FLIGHT: wholeNumber('WEBHOOKS_IN_FLIGHT', 0, 10_000).default(32),
  OPEN_CALLS_IN_FLIGHT: wholeNumber('OPEN_CALLS_IN_FLIGHT', 0, 10_000).default(32),
  DATABASE_CONNECTIONS: wholeNumber('DATABASE_CONNECTIONS', 4, 1_000).default(20),
  MAX_CONNECTIONS: wholeNumber('MAX_CONNECTIONS', 10, 100_000).default(2_000),
  SHARED_HOST_APPS: oneOf('SHARED_HOST_APPS', ['all', 'ios', 'off']).default('all'),
  DRAIN_SECONDS: wholeNumber('DRAIN_SECONDS', 0, 60).default(0),
  RATES_URL: z
    .string()
    .refine(
      (text) => text === OFF || isUrl(text, ['http:', 'https:']),
      `RATES_URL must be an http or https address, or ${OFF}.`,
    )
    .transform((text) => (text === OFF ? null : text))
    .default(ECB_DAILY_URL),
  WEBHOOK_TARGETS: oneOf('WEBHOOK_TARGETS', ['public', 'any']).default('public'),
  SMTP_URL: z
    .string()
    .refine(
      isSmtpUrl,
      'SMTP_URL must be the address of a mail server (smtps://user:password@smtp.example.com), special characters of the password as %XX.',
    )
    .optional(),
  MAIL_FROM: z
    .string()
    .refine(
      isSender,
      'MAIL_FROM must be an e-mail address, or a name and the address in angle brackets (Lantern <partners@example.com>).',
    )
    .optional(),
  HOLD_TIMERS: oneOf('HOLD_TIMERS', ['workflow', 'sweep']).default('workflow'),
  LOST_KEYS: oneOf('LOST_KEYS', ['refuse', 'accept']).default('refuse'),
  MAX_PAYMENT_USD: wholeNumber('MAX_PAYMENT_USD', 1, 100_000_000).default(
    DEFAULT_LIMITS.maxPaymentCents / 100,
  ),
  RETAIN_IDEMPOTENCY_DAYS: wholeNumber('RETAIN_IDEMPOTENCY_DAYS', 1, 3_650).default(
    DEFAULT_RETENTION.idempotency_keys,
  ),
  RETAIN_IDENTITIES_DAYS: wholeNumber('RETAIN_IDENTITIES_DAYS', 0, 36_500).default(
    DEFAULT_RETENTION.identities,
  ),
  RETAIN_REFUSED_DAYS: wholeNumber('RETAIN_REFUSED_DAYS', 0, 36_500).default(
    DEFAULT_RETENTION.refused_counters,
  ),
  RETAIN_USER_AGENTS_DAYS: wholeNumber('RETAIN_USER_AGENTS_DAYS', 0, 36_500).default(
    DEFAULT_RETENTION.user_agents,
  ),
  RETAIN_BODIES_DAYS: wholeNumber('RETAIN_BODIES_DAYS', 0, 36_500).default(DEFAULT_RETENTION.bodies),
  RETAIN_MESSAGES_DAYS: wholeNumber('RETAIN_MESSAGES_DAYS', 0, 36_500).default(
    DEFAULT_RETENTION.webhook_messages,
  ),
  RETAIN_EMAILS_DAYS: wholeNumber('RETAIN_EMAILS_DAYS', 0, 36_500).default(DEFAULT_RETENTION.emails),
  OTEL_EXPORTER_OTLP_ENDPOINT: z
    .string()
    .refine(
      (text) => isUrl(text, ['http:', 'https:']),
      'OTEL_EXPORTER_OTLP_ENDPOINT must be an http or https address (http://collector:4318).',
    )
    .optional(),
  LOG_LEVEL: oneOf('LOG_LEVEL', ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent']).default(
    'info',
  ),
  METRICS_PORT: wholeNumber('METRICS_PORT', 1, 65_535).optional(),
  METRICS_HOST: z.string().default('127.0.0.1'),
});

const environment = variables.check((context) => {
  const { SMTP_URL, MAIL_FROM, PUBLIC_URL } = context.value;
  const refuse = (name: string, why: string) => {
    const message = `${name} must be set together with ${why}.`;
    context.issues.push({ code: 'custom', message, input: undefined, path: [name] });
  };
  if (SMTP_URL === undefined && MAIL_FROM === undefined) return;
  if (SMTP_URL === undefined) refuse('SMTP_URL', 'MAIL_FROM: it is the server that sends the mails');
  if (MAIL_FROM === undefined) refuse('MAIL_FROM', 'SMTP_URL: it is the sender of the mails');
  if (PUBLIC_URL === undefined) refuse('PUBLIC_URL', 'SMTP_URL: mails have links to the service');
});

/** The names of the variables that `readConfig` reads. */
export const CONFIG_VARIABLES: readonly string[] = Object.keys(variables.shape);

/**
 * Parses the environment. An empty variable counts as not set, except RATES_URL, where it means that nothing is fetched.
 * Throws `ConfigError`.
 */
export function readConfig(env: Readonly<Record<string, string | undefined>>): Config {
  const set = Object.fromEntries(
    Object.entries(env).filter(([, value]) => value !== undefined && value.trim() !== ''),
  );
  if (env['RATES_URL']?.trim() === '') set['RATES_URL'] = OFF;
  const parsed = environment.safeParse(set);
  if (!parsed.success) throw new ConfigError(z.prettifyError(parsed.error), { cause: parsed.error });
  const value = parsed.data;
  return {
    host: value.HOST,
    port: value.PORT,
    publicUrl: value.PUBLIC_URL,
    role: value.ROLE,
    databaseUrl: value.DATABASE_URL,
    migrationsDatabaseUrl: value.MIGRATIONS_DATABASE_URL,
    temporal: {
      address: value.TEMPORAL_ADDRESS,
      namespace: value.TEMPORAL_NAMESPACE,
      apiKey: value.TEMPORAL_API_KEY,
    },
    temporalUiUrl: value.TEMPORAL_UI_URL,
    dataDir: value.DATA_DIR,
    secretsKeys: value.SECRETS_KEY ?? [],
    trustProxy: value.TRUST_PROXY,
    rateLimits: {
      address: value.RATE_LIMIT_ADDRESS,
      account: value.RATE_LIMIT_ACCOUNT,
      sdk: value.RATE_LIMIT_SDK,
      clicks: value.RATE_LIMIT_CLICKS,
      identify: value.RATE_LIMIT_IDENTIFY,
      refusals: value.RATE_LIMIT_REFUSALS,
      signIn: value.RATE_LIMIT_SIGN_IN,
      reports: value.RATE_LIMIT_REPORTS,
      failures: value.RATE_LIMIT_FAILURES,
    },
    maxConnections: value.MAX_CONNECTIONS,
    sharedHostApps: value.SHARED_HOST_APPS,
    drainSeconds: value.DRAIN_SECONDS,
    admission: { webhooks: value.WEBHOOKS_IN_FLIGHT, openCalls: value.OPEN_CALLS_IN_FLIGHT },
    databaseConnections: value.DATABASE_CONNECTIONS,
    ratesUrl: value.RATES_URL,
    webhookTargets: value.WEBHOOK_TARGETS,
    mail:
      value.SMTP_URL === undefined || value.MAIL_FROM === undefined || value.PUBLIC_URL === undefined
        ? null
        : { smtpUrl: value.SMTP_URL, from: value.MAIL_FROM, publicUrl: value.PUBLIC_URL },
    holdTimers: value.HOLD_TIMERS,
    lostKeys: value.LOST_KEYS,
    maxPaymentCents: value.MAX_PAYMENT_USD * 100,
    retention: {
      idempotency_keys: value.RETAIN_IDEMPOTENCY_DAYS,
      identities: value.RETAIN_IDENTITIES_DAYS,
      refused_counters: value.RETAIN_REFUSED_DAYS,
      user_agents: value.RETAIN_USER_AGENTS_DAYS,
      bodies: value.RETAIN_BODIES_DAYS,
      webhook_messages: value.RETAIN_MESSAGES_DAYS,
      emails: value.RETAIN_EMAILS_DAYS,
    },
    tracesEndpoint: value.OTEL_EXPORTER_OTLP_ENDPOINT ?? null,
    logLevel: value.LOG_LEVEL,
    metricsPort: value.METRICS_PORT,
    metricsHost: value.METRICS_HOST,
  };
}
