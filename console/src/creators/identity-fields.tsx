import { TextInput } from '@mantine/core';
import type { FieldErrors } from '../parts/field-errors.tsx';

/** Who a creator is. */
export interface Identity {
  readonly name: string;
  /** Empty: none. */
  readonly email: string;
}

/** The fields of who a creator is. */
export function IdentityFields({
  value: { name, email },
  onChange,
  errors,
}: {
  readonly value: Identity;
  readonly onChange: (changed: Partial<Identity>) => void;
  readonly errors: Pick<FieldErrors<keyof Identity>, 'at'>;
}) {
  return (
    <>
      <TextInput
        label="Name"
        description="As it is written in the CSV of a payout."
        required
        withAsterisk={false}
        maxLength={200}
        data-autofocus
        value={name}
        {...errors.at('name')}
        onChange={(event) => onChange({ name: event.currentTarget.value })}
      />
      <TextInput
        label="E-mail address"
        description="Optional. Invites and notices of payouts go there, if the service sends mail."
        type="email"
        value={email}
        {...errors.at('email')}
        onChange={(event) => onChange({ email: event.currentTarget.value })}
      />
    </>
  );
}
