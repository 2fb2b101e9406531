import { Select } from '@mantine/core';
import { useDebouncedValue } from '@mantine/hooks';
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { api, read } from '../api/client.ts';
import { TYPING_MS } from './filters.tsx';
import type { Filters } from './filters.tsx';

type Kind = 'creator' | 'link';
const LABELS = { creator: 'Creator', link: 'Link' } as const;
const PLACEHOLDERS = { creator: 'name or e-mail', link: 'beginning of its code' } as const;

/** Reads the creators and links that a text finds, unless it is empty. An id finds its own. */
export const useSearch = (appId: string, text: string, isEnabled = true) =>
  useQuery({
    queryKey: ['search', appId, text],
    queryFn: async () =>
      await read(api.GET('/apps/{appId}/search', { params: { path: { appId }, query: { q: text } } })),
    enabled: isEnabled && text !== '',
    placeholderData: keepPreviousData,
    staleTime: 60_000,
  });

/** Reads the creators or links that a text finds, as options. */
export function useFound(appId: string, kind: Kind, text: string) {
  const found = useSearch(appId, text);
  if (text === '' || found.data === undefined) return { options: [], error: found.error };
  const options =
    kind === 'creator'
      ? found.data.affiliates.map(({ id, name }) => ({ value: id, label: name }))
      : found.data.links.map(({ id, slug }) => ({ value: id, label: slug }));
  return { options, error: found.error };
}

/** A filter by one creator or link, found by name. The address has the id, under the name of the kind. */
export function SearchFilter({
  appId,
  filters,
  kind,
}: {
  readonly appId: string;
  readonly filters: Filters;
  readonly kind: Kind;
}) {
  const chosen = filters.get(kind) ?? '';
  const [text, setText] = useState('');
  const [typed] = useDebouncedValue(text.trim(), TYPING_MS);
  const current = useFound(appId, kind, chosen).options.find(({ value }) => value === chosen);
  const found = useFound(appId, kind, typed);
  // An address may name one that does not exist.
  const known = chosen === '' ? [] : [current ?? { value: chosen, label: chosen }];
  const options = [...known, ...found.options.filter(({ value }) => value !== chosen)];
  return (
    <Select
      className="wide"
      label={LABELS[kind]}
      size="xs"
      placeholder={PLACEHOLDERS[kind]}
      searchable
      clearable={chosen !== ''}
      clearButtonProps={{ 'aria-label': `All: ${LABELS[kind].toLowerCase()}` }}
      value={chosen === '' ? null : chosen}
      data={options}
      // The service has searched.
      filter={({ options: all }) => all}
      onSearchChange={setText}
      onChange={(value) => filters.set({ [kind]: value ?? '' })}
      error={typed === '' ? null : found.error?.message}
      nothingFoundMessage={typed !== '' && found.error === null && 'Nothing found'}
    />
  );
}
