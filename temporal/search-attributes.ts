import type { ConnectionLike } from '@temporalio/client';
import { encodeSearchAttributeIndexedValueType } from '@temporalio/common/lib/search-attributes.js';
import { GRPC, grpcCode, reasonOf } from './grpc-errors.ts';

/** The search attributes that the workflows set, and their types. */
export const SEARCH_ATTRIBUTES = { DeliveryState: 'Keyword' } as const;

/** The numbers of the types in Temporal's protocol. */
const PROTOCOL_TYPES = { Keyword: encodeSearchAttributeIndexedValueType('KEYWORD') ?? 0 };

const DEADLINE_MS = 10_000;

/** What the check needs of a connection; both clients of the SDK have it. */
type Server = Pick<ConnectionLike, 'operatorService' | 'workflowService' | 'withDeadline'>;

/**
 * Returns the search attributes that a namespace lacks. It asks with a query that names each, because every server
 * permits queries, while Temporal Cloud refuses to list search attributes.
 */
export async function findMissingSearchAttributes(
  connection: Pick<Server, 'workflowService'>,
  namespace: string,
): Promise<readonly (keyof typeof SEARCH_ATTRIBUTES)[]> {
  const missing: (keyof typeof SEARCH_ATTRIBUTES)[] = [];
  for (const name of Object.keys(SEARCH_ATTRIBUTES) as (keyof typeof SEARCH_ATTRIBUTES)[]) {
    try {
      await connection.workflowService.countWorkflowExecutions({ namespace, query: `${name} = 'none'` });
    } catch (error) {
      if (grpcCode(error) !== GRPC.invalidArgument) throw error;
      missing.push(name);
    }
  }
  return missing;
}

/**
 * Adds the search attributes that a namespace lacks. Returns null, or what the operator has to add by hand and why the
 * server refused it: it has no room for them, or it is Temporal Cloud, which permits that only in its own tools.
 */
export async function ensureSearchAttributes(connection: Server, namespace: string): Promise<string | null> {
  return await connection.withDeadline(Date.now() + DEADLINE_MS, async () => {
    const missing = await findMissingSearchAttributes(connection, namespace);
    if (missing.length === 0) return null;
    try {
      await connection.operatorService.addSearchAttributes({
        namespace,
        searchAttributes: Object.fromEntries(
          missing.map((name) => [name, PROTOCOL_TYPES[SEARCH_ATTRIBUTES[name]]]),
        ),
      });
      return null;
    } catch (error) {
      if (grpcCode(error) === GRPC.alreadyExists) return null;
      const list = missing.map((name) => `${name} of the type ${SEARCH_ATTRIBUTES[name]}`).join(', ');
      return `The namespace ${namespace} lacks the search attribute ${missing.join(', ')} (${reasonOf(error)}): add ${list} by hand. Until then stuck work has no search attribute in Temporal; it is processed all the same.`;
    }
  });
}
