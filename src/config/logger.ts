import { pino } from 'pino';
import type { DestinationStream, Logger } from 'pino';
import type { Config } from './config.ts';

/** Fields that may hold personal data or secrets. No code should log them; the logger redacts them in case one does. */
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

/** Removes the rejected value that Postgres puts at the end of some messages. A stack repeats the message. */
function withoutValue(text: string): string {
  return text.replaceAll(/: "[^\n]*"/g, ': "…"');
}

/**
 * Returns the parts of an error that may be logged: its type, message, code and stack, and its causes. Omits the other
 * fields: those of a database error contain the rejected row, with email addresses and user ids.
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

/** Creates a logger that writes JSON lines to `destination`, or to standard output. */
export function createLogger(level: Config['logLevel'], destination?: DestinationStream): Logger {
  const options = {
    level,
    base: null,
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label: string) => ({ level: label }) },
    redact: { paths: PRIVATE.flatMap((name) => [name, `*.${name}`]), censor: '…' },
    // Under its default key, pino would copy the error's message, with the values that it quotes, into the line's message.
    errorKey: 'fault',
    serializers: {
      err: (error: unknown) => loggedError(error),
      fault: (error: unknown) => loggedError(error),
    },
  };
  return destination === undefined ? pino(options) : pino(options, destination);
}
