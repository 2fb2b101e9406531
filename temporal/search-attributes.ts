import type { ConnectionLike } from '@temporalio/client';
import { encodeSearchAttributeIndexedValueType } from '@temporalio/common/lib/search-attributes.js';

/** The search attributes that the workflows set, and their types. A stuck delivery cannot be marked without them. */
export const SEARCH_ATTRIBUTES = { DeliveryState: 'Keyword' } as const;

/** The numbers of the types in Temporal's protocol. */
const PROTOCOL_TYPES = { Keyword: encodeSearchAttributeIndexedValueType('KEYWORD') ?? 0 };

const DEADLINE_MS = 10_000;

/** gRPC: already exists, permission denied, unimplemented, unauthenticated. */
const ALREADY_EXISTS = 6;
const NOT_PERMITTED = [7, 12, 16];

/**
 * Adds the search attributes that a namespace lacks. Temporal Cloud does not permit that over this service: `onWarning`
 * then receives what the operator has to add by hand.
 */
export async function ensureSearchAttributes(
  connection: Pick<ConnectionLike, 'operatorService' | 'withDeadline'>,
  namespace: string,
  onWarning: (message: string) => void = () => undefined,
): Promise<void> {
  const wanted = Object.entries(SEARCH_ATTRIBUTES);
  try {
    await connection.withDeadline(Date.now() + DEADLINE_MS, async () => {
      const { customAttributes } = await connection.operatorService.listSearchAttributes({ namespace });
      const missing = wanted.filter(([name]) => customAttributes[name] === undefined);
      if (missing.length === 0) return;
      await connection.operatorService.addSearchAttributes({
        namespace,
        searchAttributes: Object.fromEntries(missing.map(([name, type]) => [name, PROTOCOL_TYPES[type]])),
      });
    });
  } catch (error) {
    const code = grpcCode(error);
    if (code === ALREADY_EXISTS) return;
    if (code === undefined || !NOT_PERMITTED.includes(code)) throw error;
    const list = wanted.map(([name, type]) => `${name} (${type})`).join(', ');
    onWarning(
      `The Temporal server does not permit adding search attributes: add ${list} to the namespace ${namespace} by hand.`,
    );
  }
}

function grpcCode(error: unknown): number | undefined {
  return typeof error === 'object' && error !== null && 'code' in error && typeof error.code === 'number'
    ? error.code
    : undefined;
}
