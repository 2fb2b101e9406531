/**
 * Runs `work` for all rows at once when the first row is asked for, and returns what waits for the result of a row. For tests
 * of a table that wait most of their time: each row has its own test, and they wait together.
 */
export function sideBySide<Row, Result>(
  rows: readonly Row[],
  work: (row: Row) => Promise<Result>,
): (row: Row) => Promise<Result> {
  let running: Map<Row, Promise<Result>> | undefined;
  return async (row) => {
    running ??= new Map(rows.map((each) => [each, work(each)]));
    // The test of its row reports a failure.
    for (const each of running.values()) each.catch(() => {});
    const own = running.get(row);
    if (own === undefined) throw new Error('this is no row of the table');
    return await own;
  };
}
