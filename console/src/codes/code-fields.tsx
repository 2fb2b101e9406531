import { NativeSelect, TextInput } from '@mantine/core';
import type { Schemas } from '../api/client.ts';
import type { FieldError, FieldErrors } from '../parts/field-errors.tsx';
import { NAMESPACES } from './words.ts';
import type { Namespace } from './words.ts';

/** What is entered of a new code. */
export interface CodeInput {
  readonly namespace: Namespace;
  readonly code: string;
  /** Only where events state an id instead of the code. */
  readonly externalId: string;
}

export const NO_CODE_YET: CodeInput = { namespace: 'attribute', code: '', externalId: '' };

/** What the service accepts as a code. A text with @ is an address, which is not stored. */
const isCode = (text: string) => /^[^@\p{C}]{1,64}$/u.test(text);
const NOT_A_CODE = 'Up to 64 characters, without @.';

/** Returns the props of a field that says at once what the service would refuse. */
const withOwn = (field: FieldError, text: string): FieldError =>
  text !== '' && !isCode(text) ? { ...field, error: NOT_A_CODE } : field;

/** What the API gets of a new code. */
export function codeBody({ namespace, code, externalId }: CodeInput): Schemas['NewCode'] {
  const isById = NAMESPACES[namespace].externalId !== undefined;
  return { namespace, value: code.trim(), ...(isById ? { externalId: externalId.trim() } : {}) };
}

/** Whether all is entered that the service needs. */
export function isCompleteCode(input: CodeInput): boolean {
  const { value, externalId } = codeBody(input);
  return isCode(value) && (externalId === undefined || isCode(externalId));
}

/** Returns the names of the fields for errors that belong to none on the page. */
export const codeLabels = (namespace: Namespace) => ({
  namespace: 'Where the code is from',
  value: NAMESPACES[namespace].label,
  externalId: NAMESPACES[namespace].externalId?.label ?? 'Id',
});

/** The fields of a new code. */
export function CodeFields({
  value,
  errors,
  hasFocus = false,
  isFixed = false,
  onChange,
}: {
  readonly value: CodeInput;
  readonly errors: Pick<FieldErrors<'namespace' | 'value' | 'externalId'>, 'at'>;
  readonly hasFocus?: boolean;
  /** Whether the code exists already. */
  readonly isFixed?: boolean;
  readonly onChange: (changed: Partial<CodeInput>) => void;
}) {
  const words = NAMESPACES[value.namespace];
  return (
    <>
      <NativeSelect
        label="Where the code is from"
        description={words.hint}
        disabled={isFixed}
        {...(hasFocus ? { 'data-autofocus': true } : {})}
        value={value.namespace}
        {...errors.at('namespace')}
        onChange={(event) => onChange({ namespace: event.currentTarget.value as Namespace })}
      >
        {Object.entries(NAMESPACES).map(([name, { name: text }]) => (
          <option key={name} value={name}>
            {text}
          </option>
        ))}
      </NativeSelect>
      <TextInput
        label={words.label}
        description="Upper and lower case make no difference."
        placeholder="SPRING20"
        required
        withAsterisk={false}
        spellCheck={false}
        autoCapitalize="off"
        disabled={isFixed}
        value={value.code}
        {...withOwn(errors.at('value'), value.code.trim())}
        onChange={(event) => onChange({ code: event.currentTarget.value })}
      />
      {words.externalId !== undefined && (
        <TextInput
          label={words.externalId.label}
          description={`It begins with ${words.externalId.beginning}. Payments state it instead of the code.`}
          placeholder={`${words.externalId.beginning}…`}
          required
          withAsterisk={false}
          spellCheck={false}
          autoCapitalize="off"
          disabled={isFixed}
          value={value.externalId}
          {...withOwn(errors.at('externalId'), value.externalId.trim())}
          onChange={(event) => onChange({ externalId: event.currentTarget.value })}
        />
      )}
    </>
  );
}
