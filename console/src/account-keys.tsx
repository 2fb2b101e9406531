import { Badge, Button, Checkbox, Group, Stack, Text, TextInput, Title, Tooltip } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { api, Problem, read } from './api/client.ts';
import type { Permission, Schemas } from './api/client.ts';
import { KEYS, useChange } from './api/queries.ts';
import { Confirm, Dialog } from './dialog.tsx';
import { formatAgo, formatInstant } from './format.ts';
import { ErrorBox, PermissionBadges, Secret, Waiting } from './parts.tsx';
import { useFieldErrors } from './parts/field-errors.tsx';
import { RaiseForm } from './payouts/raise-form.tsx';
import { useCurrentSession, usePermission } from './session.ts';
import { sayDone } from './parts/toast.tsx';

type AccountKey = Schemas['AccountKey'];

const PERMISSION_WORDS: Readonly<Record<Permission, string>> = {
  read: 'See creators, links, commissions and payouts',
  write: 'Change settings, creators and links',
  setup: 'Connect providers, create apps and keys',
  payout: 'Pay creators, set payees, add and deduct money',
};
const PERMISSIONS = Object.entries(PERMISSION_WORDS) as readonly (readonly [Permission, string])[];

const isEnded = ({ revokedAt, expiresAt }: AccountKey) =>
  revokedAt !== null || (expiresAt !== null && expiresAt <= Date.now());

function stateOf(key: AccountKey): string {
  if (key.revokedAt !== null) return `Revoked ${formatAgo(key.revokedAt)}`;
  if (key.expiresAt !== null) return `${isEnded(key) ? 'Ended' : 'Ends'} ${formatAgo(key.expiresAt)}`;
  return key.lastUsedAt === null ? 'Never used' : `Used ${formatAgo(key.lastUsedAt)}`;
}

function NewKey({ onClose }: { readonly onClose: () => void }) {
  const session = useCurrentSession();
  const [label, setLabel] = useState('');
  const [chosen, setChosen] = useState<readonly string[]>(
    ['read', 'write'].filter((one) => session.permissions.includes(one as Permission)),
  );
  const create = useChange(
    async () =>
      await read(
        api.POST('/accounts/{accountId}/keys', {
          params: { path: { accountId: session.account.id } },
          body: { label: label.trim(), permissions: chosen as Permission[] },
        }),
      ),
    KEYS.keys,
  );
  const errors = useFieldErrors(create.error, { label: 'Who uses it', permissions: 'What it may do' });
  if (create.data !== undefined) {
    return (
      <Stack>
        <Secret text={create.data.key} what="the key">
          With it, “{create.data.label}” can sign in here or call the API.
        </Secret>
        <Button onClick={onClose}>Done</Button>
      </Stack>
    );
  }
  if (create.error instanceof Problem && create.error.code === 'session_not_raised') {
    return (
      <RaiseForm isKeyRefused onRaised={() => create.mutate(undefined)} onCancel={() => create.reset()} />
    );
  }
  return (
    <form
      {...errors.root}
      onSubmit={(event) => {
        event.preventDefault();
        create.mutate(undefined);
      }}
    >
      <Stack>
        <TextInput
          label="Who uses it"
          placeholder="Nightly report"
          description="A program, or a person. It is shown wherever the key was used."
          required
          withAsterisk={false}
          maxLength={200}
          data-autofocus
          value={label}
          {...errors.at('label')}
          onChange={(event) => setLabel(event.currentTarget.value)}
        />
        <Checkbox.Group
          label="What it may do"
          value={[...chosen]}
          onChange={setChosen}
          {...errors.at('permissions')}
        >
          <Stack gap="xs" mt={6}>
            {PERMISSIONS.map(([permission, text]) => {
              const isMissing = !session.permissions.includes(permission);
              return (
                <Checkbox
                  key={permission}
                  value={permission}
                  label={permission}
                  description={isMissing ? `${text}. Your own key lacks this permission.` : text}
                  disabled={isMissing}
                />
              );
            })}
          </Stack>
        </Checkbox.Group>
        {errors.rest}
        <Group justify="flex-end">
          <Button variant="default" onClick={onClose}>
            Cancel
          </Button>
          <Button type="submit" loading={create.isPending} disabled={chosen.length === 0}>
            Create the key
          </Button>
        </Group>
      </Stack>
    </form>
  );
}

/** Asks before a key is rotated or revoked, and shows what came of it. */
function KeyAction({
  row,
  action,
  onClose,
}: {
  readonly row: AccountKey;
  readonly action: 'rotate' | 'revoke';
  readonly onClose: () => void;
}) {
  const session = useCurrentSession();
  const path = { accountId: session.account.id, keyId: row.id };
  const isOwn = session.key.id === row.id;
  const rotate = useChange(
    async () =>
      await read(api.POST('/accounts/{accountId}/keys/{keyId}/rotate', { params: { path }, body: {} })),
    KEYS.keys,
  );
  const revoke = useChange(
    async () => await read(api.POST('/accounts/{accountId}/keys/{keyId}/revoke', { params: { path } })),
    KEYS.keys,
    KEYS.sessions,
    KEYS.session,
  );
  const name = row.label ?? row.display;
  if (rotate.data !== undefined) {
    return (
      <Stack>
        <Secret text={rotate.data.key} what="the new key">
          The previous key works until {formatInstant(rotate.data.previousKeyExpiresAt)}. Then its sessions
          end.
        </Secret>
        <Button onClick={onClose}>Done</Button>
      </Stack>
    );
  }
  return action === 'rotate' ? (
    <Confirm
      action="Create the new key"
      change={rotate}
      onConfirm={() => rotate.mutate(undefined)}
      onClose={onClose}
    >
      “{name}” gets a new key with the same permissions. The present one works for another day.
    </Confirm>
  ) : (
    <Confirm
      action="Revoke the key"
      color="red.9"
      change={revoke}
      onConfirm={() =>
        revoke.mutate(undefined, {
          onSuccess: () => {
            sayDone(`“${name}” is revoked.`);
            onClose();
          },
        })
      }
      onClose={onClose}
    >
      “{name}” stops working at once, and so do its sessions
      {isOwn ? ', including yours: you are signed out' : ''}. This cannot be undone.
    </Confirm>
  );
}

type OpenDialog = { readonly kind: 'new' } | { readonly kind: 'rotate' | 'revoke'; readonly row: AccountKey };

function KeyRow({
  row,
  canChange,
  onOpen,
}: {
  readonly row: AccountKey;
  readonly canChange: boolean;
  readonly onOpen: (dialog: OpenDialog) => void;
}) {
  const session = useCurrentSession();
  const name = row.label ?? row.display;
  return (
    <tr>
      <td>
        <Group gap={8}>
          <Text component="span" size="sm" fw={500}>
            {row.label ?? 'Without a name'}
          </Text>
          {row.id === session.key.id && (
            <Badge size="sm" radius="sm" variant="light" tt="none">
              yours
            </Badge>
          )}
        </Group>
        <Text size="xs" className={row.isForSignInLinks ? 'quiet' : 'quiet code-text'}>
          {row.isForSignInLinks ? 'Used by the sign-in links; nobody can read it' : row.display}
        </Text>
      </td>
      <td>
        <PermissionBadges permissions={row.permissions} />
      </td>
      <td>
        <Tooltip label={`Created ${formatInstant(row.createdAt)}`}>
          <span className="quiet">{stateOf(row)}</span>
        </Tooltip>
      </td>
      <td>
        {!isEnded(row) && (
          <Group gap={6} justify="flex-end" wrap="nowrap">
            {!row.isForSignInLinks && (
              <Button
                variant="default"
                size="compact-sm"
                disabled={!canChange}
                aria-label={`Rotate ${name}`}
                onClick={() => onOpen({ kind: 'rotate', row })}
              >
                Rotate
              </Button>
            )}
            <Button
              variant="default"
              size="compact-sm"
              disabled={!canChange}
              aria-label={`Revoke ${name}`}
              onClick={() => onOpen({ kind: 'revoke', row })}
            >
              Revoke
            </Button>
          </Group>
        )}
      </td>
    </tr>
  );
}

const DIALOG_TITLES: Readonly<Record<OpenDialog['kind'], string>> = {
  new: 'New key',
  rotate: 'Rotate the key?',
  revoke: 'Revoke the key?',
};

/** The keys of the account, with what creates, rotates and revokes one. */
export function AccountKeys() {
  const session = useCurrentSession();
  const canChange = usePermission('setup');
  const [dialog, setDialog] = useState<OpenDialog | null>(null);
  const [showsEnded, setShowsEnded] = useState(false);
  const keys = useQuery({
    queryKey: KEYS.keys,
    queryFn: async () =>
      await read(
        api.GET('/accounts/{accountId}/keys', { params: { path: { accountId: session.account.id } } }),
      ),
  });
  const all = keys.data?.keys ?? [];
  const ended = all.filter(isEnded).length;
  const rows = all.filter((row) => showsEnded || !isEnded(row));
  const close = () => setDialog(null);
  return (
    <section aria-labelledby="keys">
      <Group justify="space-between" mb="xs">
        <Title order={2} size="h4" id="keys">
          Account keys
        </Title>
        <Button disabled={!canChange} onClick={() => setDialog({ kind: 'new' })}>
          New key
        </Button>
      </Group>
      {!canChange && (
        <Text size="sm" className="quiet" mb="xs">
          Creating, rotating and revoking keys needs the permission “setup”, which you do not have.
        </Text>
      )}
      <div className="surface">
        {keys.error !== null && <ErrorBox error={keys.error} retry={() => void keys.refetch()} />}
        {keys.data === undefined && keys.error === null && <Waiting what="keys" />}
        {keys.data !== undefined && (
          <table className="rows">
            <thead>
              <tr>
                <th scope="col">Who uses it</th>
                <th scope="col">May</th>
                <th scope="col">State</th>
                <th scope="col">
                  <span className="spoken">Actions</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {rows.map((row) => (
                <KeyRow key={row.id} row={row} canChange={canChange} onOpen={setDialog} />
              ))}
            </tbody>
          </table>
        )}
      </div>
      {ended > 0 && (
        <Button variant="subtle" size="compact-sm" mt="xs" onClick={() => setShowsEnded(!showsEnded)}>
          {showsEnded
            ? 'Hide keys that have ended'
            : `Show ${ended} that ${ended === 1 ? 'has' : 'have'} ended`}
        </Button>
      )}
      <Dialog
        isOpen={dialog !== null}
        onClose={close}
        title={dialog === null ? '' : DIALOG_TITLES[dialog.kind]}
      >
        {dialog?.kind === 'new' && <NewKey onClose={close} />}
        {dialog !== null && dialog.kind !== 'new' && (
          <KeyAction row={dialog.row} action={dialog.kind} onClose={close} />
        )}
      </Dialog>
    </section>
  );
}
