import type { AppId } from '../../domain/ids.ts';
import type { Fragment, Sql } from '../sql.ts';

/** The number of rows that break a rule, and up to twenty of them. An example begins with the id of a row. */
export interface Violations {
  readonly violations: number;
  readonly examples: readonly string[];
}

/** A rule of the ledger in one sentence, and the search for rows of one app that break it. */
export interface LedgerCheck {
  /** Stable, snake case. */
  readonly name: string;
  readonly description: string;
  readonly find: (sql: Sql, appId: AppId, isOver: () => boolean) => Promise<Violations>;
}

/** The result of a check. */
export interface LedgerCheckResult extends Violations {
  readonly name: string;
  readonly ok: boolean;
  readonly description: string;
}

/** The checks need more time than the caller has, or a statement needs more time, memory or disk than it may use. */
export class LedgerCheckTooLong extends Error {
  override readonly name = 'LedgerCheckTooLong';
}

/** Upper bound of the number of examples. */
export const MOST_EXAMPLES = 20;
/** Due commissions mature within about a minute. After this time something is wrong. */
export const SWEEP_IS_LATE_MINUTES = 10;

/** Creates a check from a statement that returns the ids (`id`, text) of all rows that break the rule. */
export function byStatement(
  name: string,
  description: string,
  broken: (sql: Sql, appId: AppId) => Fragment,
): LedgerCheck {
  return {
    name,
    description,
    find: async (sql, appId) =>
      await sql.one<Violations>`
        with broken (id) as materialized (${broken(sql, appId)})
        select (select count(*) from broken) as violations,
               coalesce((select jsonb_agg(id) from (select id from broken order by id limit ${MOST_EXAMPLES}) x), '[]')
                 as examples`,
  };
}

/** Rows that one page of a check reads. */
const PAGE = 1_000;

/**
 * Creates a check from a statement that reads `page`, rows of the table `from` in the order of their ids, and returns the ids of those that
 * break the rule. For rules whose search costs much per row: a large app takes longer, and no statement is too long.
 */
export function byPages(
  name: string,
  description: string,
  from: (sql: Sql) => Fragment,
  broken: (sql: Sql) => Fragment,
): LedgerCheck {
  return {
    name,
    description,
    find: async (sql, appId, isOver) => {
      let found: Violations = { violations: 0, examples: [] };
      for (let after: string | null = ''; after !== null;) {
        if (isOver()) throw new LedgerCheckTooLong(`there was no time left for ${name}`);
        const rows: Violations & { readonly last: string | null } = await sql.one`
          with page as materialized (
            select * from ${from(sql)} where app_id = ${appId} and id > ${after} order by id limit ${PAGE}
          ), broken (id) as materialized (${broken(sql)})
          select (select count(*) from broken) as violations,
                 coalesce((select jsonb_agg(id) from (select id from broken order by id limit ${MOST_EXAMPLES}) x), '[]') as examples,
                 (select id from page order by id offset ${PAGE - 1}) as last`;
        found = merge(found, rows);
        after = rows.last;
      }
      return found;
    },
  };
}

/** Adds violations to those before. */
export function merge(one: Violations, other: Violations): Violations {
  return {
    violations: one.violations + other.violations,
    examples: [...one.examples, ...other.examples].slice(0, MOST_EXAMPLES),
  };
}

/** `numerator / denominator`, both positive, rounded like every amount. `div` is exact, `/` is not. */
export const rounded = (sql: Sql, numerator: Fragment, denominator: Fragment): Fragment =>
  sql.fragment`div(2 * (${numerator}) + (${denominator}), 2 * (${denominator}))`;

/**
 * The row that counts among the attributed rows of the payment that `ref` names at the store of `row`: of the whole, if it was
 * reported in parts, else the first to earn.
 */
export const keptRow = (sql: Sql, row: Fragment, ref: Fragment): Fragment => sql.fragment`
  select q.id
    from same_payment(${row}.app_id, ${row}.environment, ${row}.store, array[${ref}]) q
    left join lateral whole_payment(q) w on true
    left join commissions c on c.payment_id = q.id and c.kind = 'earning'
   where q.binding_id is not null
   order by q.duplicate_of is not null, c.id is null, is_part_of(q, w), c.id, q.id limit 1`;
