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
      return `/apps/${appId}/groups/${scopeId}`;
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
  const named = assignments.slice(0, MOST_NAMED);
  return (
    <>
      Assigned to{' '}
      {named.map((assignment, index) => {
        const path = pathOf(appId, assignment);
        const words = scopeWords(assignment);
        return (
          <Fragment key={`${assignment.scopeId} ${assignment.effectiveFrom}`}>
            {index > 0 && ', '}
            {path === null ? words : <Link to={path}>{words}</Link>}
            {assignment.state === 'scheduled' && ` from ${formatDate(assignment.effectiveFrom)}`}
          </Fragment>
        );
      })}
      {assignments.length > MOST_NAMED && ` and ${assignments.length - MOST_NAMED} others`}
    </>
  );
}
