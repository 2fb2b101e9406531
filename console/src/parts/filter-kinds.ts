import type { FoundKind } from './found.ts';
import type { SPAN_TEXTS } from './filters.ts';

/** A filter of a list, as its chip shows it. `name` is that of its parameter in the address. */
export type FilterKind = { readonly name: string; readonly label: string } & (
  | { readonly kind: 'choice'; readonly options: Readonly<Record<string, string>> }
  | { readonly kind: 'text'; readonly placeholder: string }
  /** One creator or link. The address has the id. */
  | { readonly kind: 'found'; readonly of: FoundKind; readonly appId: string }
  /** A span before now, or two dates. `without` is the span that applies while none is chosen; all times by default. */
  | { readonly kind: 'range'; readonly without?: keyof typeof SPAN_TEXTS }
  /** A value that is chosen elsewhere on the page: the chip names it and takes it away. */
  | { readonly kind: 'fixed'; readonly text: string }
);

export type FilterOf<K extends FilterKind['kind']> = Extract<FilterKind, { readonly kind: K }>;

export const choiceFilter = (
  name: string,
  label: string,
  options: Readonly<Record<string, string>>,
): FilterKind => ({ kind: 'choice', name, label, options });

export const textFilter = (name: string, label: string, placeholder: string): FilterOf<'text'> => ({
  kind: 'text',
  name,
  label,
  placeholder,
});

export const creatorFilter = (appId: string): FilterKind => ({
  kind: 'found',
  of: 'creator',
  name: 'creator',
  label: 'Creator',
  appId,
});

export const linkFilter = (appId: string): FilterKind => ({
  kind: 'found',
  of: 'link',
  name: 'link',
  label: 'Link',
  appId,
});

export const rangeFilter = (label = 'Received', without?: keyof typeof SPAN_TEXTS): FilterKind => ({
  kind: 'range',
  name: 'range',
  label,
  ...(without === undefined ? {} : { without }),
});

export const fixedFilter = (name: string, label: string, text: string): FilterKind => ({
  kind: 'fixed',
  name,
  label,
  text,
});
