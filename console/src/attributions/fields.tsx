import { Textarea } from '@mantine/core';

const REASON_LENGTH = 500;

/** Why a user is given to a creator. */
export function ReasonField({
  value,
  onChange,
}: {
  readonly value: string;
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
      onChange={(event) => onChange(event.currentTarget.value)}
    />
  );
}
