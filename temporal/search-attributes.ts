import type { ConnectionLike } from '@temporalio/client';
import { encodeSearchAttributeIndexedValueType } from '@temporalio/common/lib/search-attributes.js';

/** The search attributes that our workflows set, and their types. Without them a stuck delivery cannot be marked. */
export const SEARCH_ATTRIBUTES = { DeliveryState: 'Keyword' } as const;

/** Their numbers in Temporal's protocol. */
const PROTOCOL_TYPES = { Keyword: encodeSearchAttributeIndexedValueType('KEYWORD') ?? 0 };

const DEADLINE_MS = 10_000;

/** gRPC: already exists, permission denied, unimplemented, unauthenticated. */
const ALREADY_THERE = 6;
const NOT_FOR_US = [7, 12, 16];

/**
 * Adds the search attributes that a namespace lacks. Temporal Cloud does not let its users do so over this service:
 * `onWarning` then hears what is to be done by hand, and the caller goes on.
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
    if (code === ALREADY_THERE) return;
    if (code === undefined || !NOT_FOR_US.includes(code)) throw error;
    const list = wanted.map(([name, type]) => `${name} (${type})`).join(', ');
    onWarning(
      `This Temporal server does not let us look after search attributes: make sure that namespace ${namespace} has ${list}.`,
    );
  }
}

function grpcCode(error: unknown): number | undefined {
  return typeof error === 'object' && error !== null && 'code' in error && typeof error.code === 'number'
    ? error.code
    : undefined;
}
