import { DefaultLogger, makeTelemetryFilterString, Runtime } from '@temporalio/worker';
import type { Logger } from 'pino';

/** Where the SDK's metrics of this process listen; null when they are off, undefined before the SDK is configured. */
let installed: string | null | undefined;

/** A port that was free may be taken before the SDK listens on it. */
const PORT_ATTEMPTS = 10;

/**
 * Configures the Temporal SDK as `installSdkRuntime` does, with metrics on a loopback port that `choosePort` names. When
 * another program has taken the port meanwhile, it asks for another one. Returns the host and port; null when the SDK was
 * configured without metrics before.
 */
export async function installSdkMetrics(
  logger: Logger,
  choosePort: () => Promise<number>,
): Promise<string | null> {
  for (let attempt = 1; ; attempt += 1) {
    const address = `127.0.0.1:${await choosePort()}`;
    try {
      return installSdkRuntime(logger, address);
    } catch (error) {
      if (!/already in use/i.test(String(error)) || attempt === PORT_ATTEMPTS) throw error;
    }
  }
}

/**
 * Configures the Temporal SDK once per process: without its own signal handling, because the service stops in its own
 * order, and with its log lines sent to `logger`. Its metrics listen on `metricsAddress`, unless that is null. Returns
 * where they listen, which the first call decides. Throws when the address is in use.
 */
export function installSdkRuntime(logger: Logger, metricsAddress: string | null = null): string | null {
  if (installed !== undefined) return installed;
  Runtime.install({
    shutdownSignals: [],
    telemetryOptions: {
      logging: { forward: {}, filter: makeTelemetryFilterString({ core: 'WARN', other: 'ERROR' }) },
      ...(metricsAddress === null
        ? {}
        : {
            metrics: {
              prometheus: {
                bindAddress: metricsAddress,
                countersTotalSuffix: true,
                unitSuffix: true,
                useSecondsForDurations: true,
              },
            },
          }),
    },
    logger: new DefaultLogger('WARN', ({ level, message, meta }) => {
      // Only the fields that name the work and the reason: the other metadata is internal to the SDK.
      const { error, workflowId, activityType, attempt } = (meta ?? {}) as Record<string, unknown>;
      logger[level === 'ERROR' ? 'error' : 'warn']({
        err: error,
        workflowId,
        activityType,
        attempt,
        msg: `temporal sdk: ${message}`,
      });
    }),
  });
  installed = metricsAddress;
  return installed;
}
