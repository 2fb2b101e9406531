import { Button, Checkbox, Group, NativeSelect, Stack, Text, TextInput } from '@mantine/core';
import { useState } from 'react';
import { api, read } from '../api/client.ts';
import { KEYS, useApps, useChange } from '../api/queries.ts';
import { formatInstant } from '../format.ts';
import { ErrorBox, Secret } from '../parts.tsx';
import { useChanges } from '../parts/changes.ts';
import { useFieldErrors } from '../parts/field-errors.tsx';
import { RaiseOver, shownError } from '../payouts/raise-over.tsx';
import { useCurrentSession } from '../session.ts';
import { MEMBERS_KEY, ROLES } from './words.ts';
import type { Member, Role } from './words.ts';

const ROLE_NAMES = Object.entries(ROLES).map(([value, { name }]) => ({ value, label: name }));

/** Returns a link to copy of a member, as a change. */
export function useMemberLink() {
  const accountId = useCurrentSession().account.id;
  return useChange(
    async (memberId: string) =>
      await read(
        api.POST('/accounts/{accountId}/members/{memberId}/sign-in-links', {
          params: { path: { accountId, memberId } },
        }),
      ),
  );
}

/** A link of a member, which is shown once. */
export function MemberLink({
  link,
  name,
}: {
  readonly link: { url: string; expiresAt: number };
  readonly name: string;
}) {
  return (
    <Secret text={link.url} what="the link">
      It signs {name} in once, until {formatInstant(link.expiresAt)}. Anybody who opens it is signed in as{' '}
      {name}.
    </Secret>
  );
}

/** What follows when a member was added: the mail is on its way, or the link has to be copied. */
function Added({
  member,
  onClose,
}: {
  readonly member: Member & { isMailed: boolean };
  readonly onClose: () => void;
}) {
  const link = useMemberLink();
  return (
    <Stack>
      <Text size="sm" role="status">
        {member.isMailed
          ? `${member.name} is a member. A mail with a link is on its way to ${member.email}.`
          : `${member.name} is a member. No mail was sent: the service has no mail server, or the address or the account has had too many invitations within an hour. Copy a link and pass it on.`}
      </Text>
      {link.data !== undefined && <MemberLink link={link.data} name={member.name} />}
      {link.error !== null && <ErrorBox error={link.error} />}
      <Group justify="flex-end">
        {!member.isMailed && link.data === undefined && (
          <Button variant="default" loading={link.isPending} onClick={() => link.mutate(member.id)}>
            Create the link
          </Button>
        )}
        <Button onClick={onClose}>Done</Button>
      </Group>
    </Stack>
  );
}

interface Fields {
  readonly name: string;
  readonly role: Role;
  readonly appIds: string[] | null;
}

/** Asks for the fields of a member, who is new without `member`. */
export function MemberForm({
  member,
  onClose,
}: {
  readonly member: Member | null;
  readonly onClose: () => void;
}) {
  const accountId = useCurrentSession().account.id;
  const apps = useApps();
  const [email, setEmail] = useState(member?.email ?? '');
  const [name, setName] = useState(member?.name ?? '');
  const [role, setRole] = useState<Role>(member?.role ?? 'analyst');
  const [isLimited, setIsLimited] = useState(member !== null && member.appIds !== null);
  const [appIds, setAppIds] = useState<string[]>(member?.appIds ?? []);
  const seesAll = role === 'owner' || !isLimited;
  const body: Fields = { name: name.trim(), role, appIds: seesAll ? null : appIds };
  const invite = useChange(
    async () =>
      await read(
        api.POST('/accounts/{accountId}/members', {
          params: { path: { accountId } },
          body: { ...body, email: email.trim() },
        }),
      ),
    MEMBERS_KEY,
  );
  const [before] = useState<Fields>(member ?? { name: '', role: 'analyst', appIds: null });
  const { changesTo, onError } = useChanges(before);
  const change = useChange(
    async ({ memberId, changes }: { readonly memberId: string; readonly changes: Partial<Fields> }) =>
      await read(
        api.PATCH('/accounts/{accountId}/members/{memberId}', {
          params: { path: { accountId, memberId } },
          body: changes,
        }),
      ),
    MEMBERS_KEY,
    // Who changes the own role sees it at once.
    KEYS.session,
  );
  const errors = useFieldErrors(
    shownError(invite.error ?? change.error),
    { email: 'E-mail address', name: 'Name', role: 'Role', appIds: 'Apps' },
    { member_exists: ['email', 'A member has this address already. Change that member instead.'] },
  );
  const send = () => {
    if (member === null) {
      invite.mutate(undefined);
      return;
    }
    // An owner sees all apps, whatever a colleague has chosen meanwhile.
    const changes = { ...changesTo(body), ...(role === 'owner' && { appIds: null }) };
    change.mutate(
      { memberId: member.id, changes },
      { onSuccess: onClose, onError: (error) => onError(error, changes) },
    );
  };
  if (invite.data !== undefined) return <Added member={invite.data} onClose={onClose} />;
  return (
    <>
      <form
        {...errors.root}
        onSubmit={(event) => {
          event.preventDefault();
          send();
        }}
      >
        <Stack>
          {member === null && (
            <TextInput
              label="E-mail address"
              type="email"
              description="Links to sign in go there. It cannot be changed later."
              required
              withAsterisk={false}
              maxLength={320}
              data-autofocus
              value={email}
              {...errors.at('email')}
              onChange={(event) => setEmail(event.currentTarget.value)}
            />
          )}
          <TextInput
            label="Name"
            placeholder="Ann, finance"
            description="Shown beside what the member has changed, also after the member is removed."
            required
            withAsterisk={false}
            maxLength={200}
            value={name}
            {...errors.at('name')}
            onChange={(event) => setName(event.currentTarget.value)}
          />
          <NativeSelect
            label="Role"
            description={`${ROLES[role].may}.`}
            data={ROLE_NAMES}
            value={role}
            {...errors.at('role')}
            onChange={(event) => setRole(event.currentTarget.value as Role)}
          />
          {role !== 'owner' && (
            <Checkbox
              label="Only some apps"
              description="All others cannot be seen, and no app or account key can be created."
              checked={isLimited}
              onChange={(event) => setIsLimited(event.currentTarget.checked)}
            />
          )}
          {!seesAll && (
            <Checkbox.Group label="Apps" value={appIds} onChange={setAppIds} {...errors.at('appIds')}>
              <Stack gap="xs" mt={6}>
                {apps.data?.map((app) => (
                  <Checkbox key={app.id} value={app.id} label={app.name} />
                ))}
              </Stack>
            </Checkbox.Group>
          )}
          {errors.rest}
          <Group justify="flex-end">
            <Button variant="default" onClick={onClose}>
              Cancel
            </Button>
            <Button
              type="submit"
              loading={invite.isPending || change.isPending}
              disabled={!seesAll && appIds.length === 0}
            >
              {member === null ? 'Invite' : 'Save'}
            </Button>
          </Group>
        </Stack>
      </form>
      <RaiseOver
        title="Give a member the right to pay"
        change={member === null ? invite : change}
        onRaised={send}
      />
    </>
  );
}
