import { Button, Menu } from '@mantine/core';
import { Plus } from 'lucide-react';
import { useEffect, useEffectEvent, useRef } from 'react';
import type { ReactNode, RefObject } from 'react';
import { Chip, isShown } from './filter-chip.tsx';
import { LeadField } from './filter-fields.tsx';
import type { FilterKind, FilterOf } from './filter-kinds.ts';
import { RANGE_FILTERS } from './filters.ts';
import type { Filters } from './filters.ts';
import { ICON } from './icon.ts';
import { useOpenControl } from './use-open-control.ts';

/** Takes the value of a filter away. */
const remove = (filters: Filters, { kind, name }: FilterKind): void =>
  filters.set(
    Object.fromEntries((kind === 'range' ? RANGE_FILTERS : [name]).map((one) => [one, ''] as const)),
  );

/** The button that adds a filter. It stays when all are in use, so that the focus can come back to it. */
function AddFilter({
  unused,
  only,
  buttonRef,
  onAdd,
}: {
  readonly unused: readonly FilterKind[];
  /** The single filter of a bar, whose control opens at once. */
  readonly only: FilterKind | null;
  readonly buttonRef: RefObject<HTMLButtonElement | null>;
  readonly onAdd: (filter: FilterKind) => void;
}) {
  const button = (
    <Button
      ref={buttonRef}
      className="filters-add"
      variant="default"
      size="xs"
      data-add-filter
      aria-label="Add a filter"
      leftSection={<Plus {...ICON} size={14} />}
      {...(only === null ? {} : { onClick: () => onAdd(only) })}
    >
      Filter
    </Button>
  );
  if (only !== null) return button;
  return (
    <Menu
      position="bottom-start"
      offset={4}
      returnFocus={false}
      shadow="md"
      withinPortal={false}
      withInitialFocusPlaceholder={false}
    >
      <Menu.Target>{button}</Menu.Target>
      <Menu.Dropdown className="filter-control">
        {unused.length === 0 && <Menu.Item disabled>All filters are in use</Menu.Item>}
        {unused.map((filter) => (
          <Menu.Item key={filter.name} onClick={() => onAdd(filter)}>
            {filter.label}
          </Menu.Item>
        ))}
      </Menu.Dropdown>
    </Menu>
  );
}

/**
 * The filters of a list: those that are set as chips, and the button that adds one. `lead` is the text filter that most people use,
 * which is always there. `aside` stands at the end, such as the button that saves the rows.
 */
export function FilterBar({
  filters,
  lead,
  kinds,
  aside,
}: {
  readonly filters: Filters;
  readonly lead?: FilterOf<'text'>;
  readonly kinds: readonly FilterKind[];
  readonly aside?: ReactNode;
}) {
  const control = useOpenControl();
  const bar = useRef<HTMLDivElement>(null);
  const add = useRef<HTMLButtonElement>(null);
  const focusAfter = useEffectEvent((closed: string) => {
    const { activeElement } = document;
    // A press elsewhere has moved the focus there.
    const isFree =
      activeElement === null ||
      activeElement === document.body ||
      activeElement.closest('.filter-control') !== null;
    if (!isFree) return;
    const isSet = kinds.some((filter) => filter.name === closed && isShown(filters, filter));
    const chip = isSet ? bar.current?.querySelector<HTMLElement>(`[data-filter="${closed}"] > button`) : null;
    (chip ?? add.current)?.focus();
  });
  const last = useRef<string | null>(null);
  useEffect(() => {
    if (last.current !== null && control.open === null) focusAfter(last.current);
    last.current = control.open;
  }, [control.open]);
  const chips = kinds.filter((filter) => isShown(filters, filter) || control.shows(filter.name));
  const unused = kinds.filter((filter) => filter.kind !== 'fixed' && !isShown(filters, filter));
  return (
    <div ref={bar} role="search" className="filters">
      {lead !== undefined && <LeadField filters={filters} filter={lead} />}
      {chips.map((filter) => (
        <Chip
          key={filter.name}
          filters={filters}
          filter={filter}
          isOpen={filter.name === control.open}
          onOpen={() => control.show(filter.name)}
          onClose={() => control.close(filter.name)}
          onRemove={() => {
            // Its own button is gone afterwards.
            add.current?.focus();
            remove(filters, filter);
          }}
        />
      ))}
      <AddFilter
        unused={unused}
        only={kinds.length === 1 ? (kinds[0] ?? null) : null}
        buttonRef={add}
        onAdd={({ name }) => control.show(name)}
      />
      {!filters.isEmpty && (
        <Button
          variant="subtle"
          size="xs"
          onClick={() => {
            add.current?.focus();
            filters.clear();
          }}
        >
          Clear the filters
        </Button>
      )}
      {aside !== undefined && aside !== false && <div className="filters-aside">{aside}</div>}
    </div>
  );
}
