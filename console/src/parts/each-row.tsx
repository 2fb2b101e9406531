import { Alert, Text } from '@mantine/core';
import { Problem } from '../api/client.ts';

/** What became of a call for each of several rows. */
export interface Outcomes<T> {
  readonly done: readonly T[];
  readonly failed: readonly { readonly row: T; readonly why: string }[];
  /** Whether the service refused some of the calls. */
  readonly hasRefusals: boolean;
}

/**
 * Calls for each row, one after the other. A call that fails, or that returns why it changed nothing, stops none of the others: it is
 * listed with its reason. Rethrows an error that `isFatal`, such as of a session that may no longer pay, which each other row would
 * have as well.
 */
export async function forEachRow<T>(
  rows: readonly T[],
  call: (row: T) => Promise<string | null>,
  isFatal: (error: Error) => boolean = () => false,
): Promise<Outcomes<T>> {
  const done: T[] = [];
  const failed: { row: T; why: string }[] = [];
  let hasRefusals = false;
  for (const row of rows) {
    try {
      const why = await call(row);
      if (why === null) done.push(row);
      else {
        hasRefusals = true;
        failed.push({ row, why });
      }
    } catch (error) {
      if (!(error instanceof Error) || isFatal(error)) throw error;
      hasRefusals ||= error instanceof Problem && error.isRefusal;
      failed.push({ row, why: error.message });
    }
  }
  return { done, failed, hasRefusals };
}

/** Says of each row why nothing became of it. */
export function Failures<T extends { readonly id: string }>({
  title,
  failed,
  nameOf,
}: {
  readonly title: string;
  readonly failed: Outcomes<T>['failed'];
  readonly nameOf: (row: T) => string;
}) {
  return (
    <Alert color="red" variant="light" role="alert" title={title}>
      <ul className="failures">
        {failed.map(({ row, why }) => (
          <li key={row.id}>
            <Text size="sm">
              <b>{nameOf(row)}</b>: {why}
            </Text>
          </li>
        ))}
      </ul>
    </Alert>
  );
}
