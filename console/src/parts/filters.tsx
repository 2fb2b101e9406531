import { Button, Group, NativeSelect, TextInput } from '@mantine/core';
import { useDebouncedCallback } from '@mantine/hooks';
import { ListFilter } from 'lucide-react';
import { useMemo, useState } from 'react';
import type { ReactNode } from 'react';
import { useSearchParams } from 'react-router';
import { given } from '../api/client.ts';
import { ICON } from './icon.ts';

/** The filters of a list. They live in the address, so that a reload, a bookmark and the back button keep them. */
export interface Filters {
  readonly get: (name: string) => string | undefined;
  /** Sets filters; an empty text removes one. */
  readonly set: (changes: Readonly<Record<string, string>>) => void;
  readonly clear: () => void;
  readonly isEmpty: boolean;
}

/** Returns the filters with these names that the address has. */
export function useFilters(...names: readonly string[]): Filters {
  const [params, setParams] = useSearchParams();
  const change = (edit: (next: URLSearchParams) => void) => {
    setParams(
      (before) => {
        const next = new URLSearchParams(before);
        edit(next);
        return next;
      },
      { replace: true },
    );
  };
  return {
    get: (name) => params.get(name) ?? undefined,
    set: (changes) =>
      change((next) => {
        for (const [name, value] of Object.entries(changes)) {
          if (value === '') next.delete(name);
          else next.set(name, value);
        }
      }),
    clear: () => change((next) => names.forEach((name) => next.delete(name))),
    isEmpty: names.every((name) => !params.has(name)),
  };
}

/** Returns the value of a filter if it is one of the known ones: anybody can write an address. */
export function oneOf<const T extends string>(values: readonly T[], text: string | undefined): T | undefined {
  return values.find((value) => value === text);
}

/** The filters of a list, and the button that clears them. `aside` stands behind the button. */
export function FilterBar({
  filters,
  aside,
  children,
}: {
  readonly filters: Filters;
  readonly aside?: ReactNode;
  readonly children: ReactNode;
}) {
  const [isOpen, setIsOpen] = useState(false);
  return (
    <Group gap="sm" align="flex-end" mb="md" role="search" className="filters" data-open={isOpen}>
      {/* In a narrow window, where the fields would fill the first view. */}
      <Button
        className="filters-toggle"
        variant="default"
        size="xs"
        leftSection={<ListFilter {...ICON} />}
        aria-expanded={isOpen}
        onClick={() => setIsOpen(!isOpen)}
      >
        {filters.isEmpty ? 'Filters' : 'Filters (some are set)'}
      </Button>
      {children}
      {!filters.isEmpty && (
        <Button variant="subtle" size="xs" onClick={filters.clear}>
          Clear the filters
        </Button>
      )}
      {aside}
    </Group>
  );
}

interface FilterProps {
  readonly filters: Filters;
  readonly name: string;
  readonly label: string;
}

/** A filter with fixed values and their texts. */
export function SelectFilter({
  filters,
  name,
  label,
  all = 'All',
  options,
}: FilterProps & { readonly all?: string; readonly options: Readonly<Record<string, string>> }) {
  return (
    <NativeSelect
      label={label}
      size="xs"
      value={filters.get(name) ?? ''}
      onChange={(event) => filters.set({ [name]: event.currentTarget.value })}
    >
      <option value="">{all}</option>
      {Object.entries(options).map(([value, text]) => (
        <option key={value} value={value}>
          {text}
        </option>
      ))}
    </NativeSelect>
  );
}

/** How long a text filter and a search wait for the next key, ms. */
export const TYPING_MS = 250;

/** A filter with a text of its own, which applies after a pause, on Enter, and when the field is left. */
export function TextFilter({
  filters,
  name,
  label,
  placeholder,
}: FilterProps & { readonly placeholder?: string }) {
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
  return (
    <TextInput
      className="wide"
      label={label}
      size="xs"
      placeholder={placeholder ?? ''}
      value={text}
      spellCheck={false}
      onChange={(event) => {
        setText(event.currentTarget.value);
        applyLater(event.currentTarget.value);
      }}
      onBlur={() => applyLater.flush()}
      onKeyDown={(event) => {
        if (event.key === 'Enter') applyLater.flush();
      }}
    />
  );
}

const DAY_MS = 86_400_000;
const SPANS: Readonly<Record<string, number>> = { '24h': 1, '7d': 7, '30d': 30, '90d': 90, '365d': 365 };
const SPAN_TEXTS = {
  '24h': 'Last 24 hours',
  '7d': 'Last 7 days',
  '30d': 'Last 30 days',
  '90d': 'Last 90 days',
  '365d': 'Last 365 days',
};

/** The names of the filters of a range. */
export const RANGE_FILTERS = ['range', 'from', 'to'] as const;

/** Returns midnight of a date such as 2026-01-31, in the time zone of the pages, `days` later. */
function midnight(date: string | undefined, days = 0): number | undefined {
  const [, year, month, day] = /^(\d{4})-(\d\d)-(\d\d)$/.exec(date ?? '') ?? [];
  if (day === undefined) return undefined;
  const at = new Date(Number(year), Number(month) - 1, Number(day) + days).getTime();
  return Number.isNaN(at) ? undefined : at;
}

/**
 * Returns the instants of the chosen range, epoch ms; `to` is excluded. They stay the same while the page is open, because
 * a cursor belongs to its filters. Two dates count once the first one is there; before, the span `without` applies.
 */
export function useRange(
  filters: Filters,
  without?: string,
): { readonly from?: number; readonly to?: number } {
  const chosen = filters.get('range');
  const [openedAt] = useState(() => Date.now());
  const [first, last] = [filters.get('from'), filters.get('to')];
  return useMemo(() => {
    const [from, to] = [midnight(first), midnight(last, 1)];
    if (chosen === 'dates' && from !== undefined) return { from, ...given({ to }) };
    const span = chosen === undefined || chosen === 'dates' ? without : chosen;
    const days = SPANS[span ?? ''];
    return days === undefined ? {} : { from: openedAt - days * DAY_MS };
  }, [openedAt, chosen, without, first, last]);
}

/** The filter of a range: a span before now, or two dates. */
export function RangeFilter({
  filters,
  label = 'Received',
  without,
}: {
  readonly filters: Filters;
  readonly label?: string;
  /** The span that applies while none is chosen. All times by default. */
  readonly without?: keyof typeof SPAN_TEXTS;
}) {
  return (
    <>
      <NativeSelect
        label={label}
        size="xs"
        value={filters.get('range') ?? without ?? ''}
        onChange={(event) => filters.set({ range: event.currentTarget.value, from: '', to: '' })}
      >
        {without === undefined && <option value="">At any time</option>}
        {Object.entries(SPAN_TEXTS).map(([value, text]) => (
          <option key={value} value={value}>
            {text}
          </option>
        ))}
        <option value="dates">From … to …</option>
      </NativeSelect>
      {filters.get('range') === 'dates' &&
        (['from', 'to'] as const).map((name) => (
          <TextInput
            key={name}
            type="date"
            size="xs"
            label={name === 'from' ? 'First day' : 'Last day'}
            value={filters.get(name) ?? ''}
            onChange={(event) => filters.set({ [name]: event.currentTarget.value })}
          />
        ))}
    </>
  );
}
