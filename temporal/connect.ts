import { Connection } from '@temporalio/client';
import { NativeConnection } from '@temporalio/worker';
import type { NativeConnectionOptions } from '@temporalio/worker';
import { startDeadline } from '../src/lib/deadline.ts';
import { GRPC, grpcCode, reasonOf } from './grpc-errors.ts';
import { ensureNamespace } from './namespace.ts';

/** The server responds and refuses what is configured. The message tells the operator what to check. */
export class TemporalRefusal extends Error {
  override readonly name = 'TemporalRefusal';
}

const CONNECT_DEADLINE_MS = 5_000;

/**
 * Connects to a server and makes sure of the namespace. Gives up after five seconds, or when `signal` is aborted. Throws
 * `TemporalRefusal` when the server refuses the credentials or has no such namespace and does not register it.
 */
export async function connectToTemporal(
  options: NativeConnectionOptions,
  namespace: string,
  signal: AbortSignal,
): Promise<NativeConnection> {
  const { address } = options;
  const connection = await connectInTime(options, signal).catch(async (error: unknown) => {
    const reason = signal.aborted ? null : await refusedCredentials(options);
    if (reason === null) throw error;
    throw new TemporalRefusal(
      `Temporal at ${address} refuses the credentials (${reason}): check TEMPORAL_API_KEY and the TEMPORAL_TLS variables.`,
    );
  });
  try {
    await connection.withDeadline(Date.now() + CONNECT_DEADLINE_MS, () =>
      ensureNamespace(connection, namespace),
    );
  } catch (error) {
    await connection.close();
    const code = grpcCode(error);
    if (code !== GRPC.permissionDenied && code !== GRPC.unimplemented && code !== GRPC.unauthenticated)
      throw error;
    throw new TemporalRefusal(
      `Temporal at ${address} has no namespace ${namespace} and does not register it (${reasonOf(error)}): create the namespace, or correct TEMPORAL_NAMESPACE.`,
    );
  }
  return connection;
}

/** Connects within the deadline. The SDK's own attempt has none; a connection that it opens later is closed. */
async function connectInTime(
  options: NativeConnectionOptions,
  signal: AbortSignal,
): Promise<NativeConnection> {
  const deadline = startDeadline(CONNECT_DEADLINE_MS, signal);
  const connecting = NativeConnection.connect(options);
  try {
    return await deadline.race(connecting);
  } catch (error) {
    if (!deadline.signal.aborted) throw error;
    connecting.then((connection) => connection.close()).catch(() => {});
    throw new Error('the server accepts connections and does not respond', { cause: error });
  } finally {
    deadline.end();
  }
}

/**
 * Returns the words with which the server refuses the credentials; null when it accepts them or does not respond. The
 * native connection reports only a text, so another client asks for the status code.
 */
async function refusedCredentials(options: NativeConnectionOptions): Promise<string | null> {
  const { address, tls, apiKey, metadata } = options;
  const connection = Connection.lazy({
    ...(address === undefined ? {} : { address }),
    ...(tls === undefined ? {} : { tls }),
    ...(apiKey === undefined ? {} : { apiKey }),
    ...(metadata === undefined ? {} : { metadata }),
  });
  try {
    await connection.withDeadline(Date.now() + CONNECT_DEADLINE_MS, () =>
      connection.workflowService.getSystemInfo({}),
    );
    return null;
  } catch (error) {
    const code = grpcCode(error);
    return code === GRPC.unauthenticated || code === GRPC.permissionDenied ? reasonOf(error) : null;
  } finally {
    await connection.close();
  }
}
