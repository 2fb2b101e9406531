import { Button, Text } from '@mantine/core';
import { useState } from 'react';
import { Link, useNavigate } from 'react-router';
import { api, read } from '../api/client.ts';
import { formatDate } from '../format.ts';
import { Section } from '../lists.tsx';
import { ErrorBox, Waiting } from '../parts.tsx';
import { NameDialog } from '../parts/name-dialog.tsx';
import { staleAfterTerms, useAssignments, useGroups } from '../policies/queries.ts';
import type { Assignment } from '../policies/queries.ts';
import { usePermission } from '../session.ts';

/** Says which policy a group has now, and which one later. */
function PolicyOf({
  appId,
  assignments,
}: {
  readonly appId: string;
  /** Those of the group. */
  readonly assignments: readonly Assignment[];
}) {
  const now = assignments.find(({ state }) => state === 'in_effect');
  const later = assignments.filter(({ state }) => state === 'scheduled').at(-1);
  return (
    <>
      {now?.policyId == null ? (
        <span className="quiet">No policy of its own</span>
      ) : (
        <Link to={`/apps/${appId}/policies/${now.policyId}`}>{now.policyName}</Link>
      )}
      {later !== undefined && (
        <Text size="xs" className="quiet">
          {later.policyName ?? 'No policy of its own'} from {formatDate(later.effectiveFrom)}
        </Text>
      )}
    </>
  );
}

function GroupTable({ appId }: { readonly appId: string }) {
  const groups = useGroups(appId);
  const assignments = useAssignments(appId);
  if (groups.error !== null) return <ErrorBox error={groups.error} retry={() => void groups.refetch()} />;
  if (groups.data === undefined) return <Waiting what="the groups" />;
  const { rows } = groups.data;
  return (
    <div className="surface">
      {rows.length === 0 ? (
        <Text size="sm" className="quiet" p="lg">
          No groups yet. Create one for creators who earn by another policy than all others, such as VIPs.
        </Text>
      ) : (
        <table className="rows">
          <thead>
            <tr>
              <th scope="col">Group</th>
              <th scope="col">Earns by</th>
              <th scope="col">Created</th>
            </tr>
          </thead>
          <tbody>
            {rows.map(({ id, name, createdAt }) => (
              <tr key={id}>
                <td>
                  <Link to={`/apps/${appId}/policies/groups/${id}`}>{name}</Link>
                </td>
                <td>
                  <PolicyOf
                    appId={appId}
                    assignments={assignments.data?.rows.filter(({ scopeId }) => scopeId === id) ?? []}
                  />
                </td>
                <td className="quiet">{formatDate(createdAt)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </div>
  );
}

/** The groups of creators, and the button that creates one. */
export function Groups({ appId }: { readonly appId: string }) {
  const canWrite = usePermission('write');
  const navigate = useNavigate();
  const [isOpen, setIsOpen] = useState(false);
  return (
    <Section
      id="groups"
      title="Groups"
      hint="Creators who earn by the same policy. A creator is in one group at most."
      aside={
        <Button variant="default" size="xs" disabled={!canWrite} onClick={() => setIsOpen(true)}>
          New group
        </Button>
      }
    >
      <GroupTable appId={appId} />
      <NameDialog
        title="New group"
        description="Creators do not see it."
        action="Create the group"
        isOpen={isOpen}
        onClose={() => setIsOpen(false)}
        stale={staleAfterTerms(appId)}
        save={async (name) =>
          await read(api.POST('/apps/{appId}/groups', { params: { path: { appId } }, body: { name } }))
        }
        onDone={({ id }) => void navigate(`/apps/${appId}/policies/groups/${id}`)}
      />
    </Section>
  );
}
