import { Button, Group, Stack, Text, TextInput } from '@mantine/core';
import { useState } from 'react';
import { read } from '../api/client.ts';
import type { Schemas } from '../api/client.ts';
import { useChange, useStep } from '../api/query-client.ts';
import { EMPTY, isComplete, PAYEE_LABELS, PayeeFields, payeeOf } from '../creators/payee-fields.tsx';
import type { Draft } from '../creators/payee-fields.tsx';
import { Dialog } from '../dialog.tsx';
import { formatInstant } from '../format.ts';
import { ErrorBox } from '../parts.tsx';
import { useFieldErrors } from '../parts/field-errors.tsx';
import { api } from './api.ts';
import { KEYS } from './queries.ts';

type Change = Schemas['PayeeChange'];

/** Asks where the money is to go, and has the code mailed. */
function PayeeStep({
  draft,
  onDraft,
  appName,
  onSent,
  onClose,
}: {
  readonly draft: Draft;
  readonly onDraft: (draft: Draft) => void;
  readonly appName: string;
  readonly onSent: (change: Change) => void;
  readonly onClose: () => void;
}) {
  const request = useStep(
    async () => await read(api.POST('/creator/payee-changes', { body: payeeOf(draft) })),
  );
  const errors = useFieldErrors(request.error, PAYEE_LABELS);
  return (
    <form
      {...errors.root}
      onSubmit={(event) => {
        event.preventDefault();
        request.mutate(undefined, { onSuccess: onSent });
      }}
    >
      <Stack>
        <PayeeFields
          draft={draft}
          onDraft={onDraft}
          errorAt={errors.at}
          otherHint={`As ${appName} needs it, such as the number of an account.`}
        />
        <Text size="sm" className="quiet">
          We mail you a code next. The change does not count at once, so that you notice one that you did not
          make.
        </Text>
        {errors.rest}
        <Group justify="flex-end">
          <Button variant="default" disabled={request.isPending} onClick={onClose}>
            Cancel
          </Button>
          <Button type="submit" loading={request.isPending} disabled={!isComplete(draft)}>
            Mail me the code
          </Button>
        </Group>
      </Stack>
    </form>
  );
}

/** Asks for the code. */
function CodeStep({
  change: { id, maskedAddress, expiresAt },
  onBack,
  onClose,
}: {
  readonly change: Change;
  readonly onBack: () => void;
  readonly onClose: () => void;
}) {
  const [code, setCode] = useState('');
  const confirm = useChange(
    async () =>
      await read(
        api.POST('/creator/payee-changes/{id}/confirm', { params: { path: { id } }, body: { code } }),
      ),
    KEYS.creator,
  );
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        confirm.mutate(undefined, { onSuccess: onClose });
      }}
    >
      <Stack>
        <Text size="sm" role="status">
          A code is on its way to {maskedAddress}. It is valid until {formatInstant(expiresAt)}.
        </Text>
        <TextInput
          label="Code"
          data-autofocus
          required
          withAsterisk={false}
          autoComplete="one-time-code"
          autoCapitalize="characters"
          spellCheck={false}
          maxLength={40}
          value={code}
          onChange={(event) => setCode(event.currentTarget.value)}
        />
        {confirm.error !== null && <ErrorBox error={confirm.error} />}
        <Group justify="flex-end">
          <Button variant="default" disabled={confirm.isPending} onClick={onBack}>
            Back
          </Button>
          <Button type="submit" loading={confirm.isPending} disabled={code.trim() === ''}>
            Set the payee
          </Button>
        </Group>
      </Stack>
    </form>
  );
}

/** Sets the payee of the creator: first where the money goes, then the code from the mail. */
export default function OwnPayeeDialog({
  appName,
  onClose,
}: {
  readonly appName: string;
  readonly onClose: () => void;
}) {
  const [draft, setDraft] = useState(EMPTY);
  const [change, setChange] = useState<Change | null>(null);
  return (
    <Dialog isOpen onClose={onClose} title="Where your money goes">
      {change === null ? (
        <PayeeStep draft={draft} onDraft={setDraft} appName={appName} onSent={setChange} onClose={onClose} />
      ) : (
        <CodeStep change={change} onBack={() => setChange(null)} onClose={onClose} />
      )}
    </Dialog>
  );
}
