import type { ConnectionLike } from '@temporalio/client';
import { GRPC, grpcCode } from './grpc-errors.ts';

/** What a server says about a namespace. Its id differs from that of a namespace with the same name on another server. */
export type NamespaceState =
  | { readonly kind: 'found'; readonly id: string }
  | { readonly kind: 'missing' }
  /** The server refuses the question, as Temporal Cloud may. */
  | { readonly kind: 'unknown' };

const REFUSALS: ReadonlySet<number> = new Set([
  GRPC.permissionDenied,
  GRPC.unauthenticated,
  GRPC.unimplemented,
]);

/** Asks a server for a namespace. Throws when the server does not respond. */
export async function findNamespace(
  connection: Pick<ConnectionLike, 'workflowService'>,
  namespace: string,
): Promise<NamespaceState> {
  try {
    const { namespaceInfo } = await connection.workflowService.describeNamespace({ namespace });
    return { kind: 'found', id: namespaceInfo?.id ?? '' };
  } catch (error) {
    const code = grpcCode(error);
    if (code === GRPC.notFound) return { kind: 'missing' };
    if (code === undefined || !REFUSALS.has(code)) throw error;
    return { kind: 'unknown' };
  }
}

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
    try {
      await connection.workflowService.registerNamespace({
        namespace,
        workflowExecutionRetentionPeriod: { seconds: RETENTION_SECONDS as never },
      });
    } catch (refusal) {
      // Another process has just registered it.
      if (grpcCode(refusal) !== GRPC.alreadyExists) throw refusal;
    }
  }
}
