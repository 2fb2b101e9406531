import { useMemo } from 'react';
import { useSearchParams } from 'react-router';
import { given } from '../api/client.ts';

/** The filters of a list. They live in the address, so that a reload, a bookmark and the back button keep them. */
export interface Filters {
  readonly get: (name: string) => string | undefined;
  /** Sets filters; an empty text removes one. */
  readonly set: (changes: Readonly<Record<string, string>>) => void;
  readonly clear: () => void;
  readonly isEmpty: boolean;
  /** All of them as in an address, in the order of their names. */
  readonly query: string;
  /** Sets them to those of such a text. */
  readonly show: (query: string) => void;
}

/** Sets parameters; an empty text removes one. */
function setAll(next: URLSearchParams, changes: readonly (readonly [name: string, value: string])[]): void {
  for (const [name, value] of changes) {
    if (value === '') next.delete(name);
    else next.set(name, value);
  }
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
    set: (changes) => change((next) => setAll(next, Object.entries(changes))),
    clear: () => change((next) => names.forEach((name) => next.delete(name))),
    isEmpty: names.every((name) => !params.has(name)),
    query: new URLSearchParams(
      names.filter((name) => params.has(name)).map((name) => [name, params.get(name) ?? '']),
    ).toString(),
    show: (query) => {
      const shown = new URLSearchParams(query);
      change((next) =>
        setAll(
          next,
          names.map((name) => [name, shown.get(name) ?? ''] as const),
        ),
      );
    },
  };
}

/** Returns the value of a filter if it is one of the known ones: anybody can write an address. */
export function oneOf<const T extends string>(values: readonly T[], text: string | undefined): T | undefined {
  return values.find((value) => value === text);
}

/** How long a text filter and a search wait for the next key, ms. */
export const TYPING_MS = 250;

const DAY_MS = 86_400_000;
const SPANS: Readonly<Record<string, number>> = { '24h': 1, '7d': 7, '30d': 30, '90d': 90, '365d': 365 };
/** The spans before now that a range can be, in words. */
export const SPAN_TEXTS = {
  '24h': 'Last 24 hours',
  '7d': 'Last 7 days',
  '30d': 'Last 30 days',
  '90d': 'Last 90 days',
  '365d': 'Last 365 days',
};

const daysAgo = (days: number): number => Date.now() - days * DAY_MS;

/** The names of the filters of a range. */
export const RANGE_FILTERS = ['range', 'from', 'to'] as const;

/** Returns midnight of a date such as 2026-01-31, in the time zone of the pages, `days` later. */
export function midnight(date: string | undefined, days = 0): number | undefined {
  const [, year, month, day] = /^(\d{4})-(\d\d)-(\d\d)$/.exec(date ?? '') ?? [];
  if (day === undefined) return undefined;
  const at = new Date(Number(year), Number(month) - 1, Number(day) + days).getTime();
  return Number.isNaN(at) ? undefined : at;
}

/**
 * Returns the instants of the chosen range, epoch ms; `to` is excluded. They stay the same until another range is chosen, because
 * a cursor belongs to its filters. Two dates count once the first one is there; before, the span `without` applies.
 */
export function useRange(
  filters: Filters,
  without?: string,
): { readonly from?: number; readonly to?: number } {
  const chosen = filters.get('range');
  const [first, last] = [filters.get('from'), filters.get('to')];
  return useMemo(() => {
    const [from, to] = [midnight(first), midnight(last, 1)];
    if (chosen === 'dates' && from !== undefined) return { from, ...given({ to }) };
    const span = chosen === undefined || chosen === 'dates' ? without : chosen;
    const days = SPANS[span ?? ''];
    return days === undefined ? {} : { from: daysAgo(days) };
  }, [chosen, without, first, last]);
}
