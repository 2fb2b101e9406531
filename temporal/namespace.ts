import type { ConnectionLike } from '@temporalio/client';
import { GRPC, grpcCode } from './grpc-errors.ts';

/** How long a new namespace retains closed workflows. */
const RETENTION_SECONDS = 7 * 24 * 60 * 60;

/**
 * Registers the namespace when it is missing. A server that refuses the query (Temporal Cloud) is assumed to have it.
 * Throws the error of a server that refuses to register it.
 */
export async function ensureNamespace(
  connection: Pick<ConnectionLike, 'workflowService'>,
  namespace: string,
): Promise<void> {
  try {
    await connection.workflowService.describeNamespace({ namespace });
  } catch (error) {
    if (grpcCode(error) !== GRPC.notFound) return;
    await connection.workflowService.registerNamespace({
      namespace,
      workflowExecutionRetentionPeriod: { seconds: RETENTION_SECONDS as never },
    });
  }
}
