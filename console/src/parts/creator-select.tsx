import { Select } from '@mantine/core';
import { useDebouncedValue } from '@mantine/hooks';
import { useState } from 'react';
import { TYPING_MS } from './filters.ts';
import { useFound } from './found.ts';

export interface ChosenCreator {
  readonly id: string;
  readonly name: string;
}

/** A field for one creator, found by name or e-mail address. */
export function CreatorSelect({
  appId,
  value,
  onChange,
}: {
  readonly appId: string;
  readonly value: ChosenCreator | null;
  readonly onChange: (creator: ChosenCreator | null) => void;
}) {
  const [text, setText] = useState('');
  const [typed] = useDebouncedValue(text.trim(), TYPING_MS);
  const found = useFound(appId, 'creator', typed);
  const known = value === null ? [] : [{ value: value.id, label: value.name }];
  const options = [...known, ...found.options.filter((option) => option.value !== value?.id)];
  return (
    <Select
      label="Creator"
      placeholder="name or e-mail"
      searchable
      required
      withAsterisk={false}
      value={value?.id ?? null}
      data={options}
      // The service has searched.
      filter={({ options: all }) => all}
      onSearchChange={setText}
      onChange={(id) => {
        const option = options.find((one) => one.value === id);
        onChange(option === undefined ? null : { id: option.value, name: option.label });
      }}
      error={typed === '' ? null : found.error?.message}
      nothingFoundMessage={typed !== '' && found.error === null && 'Nothing found'}
    />
  );
}
