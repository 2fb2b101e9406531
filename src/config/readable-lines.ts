import type { DestinationStream } from 'pino';

/** Returns a destination that writes log lines for somebody who reads a terminal. Anywhere else they are JSON, for programs. */
export async function readableLines(): Promise<DestinationStream> {
  const { build } = await import('pino-pretty');
  return build({
    errorLikeObjectKeys: ['err', 'fault'],
    singleLine: true,
    sync: true,
    translateTime: 'SYS:HH:MM:ss',
  });
}
