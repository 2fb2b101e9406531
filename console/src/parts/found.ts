import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { api, read } from '../api/client.ts';

/** What a search finds by name. */
export type FoundKind = 'creator' | 'link';

/** Reads the creators and links that a text finds, unless it is empty. An id finds its own. */
export const useSearch = (appId: string, text: string, isEnabled = true) =>
  useQuery({
    queryKey: ['search', appId, text],
    queryFn: async () =>
      await read(api.GET('/apps/{appId}/search', { params: { path: { appId }, query: { q: text } } })),
    enabled: isEnabled && text !== '',
    placeholderData: keepPreviousData,
  });

/** Reads the creators or links that a text finds, as options. */
export function useFound(appId: string, kind: FoundKind, text: string) {
  const found = useSearch(appId, text);
  if (text === '' || found.data === undefined) return { options: [], error: found.error };
  const options =
    kind === 'creator'
      ? found.data.affiliates.map(({ id, name }) => ({ value: id, label: name }))
      : found.data.links.map(({ id, slug }) => ({ value: id, label: slug }));
  return { options, error: found.error };
}
