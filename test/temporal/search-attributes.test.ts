import { expect, test } from '@jest/globals';
import { ensureSearchAttributes } from '../../temporal/search-attributes.ts';

/** Throws a gRPC error as both clients of the SDK do. */
function fail(code: number, details: string): never {
  throw Object.assign(new Error(details), { code, details });
}

/** A server that knows attributes or not, and answers every call to add one with `add`. */
function server(isKnown: (name: string) => boolean, add: (name: string) => void) {
  return {
    withDeadline: async <T>(_: number | Date, work: () => Promise<T>) => await work(),
    workflowService: {
      countWorkflowExecutions: async ({ query = '' }: { query?: string }) => {
        const [name = ''] = query.split(' ');
        return isKnown(name) ? {} : fail(3, `column name '${name}' is not a valid search attribute`);
      },
    },
    operatorService: {
      addSearchAttributes: async ({ searchAttributes = {} }: { searchAttributes?: object }) =>
        Object.keys(searchAttributes).forEach(add),
    },
  } as unknown as Parameters<typeof ensureSearchAttributes>[0];
}

test('a server that refuses its operator service but knows the search attribute lacks nothing', async () => {
  const cloud = server(
    () => true,
    () => fail(7, 'Request unauthorized'),
  );
  expect(await ensureSearchAttributes(cloud, 'default')).toEqual({
    present: ['DeliveryState', 'AppId', 'Provider'],
    problem: null,
  });
});

test('a server that refuses to add the search attribute is reported with its reason and what to do', async () => {
  const cloud = server(
    () => false,
    () => fail(7, 'Request unauthorized.'),
  );
  const { present, problem } = await ensureSearchAttributes(cloud, 'mine');
  expect(present).toEqual([]);
  expect(problem).toMatch(
    /^The namespace mine lacks the search attributes DeliveryState, AppId, Provider \(Request unauthorized\): add DeliveryState of the type Keyword, AppId of the type Keyword, Provider of the type Keyword by hand\./,
  );
});

// @promise workflows-found-by-app
test('a server with room for one search attribute gets the one that finds stuck work', async () => {
  const added: string[] = [];
  const full = server(
    (name) => added.includes(name),
    (name) => void (added.length === 0 ? added.push(name) : fail(3, 'cannot have more than 10')),
  );
  const { present, problem } = await ensureSearchAttributes(full, 'mine');
  expect(present).toEqual(['DeliveryState']);
  expect(problem).toMatch(
    /^The namespace mine lacks the search attributes AppId, Provider \(cannot have more/,
  );
});
