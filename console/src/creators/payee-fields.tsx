import { NativeSelect, TextInput } from '@mantine/core';
import type { Schemas } from '../api/client.ts';
import type { FieldErrors } from '../parts/field-errors.tsx';
import { METHODS } from './payee-words.ts';

type WantedPayee = Schemas['WantedPayee'];
type ReceiverType = NonNullable<NonNullable<Schemas['Payee']['recipient']>['receiverType']>;

/** What is being entered. Each method uses some of the fields. */
export interface Draft {
  readonly method: 'paypal' | 'wise' | 'other';
  readonly email: string;
  readonly name: string;
  readonly receiverType: ReceiverType;
  readonly reference: string;
}

export const EMPTY: Draft = { method: 'paypal', email: '', name: '', receiverType: 'PERSON', reference: '' };

export const RECEIVERS: Readonly<Record<ReceiverType, string>> = {
  PERSON: 'A person',
  INSTITUTION: 'A company or institution',
};

/** Returns the payee that was entered. */
export function payeeOf(draft: Draft): WantedPayee {
  const [email, name, reference] = [draft.email.trim(), draft.name.trim(), draft.reference.trim()];
  switch (draft.method) {
    case 'paypal':
      return { method: 'paypal', recipient: { email } };
    case 'wise':
      return {
        method: 'wise',
        recipient: { email, name, receiverType: draft.receiverType },
      };
    case 'other':
      return { method: 'other', recipient: { name, reference } };
  }
}

/** Whether the fields of the method have a text. */
export const isComplete = ({ method, email, name, reference }: Draft): boolean =>
  (method === 'other' || email.trim() !== '') &&
  (method === 'paypal' || name.trim() !== '') &&
  (method !== 'other' || reference.trim() !== '');

/** What the fields of a payee are called, by their paths in the API. */
export const PAYEE_LABELS = {
  method: 'Method',
  'recipient.name': 'Full name',
  'recipient.email': 'E-mail address',
  'recipient.receiverType': 'Receiver',
  'recipient.reference': 'Reference',
} as const;

/** The fields of a payee. */
export function PayeeFields({
  draft,
  onDraft,
  errorAt,
  otherHint = 'How you pay, in your own words, such as the number of an account.',
}: {
  readonly draft: Draft;
  readonly onDraft: (draft: Draft) => void;
  readonly errorAt: FieldErrors<keyof typeof PAYEE_LABELS>['at'];
  /** What to enter for another way to pay. */
  readonly otherHint?: string;
}) {
  const text = (field: 'email' | 'name' | 'reference', maxLength: number) => ({
    required: true,
    withAsterisk: false,
    autoComplete: 'off',
    maxLength,
    value: draft[field],
    ...errorAt(`recipient.${field}`),
    onChange: (event: { readonly currentTarget: { readonly value: string } }) =>
      onDraft({ ...draft, [field]: event.currentTarget.value }),
  });
  return (
    <>
      <NativeSelect
        label="Method"
        data-autofocus
        value={draft.method}
        {...errorAt('method')}
        onChange={(event) => onDraft({ ...draft, method: event.currentTarget.value as Draft['method'] })}
      >
        {(['paypal', 'wise', 'other'] as const).map((method) => (
          <option key={method} value={method}>
            {METHODS[method]}
          </option>
        ))}
      </NativeSelect>
      {draft.method !== 'paypal' && (
        <TextInput label="Full name" description="Of the receiver." {...text('name', 200)} />
      )}
      {draft.method !== 'other' && (
        <TextInput
          label="E-mail address"
          description={`That ${METHODS[draft.method]} sends the money to.`}
          type="email"
          {...text('email', 254)}
        />
      )}
      {draft.method === 'wise' && (
        <NativeSelect
          label="Receiver"
          value={draft.receiverType}
          {...errorAt('recipient.receiverType')}
          onChange={(event) => onDraft({ ...draft, receiverType: event.currentTarget.value as ReceiverType })}
        >
          {Object.entries(RECEIVERS).map(([type, words]) => (
            <option key={type} value={type}>
              {words}
            </option>
          ))}
        </NativeSelect>
      )}
      {draft.method === 'other' && (
        <TextInput label="Reference" description={otherHint} {...text('reference', 200)} />
      )}
    </>
  );
}
