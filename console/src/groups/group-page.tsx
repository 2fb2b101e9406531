import { Button, Group, Stack, Text } from '@mantine/core';
import { useState } from 'react';
import { Link, useParams } from 'react-router';
import { api, Problem, read } from '../api/client.ts';
import type { Schemas } from '../api/client.ts';
import { Section } from '../lists.tsx';
import { NoPermission, PageHead } from '../parts.tsx';
import { Loaded } from '../parts/loaded.tsx';
import { ListView, useList } from '../parts/list.tsx';
import { NameDialog } from '../parts/name-dialog.tsx';
import { AssignDialog } from '../policies/assign-dialog.tsx';
import { Assignments } from '../policies/assignments.tsx';
import { sinceOrFrom } from '../policies/effective.tsx';
import { staleAfterTerms, useGroup, useRefreshAt } from '../policies/queries.ts';
import type { AffiliateGroup } from '../policies/queries.ts';
import { usePermission } from '../session.ts';
import { MoveDialog } from './move-dialog.tsx';

type Member = Schemas['GroupMember'];

function Members({ appId, group }: { readonly appId: string; readonly group: AffiliateGroup }) {
  const canWrite = usePermission('write');
  const [moving, setMoving] = useState<Member | 'new' | null>(null);
  const list = useList(
    ['group-members', appId, group.id],
    async (cursor) =>
      await read(
        api.GET('/apps/{appId}/groups/{groupId}/members', {
          params: { path: { appId, groupId: group.id }, query: cursor },
        }),
      ),
  );
  useRefreshAt(
    appId,
    list.rows.map(({ memberFrom }) => memberFrom),
  );
  return (
    <Section
      id="members"
      title="Creators"
      aside={
        <Button variant="default" size="xs" disabled={!canWrite} onClick={() => setMoving('new')}>
          Add a creator
        </Button>
      }
    >
      <ListView
        list={list}
        what="creators"
        isFiltered={false}
        onClearFilters={() => {}}
        nothingYet="Add a creator. Payments of the creator’s customers then earn by the policy of the group."
      >
        {(rows) => (
          <table className="rows centred">
            <thead>
              <tr>
                <th scope="col">Creator</th>
                <th scope="col">In the group</th>
                <th scope="col">
                  <span className="spoken">Actions</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {rows.map((member) => (
                <tr key={member.affiliateId}>
                  <td>
                    <Link to={`/apps/${appId}/creators/${member.affiliateId}`}>{member.affiliateName}</Link>
                  </td>
                  <td className="quiet">{sinceOrFrom(member.memberFrom)}</td>
                  <td style={{ textAlign: 'right' }}>
                    <Button
                      variant="default"
                      size="compact-sm"
                      disabled={!canWrite}
                      aria-label={`Move ${member.affiliateName}`}
                      onClick={() => setMoving(member)}
                    >
                      Move
                    </Button>
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        )}
      </ListView>
      <MoveDialog
        appId={appId}
        group={group}
        creator={
          moving === null || moving === 'new'
            ? undefined
            : { id: moving.affiliateId, name: moving.affiliateName }
        }
        isOpen={moving !== null}
        onClose={() => setMoving(null)}
      />
    </Section>
  );
}

function GroupView({ appId, group }: { readonly appId: string; readonly group: AffiliateGroup }) {
  const canWrite = usePermission('write');
  const [open, setOpen] = useState<'assign' | 'rename' | null>(null);
  const close = () => setOpen(null);
  return (
    <Stack gap="xl">
      <Group gap="xs">
        <Button variant="default" disabled={!canWrite} onClick={() => setOpen('assign')}>
          Assign a policy
        </Button>
        <Button variant="default" disabled={!canWrite} onClick={() => setOpen('rename')}>
          Rename
        </Button>
        {!canWrite && (
          <Text size="sm" className="quiet">
            Changes need the permission “write”, which you do not have.
          </Text>
        )}
      </Group>
      <Section
        id="policy"
        title="Policy"
        hint="Without one, the creators of the group earn like those without a group."
      >
        <Assignments appId={appId} groupId={group.id} />
      </Section>
      <Members appId={appId} group={group} />
      <AssignDialog
        appId={appId}
        scope={{ kind: 'group', id: group.id, name: group.name }}
        isOpen={open === 'assign'}
        onClose={close}
      />
      <NameDialog
        title={`Rename ${group.name}`}
        description="Creators do not see it."
        action="Save"
        name={group.name}
        isOpen={open === 'rename'}
        onClose={close}
        stale={staleAfterTerms(appId)}
        save={async (name) =>
          await read(
            api.PATCH('/apps/{appId}/groups/{groupId}', {
              params: { path: { appId, groupId: group.id } },
              body: { name },
            }),
          )
        }
      />
    </Stack>
  );
}

export default function GroupPage() {
  const { appId = '', groupId = '' } = useParams();
  const canRead = usePermission('read');
  const group = useGroup(appId, groupId, canRead);
  const content = () => {
    if (!canRead) return <NoPermission permission="read" what="groups" />;
    if (group.error instanceof Problem && group.error.status === 404)
      return <Text size="sm">There is no such group in this app.</Text>;
    return (
      <Loaded reading={group} what="the group">
        {(loaded) => <GroupView key={loaded.id} appId={appId} group={loaded} />}
      </Loaded>
    );
  };
  return (
    <>
      <Text size="sm">
        <Link to={`/apps/${appId}/policies`}>Policies and groups</Link>
      </Text>
      <PageHead title={group.data?.name ?? 'Group'} />
      {content()}
    </>
  );
}
