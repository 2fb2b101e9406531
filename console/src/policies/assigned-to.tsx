import { Fragment } from 'react';
import { Link } from 'react-router';
import { formatDate } from '../format.ts';
import type { Assignment } from './queries.ts';
import { scopeWords } from './words.ts';

/** How many creators a line names. */
const MOST_NAMED = 5;

/** Returns the path of the page of what a policy is assigned to. Null for the app. */
function pathOf(appId: string, { scope, scopeId }: Assignment): string | null {
  switch (scope) {
    case 'app':
      return null;
    case 'group':
      return `/apps/${appId}/policies/groups/${scopeId}`;
    case 'affiliate':
      return `/apps/${appId}/creators/${scopeId}`;
  }
}

/** What a policy is assigned to, with a link to its page. */
export function ScopeName({
  appId,
  assignment,
}: {
  readonly appId: string;
  readonly assignment: Assignment;
}) {
  const path = pathOf(appId, assignment);
  const { scope, scopeName } = assignment;
  if (path === null) return 'All creators of the app';
  return scope === 'group' ? (
    <>
      The group <Link to={path}>{scopeName}</Link>
    </>
  ) : (
    <Link to={path}>{scopeName}</Link>
  );
}

/** Returns one assignment of each scope: the earliest, which is the one in effect if there is one. */
const onePerScope = (assignments: readonly Assignment[]): Assignment[] => [
  ...new Map(
    assignments
      .toSorted((a, b) => b.effectiveFrom - a.effectiveFrom)
      .map((assignment) => [assignment.scopeId, assignment]),
  ).values(),
];

/** Says in a line to whom a policy is assigned, now and later. */
export function AssignedTo({
  appId,
  assignments,
}: {
  readonly appId: string;
  /** Those of the policy that are in effect or scheduled. */
  readonly assignments: readonly Assignment[];
}) {
  if (assignments.length === 0) return 'Not assigned';
  const scopes = onePerScope(assignments);
  const named = scopes.slice(0, MOST_NAMED);
  return (
    <>
      Assigned to{' '}
      {named.map((assignment, index) => {
        const path = pathOf(appId, assignment);
        const words = scopeWords(assignment);
        return (
          <Fragment key={assignment.scopeId}>
            {index > 0 && ', '}
            {path === null ? words : <Link to={path}>{words}</Link>}
            {assignment.state === 'scheduled' && ` from ${formatDate(assignment.effectiveFrom)}`}
          </Fragment>
        );
      })}
      {scopes.length > MOST_NAMED && ` and ${scopes.length - MOST_NAMED} others`}
    </>
  );
}
