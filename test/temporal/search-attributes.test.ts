import { expect, test } from '@jest/globals';
import { ensureSearchAttributes } from '../../temporal/search-attributes.ts';

/** Throws a gRPC error as both clients of the SDK do. */
function fail(code: number, details: string): never {
  throw Object.assign(new Error(details), { code, details });
}

/** A server that knows an attribute or not, and answers every call to add one with a failure. */
function server(isKnown: boolean, add: () => never) {
  return {
    withDeadline: async <T>(_: number | Date, work: () => Promise<T>) => await work(),
    workflowService: {
      countWorkflowExecutions: async () =>
        isKnown ? {} : fail(3, "column name 'DeliveryState' is not a valid search attribute"),
    },
    operatorService: { addSearchAttributes: async () => add() },
  } as unknown as Parameters<typeof ensureSearchAttributes>[0];
}

test('a server that refuses its operator service but knows the search attribute lacks nothing', async () => {
  const cloud = server(true, () => fail(7, 'Request unauthorized'));
  expect(await ensureSearchAttributes(cloud, 'default')).toBeNull();
});

test('a server that refuses to add the search attribute is reported with its reason and what to do', async () => {
  const cloud = server(false, () => fail(7, 'Request unauthorized.'));
  expect(await ensureSearchAttributes(cloud, 'mine')).toMatch(
    /^The namespace mine lacks the search attribute DeliveryState \(Request unauthorized\): add DeliveryState of the type Keyword by hand\./,
  );
});
