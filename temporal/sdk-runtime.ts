import { DefaultLogger, makeTelemetryFilterString, Runtime } from '@temporalio/worker';
import type { Logger } from 'pino';

let isInstalled = false;

/**
 * Configures the Temporal SDK once per process: without its own signal handling, because the service stops in its own
 * order, and with its log lines sent to `logger`. Its metrics listen on `metricsAddress`, unless that is null.
 */
export function installSdkRuntime(logger: Logger, metricsAddress: string | null = null): void {
  if (isInstalled) return;
  isInstalled = true;
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
}
