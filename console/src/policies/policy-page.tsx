import { Button, Group, Stack, Text } from '@mantine/core';
import { useState } from 'react';
import { Link, useLocation, useParams } from 'react-router';
import { api, Problem, read } from '../api/client.ts';
import { useChange } from '../api/queries.ts';
import { formatInstant } from '../format.ts';
import { Section } from '../lists.tsx';
import { ErrorBox, NoPermission, PageHead } from '../parts.tsx';
import { Loaded } from '../parts/loaded.tsx';
import { Tag } from '../parts/badges.tsx';
import { ListView, useList } from '../parts/list.tsx';
import { NameDialog } from '../parts/name-dialog.tsx';
import { usePermission } from '../session.ts';
import { AssignDialog } from './assign-dialog.tsx';
import { Assignments } from './assignments.tsx';
import { isAhead, sinceOrFrom } from './effective.tsx';
import { OwnRates } from './own-rates.tsx';
import type { OwnRate } from './own-rates.tsx';
import { staleAfterTerms, useAssignments, usePolicy, useRefreshAt } from './queries.ts';
import type { Policy, Version } from './queries.ts';
import { Sentences, TermsInWords } from './terms.tsx';
import { BASES } from './words.ts';

function VersionState({ version, policy }: { readonly version: Version; readonly policy: Policy }) {
  if (version.id === policy.current?.id) return <Tag tone="good">In effect</Tag>;
  return isAhead(version.effectiveFrom) ? <Tag tone="wait">Scheduled</Tag> : <Tag tone="plain">Past</Tag>;
}

function Versions({ appId, policy }: { readonly appId: string; readonly policy: Policy }) {
  const list = useList(
    ['policy-versions', appId, policy.id],
    async (cursor) =>
      await read(
        api.GET('/apps/{appId}/policies/{policyId}/versions', {
          params: { path: { appId, policyId: policy.id }, query: cursor },
        }),
      ),
  );
  useRefreshAt(
    appId,
    list.rows.map(({ effectiveFrom }) => effectiveFrom),
  );
  return (
    <ListView
      list={list}
      what="versions"
      isFiltered={false}
      onClearFilters={() => {}}
      nothingYet="The policy has no effect before a version is published."
    >
      {(rows) => (
        <table className="rows">
          <thead>
            <tr>
              <th scope="col">Version</th>
              <th scope="col">State</th>
              <th scope="col">Rules</th>
            </tr>
          </thead>
          <tbody>
            {rows.map((version) => (
              <tr key={version.id}>
                <td style={{ whiteSpace: 'nowrap' }}>
                  <Text size="sm" fw={500}>
                    Version {version.version}
                  </Text>
                  <Text size="xs" className="quiet">
                    published {formatInstant(version.createdAt)}
                  </Text>
                </td>
                <td>
                  <VersionState version={version} policy={policy} />
                  <Text size="xs" className="quiet">
                    {sinceOrFrom(version.effectiveFrom)}
                  </Text>
                </td>
                <td>
                  <Sentences sentences={version.sentences} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </ListView>
  );
}

function VersionCard({ title, version }: { readonly title: string; readonly version: Version }) {
  return (
    <section className="surface part" aria-label={title}>
      <Text size="sm" fw={600} mb="xs">
        {title}{' '}
        <Text span inherit fw={400} className="quiet">
          · version {version.version}, {sinceOrFrom(version.effectiveFrom)}
        </Text>
      </Text>
      <TermsInWords {...version} base={BASES[version.terms.base].meaning} />
    </section>
  );
}

/** Returns the creators with an own rate that the page before has passed on. */
function passedRates(state: unknown): readonly OwnRate[] {
  return typeof state === 'object' && state !== null && 'ownRates' in state && Array.isArray(state.ownRates)
    ? (state.ownRates as readonly OwnRate[])
    : [];
}

/** Archives a policy that is assigned to nobody, or brings it back. */
function ArchiveButton({ appId, policy }: { readonly appId: string; readonly policy: Policy }) {
  const canWrite = usePermission('write');
  const isArchived = policy.archivedAt !== undefined;
  const change = useChange(
    async (archived: boolean) =>
      await read(
        api.PATCH('/apps/{appId}/policies/{policyId}', {
          params: { path: { appId, policyId: policy.id } },
          body: { archived },
        }),
      ),
    ['policies', appId],
  );
  return (
    <>
      <Button
        variant="default"
        disabled={!canWrite}
        loading={change.isPending}
        onClick={() => change.mutate(!isArchived)}
      >
        {isArchived ? 'Bring back' : 'Archive'}
      </Button>
      {isArchived && (
        <Text size="sm" className="quiet">
          Archived since {formatInstant(policy.archivedAt ?? 0)}: lists leave it out, and nobody can get it.
        </Text>
      )}
      {change.error !== null && <ErrorBox error={change.error} />}
    </>
  );
}

function PolicyView({ appId, policy }: { readonly appId: string; readonly policy: Policy }) {
  const canWrite = usePermission('write');
  const [open, setOpen] = useState<'assign' | 'rename' | null>(null);
  const close = () => setOpen(null);
  const assignments = useAssignments(appId);
  useRefreshAt(appId, assignments.data?.rows.map(({ effectiveFrom }) => effectiveFrom) ?? []);
  const ownRates = passedRates(useLocation().state);
  return (
    <Stack gap="xl">
      {ownRates.length > 0 && <OwnRates appId={appId} rates={ownRates} />}
      <Group gap="xs">
        {canWrite && (
          <Button component={Link} to={`/apps/${appId}/policies/${policy.id}/new-version`}>
            Publish a version
          </Button>
        )}
        <Button
          variant="default"
          disabled={!canWrite || policy.archivedAt !== undefined}
          onClick={() => setOpen('assign')}
        >
          Assign
        </Button>
        <Button variant="default" disabled={!canWrite} onClick={() => setOpen('rename')}>
          Rename
        </Button>
        <ArchiveButton appId={appId} policy={policy} />
        {!canWrite && (
          <Text size="sm" className="quiet">
            Changes need the permission “write”, which you do not have.
          </Text>
        )}
      </Group>
      <div className="halves">
        {policy.current !== null && <VersionCard title="In effect" version={policy.current} />}
        {policy.next !== null && <VersionCard title="Takes effect next" version={policy.next} />}
      </div>
      <Section
        id="assigned"
        title="Assigned to"
        hint="Payments earn by the version that is in effect when the customer pays."
      >
        <Assignments appId={appId} policyId={policy.id} />
      </Section>
      <Section
        id="versions"
        title="Versions"
        hint="A version is never changed, so what was earned by it can always be explained."
      >
        <Versions appId={appId} policy={policy} />
      </Section>
      <Text size="sm" className="quiet">
        <Link to={`/audit?object=${policy.id}&kind=policy`}>Who changed this policy, and when</Link>
      </Text>
      <AssignDialog appId={appId} policy={policy} isOpen={open === 'assign'} onClose={close} />
      <NameDialog
        title={`Rename ${policy.name}`}
        description="Creators see it, too."
        action="Save"
        name={policy.name}
        isOpen={open === 'rename'}
        onClose={close}
        stale={staleAfterTerms(appId)}
        save={async (name) =>
          await read(
            api.PATCH('/apps/{appId}/policies/{policyId}', {
              params: { path: { appId, policyId: policy.id } },
              body: { name },
            }),
          )
        }
      />
    </Stack>
  );
}

export default function PolicyPage() {
  const { appId = '', policyId = '' } = useParams();
  const canRead = usePermission('read');
  const policy = usePolicy(appId, policyId, canRead);
  const content = () => {
    if (!canRead) return <NoPermission permission="read" what="policies" />;
    if (policy.error instanceof Problem && policy.error.status === 404)
      return <Text size="sm">There is no such policy in this app.</Text>;
    return (
      <Loaded reading={policy} what="the policy">
        {(loaded) => <PolicyView key={loaded.id} appId={appId} policy={loaded} />}
      </Loaded>
    );
  };
  return (
    <>
      <Text size="sm">
        <Link to={`/apps/${appId}/policies`}>Policies and groups</Link>
      </Text>
      <PageHead title={policy.data?.name ?? 'Policy'} />
      {content()}
    </>
  );
}
