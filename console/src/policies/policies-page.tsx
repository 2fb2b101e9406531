import { Button, Checkbox, Group, Stack, Text, Title } from '@mantine/core';
import { useState } from 'react';
import { Link, useParams } from 'react-router';
import { Groups } from '../groups/groups.tsx';
import { Section } from '../lists.tsx';
import { NoPermission } from '../parts.tsx';
import { Tag } from '../parts/badges.tsx';
import { HeadAside, HeadNote } from '../parts/head-aside.tsx';
import { ListView } from '../parts/list.tsx';
import { IS_NEW } from '../shortcuts/use-shortcuts.ts';
import { usePermission } from '../session.ts';
import { AssignDialog } from './assign-dialog.tsx';
import { AssignedTo } from './assigned-to.tsx';
import { Assignments } from './assignments.tsx';
import { sinceOrFrom } from './effective.tsx';
import { useAssignments, usePolicyList, useRefreshAt } from './queries.ts';
import type { Assignment, Policy } from './queries.ts';
import { Sentences } from './terms.tsx';

/** Returns the state of a policy in words. */
function stateOf({ current, next, archivedAt }: Policy, assignments: readonly Assignment[]) {
  if (archivedAt !== undefined) return { tone: 'plain', text: 'Archived' } as const;
  if (current === null && next === null) return { tone: 'plain', text: 'No version' } as const;
  if (current === null) return { tone: 'wait', text: 'Scheduled' } as const;
  const states = assignments.map(({ state }) => state);
  if (states.includes('in_effect')) return { tone: 'good', text: 'In effect' } as const;
  return states.length > 0
    ? ({ tone: 'wait', text: 'Scheduled' } as const)
    : ({ tone: 'plain', text: 'Not assigned' } as const);
}

function PolicyCard({
  appId,
  policy,
  assignments,
  onAssign,
}: {
  readonly appId: string;
  readonly policy: Policy;
  readonly assignments: readonly Assignment[];
  readonly onAssign: () => void;
}) {
  const canWrite = usePermission('write');
  const { id, name, current, next } = policy;
  const state = stateOf(policy, assignments);
  return (
    <li className="policy" aria-labelledby={id}>
      <Group gap="xs" mb="xs">
        <Title order={2} size="h5" id={id}>
          <Link to={`/apps/${appId}/policies/${id}`}>{name}</Link>
        </Title>
        <Tag tone={state.tone}>{state.text}</Tag>
      </Group>
      {current !== null && <Sentences sentences={current.sentences} />}
      {next !== null && (
        <div className="next">
          <Text size="xs" fw={600} className="quiet">
            {current === null ? 'Takes effect' : 'Changes'} {sinceOrFrom(next.effectiveFrom)}
          </Text>
          <Sentences sentences={next.sentences} />
        </div>
      )}
      {current === null && next === null && (
        <Text size="sm" className="quiet">
          It has no effect before a version is published.
        </Text>
      )}
      <Group justify="space-between" gap="xs" mt="xs">
        <Text size="sm" className="quiet">
          <AssignedTo appId={appId} assignments={assignments} />
        </Text>
        <Group gap="xs">
          <Button
            variant="default"
            size="compact-sm"
            disabled={!canWrite || policy.archivedAt !== undefined}
            aria-label={`Assign ${name}`}
            onClick={onAssign}
          >
            Assign
          </Button>
          {canWrite && (
            <Button
              component={Link}
              to={`/apps/${appId}/policies/${id}/new-version`}
              variant="default"
              size="compact-sm"
              aria-label={`Publish a version of ${name}`}
            >
              Publish a version
            </Button>
          )}
        </Group>
      </Group>
    </li>
  );
}

function Policies({ appId }: { readonly appId: string }) {
  const [isArchived, setIsArchived] = useState(false);
  const list = usePolicyList(appId, isArchived);
  const assignments = useAssignments(appId);
  const [assigning, setAssigning] = useState<Policy | null>(null);
  useRefreshAt(appId, [
    ...list.rows.flatMap(({ next }) => (next === null ? [] : [next.effectiveFrom])),
    ...(assignments.data?.rows.map(({ effectiveFrom }) => effectiveFrom) ?? []),
  ]);
  return (
    <Stack gap="xl">
      <section aria-label="Policies">
        <Checkbox
          mb="sm"
          size="sm"
          label="Archived policies"
          checked={isArchived}
          onChange={(event) => setIsArchived(event.currentTarget.checked)}
        />
        <ListView
          list={list}
          what="policies"
          isFiltered={isArchived}
          onClearFilters={() => setIsArchived(false)}
          nothingYet="Creators earn the commission of the settings, or their own. A policy says more: other rates in the first year, by product or by store, of the price or of the proceeds."
        >
          {(rows) => (
            <ul className="policies">
              {rows.map((policy) => (
                <PolicyCard
                  key={policy.id}
                  appId={appId}
                  policy={policy}
                  assignments={assignments.data?.rows.filter(({ policyId }) => policyId === policy.id) ?? []}
                  onAssign={() => setAssigning(policy)}
                />
              ))}
            </ul>
          )}
        </ListView>
      </section>
      <Section
        id="order"
        title="Who earns by what"
        hint="A creator’s own policy goes first, then the creator’s own rate, then the policy of the group, then that of the app. Without any of them, the commission of the settings counts."
      >
        <Assignments appId={appId} />
      </Section>
      <Groups appId={appId} />
      {assigning !== null && (
        <AssignDialog appId={appId} policy={assigning} isOpen onClose={() => setAssigning(null)} />
      )}
    </Stack>
  );
}

export default function PoliciesPage() {
  const { appId = '' } = useParams();
  const canRead = usePermission('read');
  const canWrite = usePermission('write');
  return (
    <>
      <HeadAside>
        {canWrite && canRead && (
          <Button {...IS_NEW} component={Link} to={`/apps/${appId}/policies/new`}>
            New policy
          </Button>
        )}
      </HeadAside>
      {!canWrite && <HeadNote>Changes need the permission “write”, which you do not have.</HeadNote>}
      {canRead ? <Policies key={appId} appId={appId} /> : <NoPermission permission="read" what="policies" />}
    </>
  );
}
