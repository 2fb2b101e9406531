import type { ConnectionLike } from '@temporalio/client';
import { defineSearchAttributeKey } from '@temporalio/common';
import { encodeSearchAttributeIndexedValueType } from '@temporalio/common/lib/search-attributes.js';
import { GRPC, grpcCode, reasonOf } from './grpc-errors.ts';

/**
 * The search attributes of the workflows, and their types. Workflows set `DeliveryState` when their work is stuck; the others
 * are set when a workflow starts.
 */
export const SEARCH_ATTRIBUTES = { DeliveryState: 'Keyword', AppId: 'Keyword', Provider: 'Keyword' } as const;

export type SearchAttribute = keyof typeof SEARCH_ATTRIBUTES;

const ALL = Object.keys(SEARCH_ATTRIBUTES) as SearchAttribute[];

/** The search attributes that are set when a workflow starts. */
export const SEARCH_ATTRIBUTE_KEYS = ALL.filter((name) => name !== 'DeliveryState').map((name) => ({
  name,
  key: defineSearchAttributeKey(name, 'KEYWORD'),
}));

/** The numbers of the types in Temporal's protocol. */
const PROTOCOL_TYPES = { Keyword: encodeSearchAttributeIndexedValueType('KEYWORD') ?? 0 };

const DEADLINE_MS = 10_000;

/** What the check needs of a connection; both clients of the SDK have it. */
type Server = Pick<ConnectionLike, 'operatorService' | 'workflowService' | 'withDeadline'>;

/**
 * Returns which of the search attributes a namespace lacks. It asks with a query that names each, because every server
 * permits queries, while Temporal Cloud refuses to list search attributes.
 */
export async function findMissingSearchAttributes(
  connection: Pick<Server, 'workflowService'>,
  namespace: string,
  names: readonly SearchAttribute[] = ALL,
): Promise<readonly SearchAttribute[]> {
  const missing: SearchAttribute[] = [];
  for (const name of names) {
    try {
      await connection.workflowService.countWorkflowExecutions({ namespace, query: `${name} = 'none'` });
    } catch (error) {
      if (grpcCode(error) !== GRPC.invalidArgument) throw error;
      missing.push(name);
    }
  }
  return missing;
}

/** The result of a set-up of search attributes. */
export interface SearchAttributeSetUp {
  /** The search attributes that the namespace has. */
  readonly present: readonly SearchAttribute[];
  /** What the operator has to add by hand, and why the server refused it; null when nothing is missing. */
  readonly problem: string | null;
}

/**
 * Adds the search attributes that a namespace lacks, each on its own: a server that has room for one more adds one. A server
 * refuses when it has no room for them, or when it is Temporal Cloud, which permits that only in its own tools.
 */
export async function ensureSearchAttributes(
  connection: Server,
  namespace: string,
): Promise<SearchAttributeSetUp> {
  return await connection.withDeadline(Date.now() + DEADLINE_MS, async () => {
    const missing: SearchAttribute[] = [];
    let refusal: unknown;
    for (const name of await findMissingSearchAttributes(connection, namespace)) {
      try {
        const searchAttributes = { [name]: PROTOCOL_TYPES[SEARCH_ATTRIBUTES[name]] };
        await connection.operatorService.addSearchAttributes({ namespace, searchAttributes });
      } catch (error) {
        if (grpcCode(error) === GRPC.alreadyExists) continue;
        refusal ??= error;
        missing.push(name);
      }
    }
    const present = ALL.filter((name) => !missing.includes(name));
    if (missing.length === 0) return { present, problem: null };
    const list = missing.map((name) => `${name} of the type ${SEARCH_ATTRIBUTES[name]}`).join(', ');
    const [attributes, lack] = [
      missing.length === 1 ? 'attribute' : 'attributes',
      missing.includes('DeliveryState')
        ? 'stuck work has no search attribute in Temporal'
        : 'workflows are not found by them',
    ];
    return {
      present,
      problem: `The namespace ${namespace} lacks the search ${attributes} ${missing.join(', ')} (${reasonOf(refusal)}): add ${list} by hand. Until then ${lack}; all work is processed all the same.`,
    };
  });
}
