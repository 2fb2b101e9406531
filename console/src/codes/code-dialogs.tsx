import { Button, Group, Stack, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { Link } from 'react-router';
import { api, Problem, read } from '../api/client.ts';
import type { Schemas } from '../api/client.ts';
import { useRetryKey } from '../api/idempotency.ts';
import { useChange } from '../api/queries.ts';
import { Confirm, Dialog } from '../dialog.tsx';
import { Waiting } from '../parts.tsx';
import { useFieldErrors } from '../parts/field-errors.tsx';
import { sayDone } from '../parts/toast.tsx';
import { codeBody, CodeFields, codeLabels, isCompleteCode, NO_CODE_YET } from './code-fields.tsx';

export type Code = Schemas['Code'];
export type Creator = Pick<Schemas['ListedAffiliate'], 'id' | 'name'>;

/** Says whose a code is that cannot be added once more. */
function Taken({
  appId,
  creator,
  codeId,
}: {
  readonly appId: string;
  readonly creator: Creator;
  readonly codeId: string;
}) {
  const owner = useQuery({
    queryKey: ['codes', appId, 'one', codeId],
    queryFn: async () =>
      await read(api.GET('/apps/{appId}/codes/{codeId}', { params: { path: { appId, codeId } } })),
  });
  if (owner.isPending) return <Waiting what="whose code that is" />;
  if (owner.data?.affiliateId === creator.id)
    return (
      <Text size="sm" role="alert">
        {creator.name} has this code already: {owner.data.value}. Nothing was added.
      </Text>
    );
  return (
    <Text size="sm" role="alert">
      {owner.data === undefined ? (
        'Another creator of the app has this code.'
      ) : (
        <>
          The code {owner.data.value} belongs to{' '}
          <Link to={`/apps/${appId}/creators/${owner.data.affiliateId}`}>{owner.data.affiliateName}</Link>.
        </>
      )}{' '}
      Nothing was added. Deactivate it there first, or choose another code.
    </Text>
  );
}

function AddForm({
  appId,
  creator,
  onClose,
}: {
  readonly appId: string;
  readonly creator: Creator;
  readonly onClose: () => void;
}) {
  const [input, setInput] = useState(NO_CODE_YET);
  const body = codeBody(input);
  const retry = useRetryKey(body);
  const add = useChange(
    async () =>
      await read(
        api.POST('/apps/{appId}/affiliates/{affiliateId}/codes', {
          params: { path: { appId, affiliateId: creator.id }, header: { 'Idempotency-Key': retry.key } },
          body,
        }),
      ),
    ['codes', appId],
  );
  const { error } = add;
  const errors = useFieldErrors(error, codeLabels(input.namespace));
  const takenBy = error instanceof Problem && error.code === 'code_taken' ? error.existingId : null;
  return (
    <form
      {...errors.root}
      onSubmit={(event) => {
        event.preventDefault();
        add.mutate(undefined, {
          onSuccess: ({ value: added }) => {
            sayDone(`${added} is a code of ${creator.name}.`);
            onClose();
          },
          onError: retry.onError,
        });
      }}
    >
      <Stack>
        <CodeFields
          hasFocus
          value={input}
          errors={errors}
          onChange={(changed) => setInput({ ...input, ...changed })}
        />
        <Text size="sm" className="quiet">
          Purchases from now on count. Earlier ones do not.
        </Text>
        {takenBy !== null && <Taken appId={appId} creator={creator} codeId={takenBy} />}
        {takenBy === null && errors.rest}
        <Group justify="flex-end">
          <Button variant="default" onClick={onClose}>
            Cancel
          </Button>
          <Button type="submit" loading={add.isPending} disabled={!isCompleteCode(input)}>
            Add the code
          </Button>
        </Group>
      </Stack>
    </form>
  );
}

/** Registers a code of a creator. */
export function AddCodeDialog({
  appId,
  creator,
  isOpen,
  onClose,
}: {
  readonly appId: string;
  readonly creator: Creator;
  readonly isOpen: boolean;
  readonly onClose: () => void;
}) {
  return (
    <Dialog isOpen={isOpen} onClose={onClose} title={`Add a purchase code of ${creator.name}`}>
      {isOpen && <AddForm appId={appId} creator={creator} onClose={onClose} />}
    </Dialog>
  );
}

/** Deactivates `code`. Closed without one. */
export function DeactivateDialog({
  appId,
  creator,
  code,
  onClose,
}: {
  readonly appId: string;
  readonly creator: Creator;
  readonly code: Code | null;
  readonly onClose: () => void;
}) {
  const deactivate = useChange(
    async (codeId: string) =>
      await read(
        api.POST('/apps/{appId}/codes/{codeId}/deactivate', { params: { path: { appId, codeId } } }),
      ),
    ['codes', appId],
  );
  const close = () => {
    deactivate.reset();
    onClose();
  };
  return (
    <Dialog
      isOpen={code !== null}
      onClose={close}
      title={code === null ? '' : `Deactivate the code ${code.value}`}
    >
      {code !== null && (
        <Confirm
          action="Deactivate the code"
          color="red.9"
          change={deactivate}
          onConfirm={() =>
            deactivate.mutate(code.id, {
              onSuccess: () => {
                sayDone(`${code.value} attributes nobody any more.`);
                close();
              },
            })
          }
          onClose={close}
        >
          Purchases with it from now on attribute nobody. What {creator.name} earned stays, and the customers
          whom it brought stay with {creator.name}, also with later purchases. You can add the code again, for
          any creator.
        </Confirm>
      )}
    </Dialog>
  );
}
