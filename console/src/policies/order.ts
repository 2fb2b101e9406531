import type { Scope } from './assign.ts';
import type { Assignment } from './queries.ts';

// The assignments of a scope in their order. Of the same instant, the last one counts.

/** Whether an assignment is of a scope. */
export const isOfScope = ({ scope, scopeId }: Assignment, of: Scope): boolean =>
  scope === of.kind && (of.kind === 'app' || scopeId === of.id);

const isSameScope = (a: Assignment, b: Assignment) => a.scope === b.scope && a.scopeId === b.scopeId;

/** Returns the assignment that counts just before another one of its scope. */
export const before = (rows: readonly Assignment[], row: Assignment): Assignment | undefined =>
  rows
    .filter((one) => isSameScope(one, row) && one.effectiveFrom < row.effectiveFrom)
    .toSorted((a, b) => b.effectiveFrom - a.effectiveFrom || b.createdAt - a.createdAt)[0];

/** Returns those that count: not what another one of the same instant replaces, and not the end of a policy where there is none. */
export function counting(rows: readonly Assignment[]): readonly Assignment[] {
  const last = rows.filter(
    (row) =>
      !rows.some(
        (other) =>
          isSameScope(other, row) &&
          other.effectiveFrom === row.effectiveFrom &&
          other.createdAt > row.createdAt,
      ),
  );
  return last.filter((row) => row.policyId !== (before(last, row)?.policyId ?? null));
}

/** Returns what counts later than an instant. Undefined is now. */
export const laterThan = (rows: readonly Assignment[], from: number | undefined): readonly Assignment[] =>
  counting(rows).filter(
    ({ state, effectiveFrom }) => state === 'scheduled' && (from === undefined || effectiveFrom > from),
  );
