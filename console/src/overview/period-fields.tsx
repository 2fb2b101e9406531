import { Group, TextInput } from '@mantine/core';
import { useState } from 'react';
import { useSearchParams } from 'react-router';
import { chosen, Choice } from '../parts/choice.tsx';
import { RANGES } from '../ranges.ts';
import { COMPARISONS, dayOf, isPeriod, periodOfDays, presetPeriod } from './period.ts';
import type { DayProblems, Period } from './period.ts';

const OPTIONS = { ...RANGES, dates: { name: 'From … to …' } } as const;
const DEFAULT = '30d';

interface ChosenPeriod {
  /** The range that is shown. Days that cannot be shown leave the last one. */
  readonly period: Period;
  readonly problems: DayProblems;
}

/** Returns the range that the address names. */
export function usePeriod(): ChosenPeriod {
  const [search] = useSearchParams();
  const range = chosen(OPTIONS, search.get('range'), DEFAULT);
  const comparison = chosen(COMPARISONS, search.get('compare'), 'before');
  const found =
    range === 'dates'
      ? periodOfDays({ from: search.get('from') ?? '', to: search.get('to') ?? '' }, comparison)
      : presetPeriod(range, comparison);
  const [last, setLast] = useState(() => (isPeriod(found) ? found : presetPeriod(DEFAULT, comparison)));
  if (isPeriod(found) && found.key !== last.key) setLast(found);
  return isPeriod(found) ? { period: found, problems: {} } : { period: last, problems: found };
}

/** Asks for the range of the overview, by a name or two days, and for what it is compared with. They live in the address. */
export function PeriodFields({ period, problems }: ChosenPeriod) {
  const [search, setSearch] = useSearchParams();
  const range = chosen(OPTIONS, search.get('range'), DEFAULT);
  const change = (edit: (next: URLSearchParams) => void) => {
    // The address of this moment: the router knows that of the last render, before which another field may have changed.
    const next = new URLSearchParams(location.search);
    edit(next);
    setSearch(next, { replace: true });
  };
  return (
    <Group gap="xs" align="flex-start">
      <Choice
        label="Range"
        options={OPTIONS}
        value={range}
        onChange={(value) =>
          change((next) => {
            next.set('range', value);
            next.delete('from');
            next.delete('to');
            if (value !== 'dates') return;
            // Begins with the days that are shown.
            const now = new Date();
            next.set('from', dayOf(period.from(now)));
            next.set('to', dayOf(period.to(now) - 1));
          })
        }
      />
      {range === 'dates' &&
        (['from', 'to'] as const).map((name) => (
          <TextInput
            key={name}
            type="date"
            size="xs"
            w={150}
            aria-label={name === 'from' ? 'First day' : 'Last day'}
            value={search.get(name) ?? ''}
            error={problems[name]}
            onChange={(event) => {
              const { value } = event.currentTarget;
              change((next) => next.set(name, value));
            }}
          />
        ))}
      <Choice
        label="Compare with"
        options={COMPARISONS}
        value={chosen(COMPARISONS, search.get('compare'), 'before')}
        onChange={(value) =>
          change((next) => {
            if (value === 'before') next.delete('compare');
            else next.set('compare', value);
          })
        }
      />
    </Group>
  );
}
