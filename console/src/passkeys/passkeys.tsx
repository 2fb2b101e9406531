import { Button, Group, Stack, Text, TextInput } from '@mantine/core';
import { useState } from 'react';
import { api, Problem, read } from '../api/client.ts';
import type { Schemas } from '../api/client.ts';
import { useChange } from '../api/queries.ts';
import { Confirm, Dialog } from '../dialog.tsx';
import { formatAgo, formatBrowser, formatInstant } from '../format.ts';
import { Nothing, Section } from '../lists.tsx';
import { ErrorBox, Waiting } from '../parts.tsx';
import { useFieldErrors } from '../parts/field-errors.tsx';
import { sayDone } from '../parts/toast.tsx';
import { RaiseForm } from '../payouts/raise-form.tsx';
import { useCurrentSession, usePermission } from '../session.ts';
import { addPasskey, canUsePasskeys } from './ceremonies.ts';
import { PASSKEYS_KEY, usePasskeys } from './queries.ts';

type Passkey = Schemas['Passkey'];

/** Names a new passkey and has the browser create it. Asks first who it is, as before a payment, if the service wants to know. */
function AddForm({ onClose }: { readonly onClose: () => void }) {
  const [name, setName] = useState(formatBrowser(navigator.userAgent));
  const add = useChange(addPasskey, PASSKEYS_KEY);
  const errors = useFieldErrors(add.error, { name: 'Name' });
  if (add.error instanceof Problem && add.error.code === 'session_not_raised') {
    return <RaiseForm onRaised={() => add.reset()} onCancel={() => add.reset()} />;
  }
  return (
    <form
      {...errors.root}
      onSubmit={(event) => {
        event.preventDefault();
        add.mutate(name.trim(), {
          onSuccess: (added) => {
            onClose();
            sayDone(`“${added.name}” is a passkey of yours now.`);
          },
        });
      }}
    >
      <Stack>
        <Text size="sm">
          The browser asks for your finger, your face or a PIN, and keeps a key that never leaves it or your
          password manager.
        </Text>
        <TextInput
          label="Name"
          description="Where it is kept, so that you know it again."
          required
          withAsterisk={false}
          maxLength={200}
          data-autofocus
          value={name}
          onChange={(event) => setName(event.currentTarget.value)}
          {...errors.at('name')}
        />
        {errors.rest}
        <Group justify="flex-end">
          <Button variant="default" onClick={onClose}>
            Cancel
          </Button>
          <Button type="submit" loading={add.isPending} disabled={name.trim() === ''}>
            Add the passkey
          </Button>
        </Group>
      </Stack>
    </form>
  );
}

function RevokeForm({ passkey, onClose }: { readonly passkey: Passkey; readonly onClose: () => void }) {
  const revoke = useChange(
    async () =>
      await read(
        api.POST('/session/passkeys/{passkeyId}/revoke', { params: { path: { passkeyId: passkey.id } } }),
      ),
    PASSKEYS_KEY,
  );
  return (
    <Confirm
      action="Revoke the passkey"
      color="red.9"
      change={revoke}
      onConfirm={() => revoke.mutate(undefined, { onSuccess: onClose })}
      onClose={onClose}
    >
      “{passkey.name}” signs you in no more. Browsers in which you signed in with it stay signed in: end their
      sessions below if you have lost it. Delete it in the browser or password manager, too, which still
      offers it.
    </Confirm>
  );
}

function PasskeyRow({ passkey, onRevoke }: { readonly passkey: Passkey; readonly onRevoke: () => void }) {
  const mayPay = usePermission('payout');
  const { name, raises, createdAt, lastUsedAt } = passkey;
  return (
    <tr>
      <td>
        <Text component="span" size="sm" fw={500}>
          <bdi>{name}</bdi>
        </Text>
        <Text size="xs" className="quiet">
          Added {formatInstant(createdAt)}
          {mayPay && !raises && '. It signs in only: to pay with it, revoke it and add it again'}
        </Text>
      </td>
      <td className="quiet">{lastUsedAt === null ? 'not yet' : formatAgo(lastUsedAt)}</td>
      <td>
        <Group justify="flex-end">
          <Button variant="default" size="compact-sm" aria-label={`Revoke ${name}`} onClick={onRevoke}>
            Revoke
          </Button>
        </Group>
      </td>
    </tr>
  );
}

/** The passkeys of the member who is signed in. */
export function Passkeys() {
  const session = useCurrentSession();
  const mayPay = usePermission('payout');
  const passkeys = usePasskeys();
  const [dialog, setDialog] = useState<'add' | Passkey | null>(null);
  const close = () => setDialog(null);
  const rows = passkeys.data ?? [];
  return (
    <Section
      id="passkeys"
      title="Passkeys"
      hint={`With a passkey you sign in by a finger, a face or a PIN${mayPay ? ', and confirm payments' : ''}, without a link and a key.`}
      aside={
        canUsePasskeys(session) && (
          <Button variant="default" onClick={() => setDialog('add')}>
            Add a passkey
          </Button>
        )
      }
    >
      <div className="surface">
        {passkeys.error !== null && <ErrorBox error={passkeys.error} retry={() => void passkeys.refetch()} />}
        {passkeys.data === undefined && passkeys.error === null && <Waiting what="passkeys" />}
        {passkeys.data?.length === 0 && (
          <Nothing title="No passkeys yet">
            {canUsePasskeys(session)
              ? 'Add one in each browser that you use.'
              : 'This browser has no support for them.'}
          </Nothing>
        )}
        {rows.length > 0 && (
          <table className="rows">
            <thead>
              <tr>
                <th scope="col">Passkey</th>
                <th scope="col">Last used</th>
                <th scope="col">
                  <span className="spoken">Actions</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {rows.map((passkey) => (
                <PasskeyRow key={passkey.id} passkey={passkey} onRevoke={() => setDialog(passkey)} />
              ))}
            </tbody>
          </table>
        )}
      </div>
      <Dialog
        isOpen={dialog !== null}
        onClose={close}
        title={dialog === null ? '' : dialog === 'add' ? 'Add a passkey' : 'Revoke the passkey?'}
      >
        {dialog === 'add' && <AddForm onClose={close} />}
        {dialog !== null && dialog !== 'add' && <RevokeForm passkey={dialog} onClose={close} />}
      </Dialog>
    </Section>
  );
}
