import { NativeSelect, Select, Stack, TextInput } from '@mantine/core';
import { useDebouncedCallback, useDebouncedValue } from '@mantine/hooks';
import { Search } from 'lucide-react';
import { useState } from 'react';
import type { FilterOf } from './filter-kinds.ts';
import { SPAN_TEXTS, TYPING_MS } from './filters.ts';
import type { Filters } from './filters.ts';
import { useFound } from './found.ts';
import { ICON } from './icon.ts';

interface FieldProps<F> {
  readonly filters: Filters;
  readonly filter: F;
}

/** Returns what a text filter holds while somebody types. It applies after a pause, on Enter, and when the field is left. */
function useTyped(filters: Filters, name: string) {
  const applied = filters.get(name) ?? '';
  const [text, setText] = useState(applied);
  // What this field has applied. Another text was set elsewhere, such as by the button that clears the filters.
  const [own, setOwn] = useState(applied);
  const [seen, setSeen] = useState(applied);
  if (seen !== applied) {
    setSeen(applied);
    if (applied !== own) {
      setOwn(applied);
      setText(applied);
    }
  }
  const apply = (entered: string) => {
    const next = entered.trim();
    setOwn(next);
    if (next !== applied) filters.set({ [name]: next });
  };
  const applyLater = useDebouncedCallback(apply, TYPING_MS);
  return {
    text,
    type: (entered: string) => {
      setText(entered);
      applyLater(entered);
    },
    flush: () => applyLater.flush(),
  };
}

/** The text filter that most people use on a page, always shown at the start of the bar. */
export function LeadField({ filters, filter: { name, label, placeholder } }: FieldProps<FilterOf<'text'>>) {
  const { text, type, flush } = useTyped(filters, name);
  return (
    <TextInput
      className="filters-lead"
      size="xs"
      aria-label={label}
      placeholder={placeholder}
      leftSection={<Search {...ICON} size={14} />}
      leftSectionPointerEvents="none"
      value={text}
      spellCheck={false}
      onChange={(event) => type(event.currentTarget.value)}
      onBlur={flush}
      onKeyDown={(event) => {
        if (event.key === 'Enter') flush();
      }}
    />
  );
}

/** A text filter in the control of its chip. Enter closes it. */
export function TextField({
  filters,
  filter: { name, label, placeholder },
  onDone,
}: FieldProps<FilterOf<'text'>> & { readonly onDone: () => void }) {
  const { text, type, flush } = useTyped(filters, name);
  return (
    <TextInput
      size="xs"
      label={label}
      placeholder={placeholder}
      data-autofocus
      value={text}
      spellCheck={false}
      onChange={(event) => type(event.currentTarget.value)}
      onBlur={flush}
      onKeyDown={(event) => {
        if (event.key !== 'Enter') return;
        flush();
        onDone();
      }}
    />
  );
}

const PLACEHOLDERS = { creator: 'name or e-mail', link: 'beginning of its code' } as const;

/** A filter by one creator or link, found by name. */
export function FoundField({
  filters,
  filter: { name, label, of, appId },
  onDone,
}: FieldProps<FilterOf<'found'>> & { readonly onDone: () => void }) {
  const chosen = filters.get(name) ?? '';
  const [text, setText] = useState('');
  const [typed] = useDebouncedValue(text.trim(), TYPING_MS);
  const current = useFound(appId, of, chosen).options.find(({ value }) => value === chosen);
  const found = useFound(appId, of, typed);
  // An address may name one that does not exist.
  const known = chosen === '' ? [] : [current ?? { value: chosen, label: chosen }];
  const options = [...known, ...found.options.filter(({ value }) => value !== chosen)];
  return (
    <Select
      label={label}
      size="xs"
      placeholder={PLACEHOLDERS[of]}
      searchable
      allowDeselect={false}
      data-autofocus
      // A press on an option must not count as one outside of the control.
      comboboxProps={{ withinPortal: false }}
      value={chosen === '' ? null : chosen}
      data={options}
      // The service has searched.
      filter={({ options: all }) => all}
      onSearchChange={setText}
      onChange={(value) => {
        if (value === null) return;
        filters.set({ [name]: value });
        onDone();
      }}
      error={typed === '' ? null : found.error?.message}
      nothingFoundMessage={typed !== '' && found.error === null && 'Nothing found'}
    />
  );
}

/** The range of two dates, and the way back to a span. */
export function DatesField({
  filters,
  filter: { label, without },
  onDone,
}: FieldProps<FilterOf<'range'>> & { readonly onDone: () => void }) {
  return (
    <Stack gap="xs">
      <NativeSelect
        label={label}
        size="xs"
        value="dates"
        onChange={(event) => {
          filters.set({ range: event.currentTarget.value, from: '', to: '' });
          onDone();
        }}
      >
        {without === undefined && <option value="">At any time</option>}
        {Object.entries(SPAN_TEXTS).map(([value, text]) => (
          <option key={value} value={value}>
            {text}
          </option>
        ))}
        <option value="dates">From … to …</option>
      </NativeSelect>
      {(['from', 'to'] as const).map((name) => (
        <TextInput
          key={name}
          type="date"
          size="xs"
          label={name === 'from' ? 'First day' : 'Last day'}
          {...(name === 'from' ? { 'data-autofocus': true } : {})}
          value={filters.get(name) ?? ''}
          onChange={(event) => filters.set({ [name]: event.currentTarget.value })}
        />
      ))}
    </Stack>
  );
}
