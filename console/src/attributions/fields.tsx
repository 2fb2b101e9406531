import { Textarea } from '@mantine/core';
import type { FieldError } from '../parts/field-errors.tsx';

const REASON_LENGTH = 500;

/** What the forms of an attribution call its fields. */
export const ATTRIBUTION_LABELS = { affiliateId: 'Creator', reason: 'Reason' } as const;

/** Why a user is given to a creator. */
export function ReasonField({
  value,
  field,
  onChange,
}: {
  readonly value: string;
  readonly field: FieldError;
  readonly onChange: (reason: string) => void;
}) {
  return (
    <Textarea
      label="Reason"
      description="For you and your books. The creator does not see it."
      placeholder="Told us in the support chat"
      required
      withAsterisk={false}
      maxLength={REASON_LENGTH}
      autosize
      minRows={2}
      value={value}
      {...field}
      onChange={(event) => onChange(event.currentTarget.value)}
    />
  );
}
