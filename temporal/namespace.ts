import { isGrpcServiceError } from '@temporalio/client';
import type { NativeConnection } from '@temporalio/worker';

/** How long a new namespace retains closed workflows. */
const RETENTION_SECONDS = 7 * 24 * 60 * 60;

/** gRPC: not found. */
const NOT_FOUND: unknown = 5;

/** Registers the namespace when it is missing. A server that refuses the query (Temporal Cloud) is assumed to have it. */
export async function ensureNamespace(connection: NativeConnection, namespace: string): Promise<void> {
  try {
    await connection.workflowService.describeNamespace({ namespace });
  } catch (error) {
    if (!isGrpcServiceError(error) || error.code !== NOT_FOUND) return;
    await connection.workflowService.registerNamespace({
      namespace,
      workflowExecutionRetentionPeriod: { seconds: RETENTION_SECONDS as never },
    });
  }
}
