import { Button, Group, Stack, Text, Textarea } from '@mantine/core';
import { useState } from 'react';
import { useRetryKey } from '../api/idempotency.ts';
import { useChange } from '../api/queries.ts';
import { Dialog } from '../dialog.tsx';
import { useFieldErrors } from '../parts/field-errors.tsx';
import type { FieldError } from '../parts/field-errors.tsx';
import { AskToPay, watchRaise } from '../payouts/raise-form.tsx';

const REASON_LENGTH = 500;

/** The reason of a change to what a creator is paid. */
export function ReasonField({
  description,
  isFirst = false,
  value,
  field,
  onChange,
}: {
  /** Says who reads it. */
  readonly description: string;
  /** Whether the field gets the focus when its dialog opens. */
  readonly isFirst?: boolean;
  readonly value: string;
  readonly field: FieldError;
  readonly onChange: (reason: string) => void;
}) {
  return (
    <Textarea
      label="Reason"
      description={description}
      required
      withAsterisk={false}
      maxLength={REASON_LENGTH}
      autosize
      minRows={2}
      {...(isFirst ? { 'data-autofocus': true } : {})}
      value={value}
      {...field}
      onChange={(event) => onChange(event.currentTarget.value)}
    />
  );
}

/** A change that needs a reason, and a session that may pay. */
interface Reasoned {
  readonly title: string;
  readonly meaning: string;
  /** Says who reads the reason. */
  readonly description: string;
  /** The text of the button. */
  readonly action: string;
  /** Red where the change takes something away. */
  readonly color?: 'red.9';
  /** The queries whose answers it changes. */
  readonly stale: readonly (readonly string[])[];
  /** Sends it. The key is the same for each attempt whose answer was lost. */
  readonly send: (reason: string, idempotencyKey: string) => Promise<unknown>;
}

function Form({
  change: { meaning, description, action, color, stale, send },
  draft,
  onDraft,
  onNotRaised,
  onClose,
}: {
  readonly change: Reasoned;
  readonly draft: string;
  readonly onDraft: (reason: string) => void;
  readonly onNotRaised: () => void;
  readonly onClose: () => void;
}) {
  const reason = draft.trim();
  const { key, onError } = useRetryKey({ reason });
  const change = useChange(async () => await send(reason, key), ...stale);
  const errors = useFieldErrors(change.error, { reason: 'Reason' });
  return (
    <form
      {...errors.root}
      onSubmit={(event) => {
        event.preventDefault();
        change.mutate(undefined, {
          onSuccess: onClose,
          onError: (error) => {
            onError(error);
            watchRaise(onNotRaised)(error);
          },
        });
      }}
    >
      <Stack>
        <Text size="sm">{meaning}</Text>
        <ReasonField
          description={description}
          isFirst
          value={draft}
          field={errors.at('reason')}
          onChange={onDraft}
        />
        {errors.rest}
        <Group justify="flex-end">
          <Button variant="default" disabled={change.isPending} onClick={onClose}>
            Cancel
          </Button>
          <Button
            type="submit"
            {...(color === undefined ? {} : { color })}
            loading={change.isPending}
            disabled={reason === ''}
          >
            {action}
          </Button>
        </Group>
      </Stack>
    </form>
  );
}

/** Asks for the reason of a change, and for a key first if the session may not pay. Closed without a change. */
export function ReasonDialog({
  change,
  onClose,
}: {
  readonly change: Reasoned | null;
  readonly onClose: () => void;
}) {
  const [draft, setDraft] = useState('');
  const close = () => {
    setDraft('');
    onClose();
  };
  return (
    <Dialog isOpen={change !== null} onClose={close} title={change?.title ?? ''}>
      {change !== null && (
        <AskToPay onCancel={close}>
          {(onNotRaised) => (
            <Form
              change={change}
              draft={draft}
              onDraft={setDraft}
              onNotRaised={onNotRaised}
              onClose={close}
            />
          )}
        </AskToPay>
      )}
    </Dialog>
  );
}
