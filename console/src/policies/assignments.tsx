import { Button, Text } from '@mantine/core';
import { useState } from 'react';
import { Link } from 'react-router';
import { formatInstant } from '../format.ts';
import { ErrorBox, Waiting } from '../parts.tsx';
import { Tag } from '../parts/badges.tsx';
import { ListEnd } from '../parts/list.tsx';
import { usePermission } from '../session.ts';
import { AssignDialog } from './assign-dialog.tsx';
import type { Scope } from './assign.ts';
import { counting } from './order.ts';
import { ScopeName } from './assigned-to.tsx';
import { useAssignments } from './queries.ts';
import type { Assignment } from './queries.ts';
import { scopeWords } from './words.ts';

const SCOPE_ORDER = { app: 0, group: 1, affiliate: 2 } as const;

/** Orders assignments: those of the app first, then of groups, then of creators; those of a scope by their time. */
const inOrder = (rows: readonly Assignment[]) =>
  rows.toSorted(
    (a, b) =>
      SCOPE_ORDER[a.scope] - SCOPE_ORDER[b.scope] ||
      a.scopeName.localeCompare(b.scopeName) ||
      a.scopeId.localeCompare(b.scopeId) ||
      a.effectiveFrom - b.effectiveFrom,
  );

const scopeOf = ({ scope, scopeId, scopeName }: Assignment): Scope =>
  scope === 'app' ? { kind: 'app' } : { kind: scope, id: scopeId, name: scopeName };

function Row({
  appId,
  row,
  hasScope,
  hasPolicy,
  onChange,
}: {
  readonly appId: string;
  readonly row: Assignment;
  /** Whether the row names what the policy is assigned to, and which one it is. */
  readonly hasScope: boolean;
  readonly hasPolicy: boolean;
  readonly onChange: () => void;
}) {
  const canWrite = usePermission('write');
  return (
    <tr>
      {hasScope && (
        <td>
          <ScopeName appId={appId} assignment={row} />
        </td>
      )}
      {hasPolicy && (
        <td>
          {row.policyId === null ? (
            'No policy of its own'
          ) : (
            <Link to={`/apps/${appId}/policies/${row.policyId}`}>{row.policyName}</Link>
          )}
        </td>
      )}
      <td>
        {row.state === 'scheduled' ? <Tag tone="wait">Scheduled</Tag> : <Tag tone="good">In effect</Tag>}
        <Text size="xs" className="quiet">
          {row.state === 'scheduled' ? 'from' : 'since'} {formatInstant(row.effectiveFrom)}
        </Text>
      </td>
      <td style={{ textAlign: 'right' }}>
        <Button
          variant="default"
          size="compact-sm"
          disabled={!canWrite}
          aria-label={`Change the policy of ${scopeWords(row)}`}
          onClick={onChange}
        >
          Change
        </Button>
      </td>
    </tr>
  );
}

/** What is assigned now and later: of the app with its groups and creators, of one policy, or of one group. */
export function Assignments({
  appId,
  policyId,
  groupId,
}: {
  readonly appId: string;
  readonly policyId?: string;
  readonly groupId?: string;
}) {
  const [changing, setChanging] = useState<Assignment | null>(null);
  const assignments = useAssignments(appId, groupId);
  const { data, error, refetch } = assignments;
  if (error !== null) return <ErrorBox error={error} retry={() => void refetch()} />;
  if (data === undefined) return <Waiting what="the assignments" />;
  // A scope without a policy that never had one is not listed by the service; one that lost its policy is.
  const rows = inOrder(
    counting(data.rows).filter(
      (row) =>
        (policyId === undefined || row.policyId === policyId) &&
        (row.policyId !== null || row.state === 'scheduled'),
    ),
  );
  return (
    <>
      <div className="surface">
        {rows.length === 0 ? (
          <Text size="sm" className="quiet" p="lg">
            No policy is assigned.
          </Text>
        ) : (
          <table className="rows centred">
            <thead>
              <tr>
                {groupId === undefined && <th scope="col">Assigned to</th>}
                {policyId === undefined && <th scope="col">Policy</th>}
                <th scope="col">State</th>
                <th scope="col">
                  <span className="spoken">Actions</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {rows.map((row) => (
                <Row
                  key={`${row.scopeId} ${row.effectiveFrom} ${row.createdAt}`}
                  appId={appId}
                  row={row}
                  hasScope={groupId === undefined}
                  hasPolicy={policyId === undefined}
                  onChange={() => setChanging(row)}
                />
              ))}
            </tbody>
          </table>
        )}
      </div>
      {data.isCut && <ListEnd>Only the latest assignments are shown.</ListEnd>}
      {changing !== null && (
        <AssignDialog
          appId={appId}
          scope={scopeOf(changing)}
          row={changing}
          isOpen
          onClose={() => setChanging(null)}
        />
      )}
    </>
  );
}
