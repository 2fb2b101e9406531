import { TextInput } from '@mantine/core';
import type { FieldErrors } from '../parts/field-errors.tsx';

/** What is entered of a new link. */
export interface LinkInput {
  readonly destinationUrl: string;
  /** Empty: a random code. */
  readonly slug: string;
}

/** What the API gets of a new link. */
export const linkBody = ({ destinationUrl, slug }: LinkInput) => ({
  destinationUrl: destinationUrl.trim(),
  ...(slug.trim() === '' ? {} : { slug: slug.trim() }),
});

/** The fields of a new link. */
export function LinkFields({
  value,
  onChange,
  errors,
  hint,
  isRequired = true,
  hasFocus = false,
  isFixed = false,
}: {
  readonly value: LinkInput;
  readonly onChange: (changed: Partial<LinkInput>) => void;
  readonly errors: Pick<FieldErrors<keyof LinkInput>, 'at'>;
  /** What to enter as the destination. */
  readonly hint?: string;
  readonly isRequired?: boolean;
  readonly hasFocus?: boolean;
  /** Whether the link exists already. */
  readonly isFixed?: boolean;
}) {
  return (
    <>
      <TextInput
        label="Where the link leads"
        placeholder="https://apps.apple.com/app/…"
        description={hint}
        type="url"
        required={isRequired}
        withAsterisk={false}
        disabled={isFixed}
        {...(hasFocus ? { 'data-autofocus': true } : {})}
        value={value.destinationUrl}
        {...errors.at('destinationUrl')}
        onChange={(event) => onChange({ destinationUrl: event.currentTarget.value })}
      />
      <TextInput
        label="Link code"
        placeholder="ada"
        description="The end of the link, and what the creator can say aloud. It never changes. A random code if you leave it empty."
        maxLength={64}
        disabled={isFixed || (!isRequired && value.destinationUrl.trim() === '')}
        value={value.slug}
        {...errors.at('slug')}
        onChange={(event) => onChange({ slug: event.currentTarget.value })}
      />
    </>
  );
}
