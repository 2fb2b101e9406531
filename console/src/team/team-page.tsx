import { Badge, Button, Group, Stack, Text, Tooltip } from '@mantine/core';
import { useState } from 'react';
import { api, given, read } from '../api/client.ts';
import { KEYS, useApps, useChange } from '../api/queries.ts';
import { Confirm, Dialog } from '../dialog.tsx';
import { formatAgo, formatInstant } from '../format.ts';
import { Section } from '../lists.tsx';
import { ErrorBox, PageHead } from '../parts.tsx';
import { ListView, useList } from '../parts/list.tsx';
import { useCurrentSession } from '../session.ts';
import { MemberForm, MemberLink, useMemberLink } from './member-form.tsx';
import { MEMBERS_KEY, ROLES } from './words.ts';
import type { Member } from './words.ts';

/** Copies a link of a member, or mails one. */
function LinkDialog({ member, onClose }: { readonly member: Member; readonly onClose: () => void }) {
  const session = useCurrentSession();
  const { sendsMail = false } = session;
  const path = { accountId: session.account.id, memberId: member.id };
  const link = useMemberLink();
  const mail = useChange(
    async () =>
      await read(
        api.POST('/accounts/{accountId}/members/{memberId}/sign-in-links/send', { params: { path } }),
      ),
    MEMBERS_KEY,
  );
  const isDone = link.data !== undefined || mail.data !== undefined;
  return (
    <Stack>
      {!isDone && (
        <Text size="sm">
          The link signs {member.name} in once, within a day. It does not let the browser pay: for that, the
          member needs a passkey, a link that was mailed on request, or a key that may pay.
        </Text>
      )}
      {mail.data !== undefined && (
        <Text size="sm" role="status">
          A link is on its way to {mail.data.maskedRecipient}.
        </Text>
      )}
      {link.data !== undefined && <MemberLink link={link.data} name={member.name} />}
      {link.error !== null && <ErrorBox error={link.error} />}
      {mail.error !== null && <ErrorBox error={mail.error} />}
      <Group justify="flex-end">
        <Button variant="default" onClick={onClose}>
          {isDone ? 'Done' : 'Cancel'}
        </Button>
        {!isDone && (
          <Button
            {...(sendsMail ? { variant: 'default' as const } : {})}
            loading={link.isPending}
            disabled={mail.isPending}
            onClick={() => link.mutate(member.id)}
          >
            Create the link
          </Button>
        )}
        {!isDone && sendsMail && (
          <Button loading={mail.isPending} disabled={link.isPending} onClick={() => mail.mutate(undefined)}>
            Send by mail
          </Button>
        )}
      </Group>
    </Stack>
  );
}

function RemoveDialog({ member, onClose }: { readonly member: Member; readonly onClose: () => void }) {
  const session = useCurrentSession();
  const path = { accountId: session.account.id, memberId: member.id };
  const isOwn = session.member?.id === member.id;
  const remove = useChange(
    async () => await read(api.POST('/accounts/{accountId}/members/{memberId}/remove', { params: { path } })),
    MEMBERS_KEY,
    KEYS.session,
  );
  return (
    <Confirm
      action="Remove the member"
      color="red.9"
      change={remove}
      onConfirm={() => remove.mutate(undefined, { onSuccess: onClose })}
      onClose={onClose}
    >
      {isOwn ? 'That is you: you are signed out' : `${member.name} is signed out`} at once, links and passkeys
      stop working, and the address is erased. What {isOwn ? 'you have' : `${member.name} has`} done keeps the
      name “{member.name}”.
    </Confirm>
  );
}

const FAILED = { failed: true, skipped: true, queued: false, sent: false } as const;

type OpenDialog =
  | { readonly kind: 'invite'; readonly member: null }
  | { readonly kind: 'change' | 'link' | 'remove'; readonly member: Member };

function MemberRow({
  member,
  onOpen,
}: {
  readonly member: Member;
  readonly onOpen: (dialog: OpenDialog) => void;
}) {
  const session = useCurrentSession();
  const apps = useApps();
  const names = new Map(apps.data?.map(({ id, name }) => [id, name]));
  const { invitation, lastActiveAt } = member;
  return (
    <tr>
      <td>
        <Group gap={8}>
          <Text component="span" size="sm" fw={500}>
            <bdi>{member.name}</bdi>
          </Text>
          {member.id === session.member?.id && (
            <Badge size="sm" radius="sm" variant="light" tt="none">
              you
            </Badge>
          )}
        </Group>
        <Text size="xs" className="quiet">
          <bdi>{member.email}</bdi>
        </Text>
        {lastActiveAt === null && invitation !== null && FAILED[invitation.status] && (
          <Text size="xs">The invitation was not sent. {invitation.lastProblem}</Text>
        )}
      </td>
      <td data-name="Role">
        <Tooltip label={ROLES[member.role].may}>
          <span>{ROLES[member.role].name}</span>
        </Tooltip>
      </td>
      <td data-name="Apps">
        {member.appIds === null ? (
          <span className="quiet">all</span>
        ) : (
          member.appIds.map((id) => names.get(id) ?? id).join(', ')
        )}
      </td>
      <td data-name="Active">
        {lastActiveAt === null ? (
          <span className="quiet">not yet</span>
        ) : (
          <span title={formatInstant(lastActiveAt)}>{formatAgo(lastActiveAt)}</span>
        )}
      </td>
      <td>
        <Group gap={6} justify="flex-end">
          <Button
            variant="default"
            size="compact-sm"
            aria-label={`Change ${member.name}`}
            onClick={() => onOpen({ kind: 'change', member })}
          >
            Change
          </Button>
          <Button
            variant="default"
            size="compact-sm"
            aria-label={`Link for ${member.name}`}
            onClick={() => onOpen({ kind: 'link', member })}
          >
            Link
          </Button>
          <Button
            variant="default"
            size="compact-sm"
            aria-label={`Remove ${member.name}`}
            onClick={() => onOpen({ kind: 'remove', member })}
          >
            Remove
          </Button>
        </Group>
      </td>
    </tr>
  );
}

function titleOf({ kind, member }: OpenDialog): string {
  switch (kind) {
    case 'invite':
      return 'Invite a member';
    case 'change':
      return `Change ${member.name}`;
    case 'link':
      return `A link for ${member.name}`;
    case 'remove':
      return `Remove ${member.name}?`;
  }
}

function Members() {
  const accountId = useCurrentSession().account.id;
  const [dialog, setDialog] = useState<OpenDialog | null>(null);
  const close = () => setDialog(null);
  const list = useList(
    MEMBERS_KEY,
    async (cursor) =>
      await read(
        api.GET('/accounts/{accountId}/members', {
          params: { path: { accountId }, query: given({ ...cursor }) },
        }),
      ),
  );
  return (
    <Section
      id="members"
      title="Members"
      aside={<Button onClick={() => setDialog({ kind: 'invite', member: null })}>Invite</Button>}
    >
      <ListView
        list={list}
        what="members"
        isFiltered={false}
        onClearFilters={() => {}}
        nothingYet="Invite yourself as the first owner, then sign in with the link. From then on, owners manage the team without the operator."
      >
        {(rows) => (
          <table className="rows">
            <thead>
              <tr>
                <th scope="col">Member</th>
                <th scope="col">Role</th>
                <th scope="col">Apps</th>
                <th scope="col">Active</th>
                <th scope="col">
                  <span className="spoken">Actions</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {rows.map((member) => (
                <MemberRow key={member.id} member={member} onOpen={setDialog} />
              ))}
            </tbody>
          </table>
        )}
      </ListView>
      <Dialog isOpen={dialog !== null} onClose={close} title={dialog === null ? '' : titleOf(dialog)}>
        {(dialog?.kind === 'invite' || dialog?.kind === 'change') && (
          <MemberForm member={dialog.member} onClose={close} />
        )}
        {dialog?.kind === 'link' && <LinkDialog member={dialog.member} onClose={close} />}
        {dialog?.kind === 'remove' && <RemoveDialog member={dialog.member} onClose={close} />}
      </Dialog>
    </Section>
  );
}

export default function TeamPage() {
  const { managesMembers } = useCurrentSession();
  return (
    <>
      <PageHead title="Team">
        People who sign in with their e-mail address, each with a role and, if you like, only some apps.
        Programs use keys, which are on the page Access.
      </PageHead>
      {managesMembers ? (
        <Members />
      ) : (
        <div className="surface">
          <Stack gap="xs" p="xl">
            <Text fw={600}>Owners manage the team</Text>
            <Text size="sm" className="quiet">
              Sign in as an owner, or with a link of the operator, who prints one with{' '}
              <code>npm run -s admin -- console</code>. A key does not suffice, whatever its permissions.
            </Text>
          </Stack>
        </div>
      )}
    </>
  );
}
