import { pino } from 'pino';
import type { DestinationStream, Logger } from 'pino';
import type { Config } from './config.ts';

/** Names under which people, their secrets or their money's keys would be. They should not be logged at all; this is the net below. */
const PRIVATE = [
  'authorization',
  'body',
  'claimToken',
  'cookie',
  'customerUserId',
  'deviceId',
  'email',
  'headers',
  'key',
  'secret',
  'token',
];

interface LoggedError {
  readonly type: string;
  readonly message: string;
  readonly code?: string;
  readonly constraint?: string;
  readonly stack?: string;
  readonly cause?: LoggedError;
}

function textOf(error: object, name: string): string | undefined {
  const value: unknown = Reflect.get(error, name);
  return typeof value === 'string' ? value : undefined;
}

/** Postgres ends some messages with the value it refused, and a stack repeats the message. */
function withoutValue(text: string): string {
  return text.replaceAll(/: "[^\n]*"/g, ': "…"');
}

/**
 * What of an error may be logged: what it is and where it happened, and its causes. An error of the database also
 * carries the row it refused, with e-mail addresses and user ids; that stays out.
 */
export function loggedError(error: unknown, depth = 0): LoggedError {
  if (typeof error !== 'object' || error === null) return { type: typeof error, message: String(error) };
  const code = textOf(error, 'code');
  const constraint = textOf(error, 'constraint_name') ?? textOf(error, 'constraint');
  const stack = textOf(error, 'stack');
  const cause: unknown = Reflect.get(error, 'cause');
  return {
    type: textOf(error, 'name') ?? 'Error',
    message: withoutValue(textOf(error, 'message') ?? ''),
    ...(code === undefined ? {} : { code }),
    ...(constraint === undefined ? {} : { constraint }),
    ...(stack === undefined ? {} : { stack: withoutValue(stack) }),
    ...(cause === undefined || depth >= 3 ? {} : { cause: loggedError(cause, depth + 1) }),
  };
}

/** JSON lines on standard output, or wherever `destination` says. */
export function createLogger(level: Config['logLevel'], destination?: DestinationStream): Logger {
  const options = {
    level,
    base: null,
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label: string) => ({ level: label }) },
    redact: { paths: PRIVATE.flatMap((name) => [name, `*.${name}`]), censor: '…' },
    // Under its usual key pino would copy an error's message, with whatever it quotes, into the line's own.
    errorKey: 'fault',
    serializers: {
      err: (error: unknown) => loggedError(error),
      fault: (error: unknown) => loggedError(error),
    },
  };
  return destination === undefined ? pino(options) : pino(options, destination);
}
