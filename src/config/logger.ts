import { pino } from 'pino';
import type { DestinationStream, Logger, LoggerOptions } from 'pino';
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
  'recipient',
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

/** A line about a failure is written once in this time, ms, and then with the number of times that it came again. */
const REPEAT_MS = 60_000;
/** Different lines that are remembered at a time. Others are written each time. */
const MOST_REPEATED = 500;
const WARN = 40;
const ERROR = 50;

type Method = Parameters<NonNullable<NonNullable<LoggerOptions['hooks']>['logMethod']>>[1];

/**
 * Returns the hook that counts equal warnings about a failure, and equal errors with a `problem`, which lasts until an operator ends it,
 * instead of repeating them. A loop that fails each second, and many
 * requests that fail for the same reason, would fill a disk in hours and hide other lines. Lines that name what they are about, such as a
 * delivery, differ and are all written. Requests have a line of their own with their id, so this id makes no difference.
 */
function countRepeats(
  repeatMs: number,
): (this: Logger, args: Parameters<Method>, method: Method, level: number) => void {
  const repeated = new Map<string, number>();
  return function logOnce(args, method, level) {
    const [line] = args as [unknown];
    const error: unknown = typeof line === 'object' && line !== null ? Reflect.get(line, 'err') : undefined;
    if (
      error === undefined ||
      !(level === WARN || (level === ERROR && Reflect.has(line as object, 'problem')))
    )
      return method.apply(this, args);
    const { type, message, code } = loggedError(error);
    const failure = { ...(line as object), err: [type, message, code], requestId: undefined };
    const key = JSON.stringify([this.bindings(), failure]);
    const count = repeated.get(key);
    if (count !== undefined) {
      repeated.set(key, count + 1);
      return;
    }
    method.apply(this, args);
    if (repeated.size >= MOST_REPEATED) return;
    repeated.set(key, 0);
    setTimeout(() => {
      const times = repeated.get(key) ?? 0;
      repeated.delete(key);
      if (times > 0)
        method.apply(this, [{ ...(line as object), repeated: times }] as unknown as Parameters<Method>);
    }, repeatMs).unref();
  };
}

/** Creates a logger that writes JSON lines to `destination`, or to standard output. */
export function createLogger(
  level: Config['logLevel'],
  destination?: DestinationStream,
  repeatMs = REPEAT_MS,
): Logger {
  const options: LoggerOptions = {
    level,
    hooks: { logMethod: countRepeats(repeatMs) },
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
