import { Menu, Popover } from '@mantine/core';
import { ChevronDown, X } from 'lucide-react';
import type { ComponentProps, ReactNode } from 'react';
import { formatDate } from '../format.ts';
import { DatesField, FoundField, TextField } from './filter-fields.tsx';
import type { FilterKind, FilterOf } from './filter-kinds.ts';
import { midnight, SPAN_TEXTS } from './filters.ts';
import type { Filters } from './filters.ts';
import { useFound } from './found.ts';

/** The texts of the choice of a range. */
const RANGES: Readonly<Record<string, string>> = { ...SPAN_TEXTS, dates: 'From … to …' };

/** Whether a filter has a value, or one that applies without being chosen. */
export const isShown = (filters: Filters, filter: FilterKind): boolean =>
  filters.get(filter.name) !== undefined || (filter.kind === 'range' && filter.without !== undefined);

/** The name of the creator or link that is chosen, or its id while that is not known. */
function FoundName({
  filter: { of, appId },
  id,
}: {
  readonly filter: FilterOf<'found'>;
  readonly id: string;
}) {
  return useFound(appId, of, id).options.find(({ value }) => value === id)?.label ?? id;
}

function datesOf(filters: Filters): string {
  const [first, last] = [midnight(filters.get('from')), midnight(filters.get('to'))];
  if (first === undefined) return 'choose two days';
  return last === undefined ? `since ${formatDate(first)}` : `${formatDate(first)} – ${formatDate(last)}`;
}

const named = (texts: Readonly<Record<string, string>>, key: string): string =>
  Object.hasOwn(texts, key) ? (texts[key] ?? key) : key;

/** What a chip says about the value of its filter. Anybody can write an address, so a value may be none of the known ones. */
function valueOf(filters: Filters, filter: FilterKind): ReactNode {
  const value = filters.get(filter.name);
  switch (filter.kind) {
    case 'range':
      return value === 'dates' ? datesOf(filters) : named(SPAN_TEXTS, value ?? filter.without ?? '');
    case 'fixed':
      return filter.text;
    case 'found':
      return value !== undefined && <FoundName filter={filter} id={value} />;
    case 'choice':
      return value !== undefined && named(filter.options, value);
    case 'text':
      return value;
  }
}

interface ControlProps {
  readonly filters: Filters;
  readonly filter: FilterKind;
  readonly isOpen: boolean;
  readonly onOpen: () => void;
  readonly onClose: () => void;
  /** The button of the chip. */
  readonly children: ReactNode;
}

/** Where the control of a chip is shown. The bar moves the focus itself: the chip may be gone when its control closes. */
const PLACE = {
  position: 'bottom-start',
  offset: 4,
  returnFocus: false,
  shadow: 'md',
  // A part of the page beside its button, for the keyboard and for screen readers.
  withinPortal: false,
} as const;

/** A list of values, of which one is chosen by a press or by its first letters. */
function ChoiceControl({
  options,
  value,
  isOpen,
  onOpen,
  onClose,
  onChoose,
  children,
}: Omit<ControlProps, 'filters' | 'filter'> & {
  readonly options: Readonly<Record<string, string>>;
  readonly value: string | null;
  readonly onChoose: (value: string) => void;
}) {
  return (
    <Menu
      {...PLACE}
      withInitialFocusPlaceholder={false}
      opened={isOpen}
      onChange={(next) => (next ? onOpen() : onClose())}
    >
      <Menu.Target>{children}</Menu.Target>
      <Menu.Dropdown className="filter-control">
        <Menu.RadioGroup value={value} onChange={onChoose}>
          {Object.entries(options).map(([one, text]) => (
            <Menu.RadioItem
              key={one}
              value={one}
              closeMenuOnClick={one !== 'dates'}
              data-autofocus={one === value ? true : undefined}
            >
              {text}
            </Menu.RadioItem>
          ))}
        </Menu.RadioGroup>
      </Menu.Dropdown>
    </Menu>
  );
}

/** The fields of a filter whose value is entered. */
function Fields({
  filters,
  filter,
  onDone,
}: {
  readonly filters: Filters;
  readonly filter: FilterOf<'text' | 'found' | 'range'>;
  readonly onDone: () => void;
}) {
  switch (filter.kind) {
    case 'text':
      return <TextField filters={filters} filter={filter} onDone={onDone} />;
    case 'found':
      return <FoundField filters={filters} filter={filter} onDone={onDone} />;
    case 'range':
      return <DatesField filters={filters} filter={filter} onDone={onDone} />;
  }
}

/** The control of a chip: a list of values, or fields over the page. */
function Control({ filters, filter, isOpen, onOpen, onClose, children }: ControlProps) {
  const value = filters.get(filter.name) ?? null;
  const list = { isOpen, onOpen, onClose, children };
  if (filter.kind === 'fixed') return children;
  if (filter.kind === 'choice')
    return (
      <ChoiceControl
        {...list}
        options={filter.options}
        value={value}
        onChoose={(next) => filters.set({ [filter.name]: next })}
      />
    );
  if (filter.kind === 'range' && value !== 'dates')
    return (
      <ChoiceControl
        {...list}
        options={RANGES}
        value={value ?? filter.without ?? null}
        onChoose={(range) => filters.set({ range, from: '', to: '' })}
      />
    );
  return (
    <Popover
      {...PLACE}
      trapFocus
      width={260}
      opened={isOpen}
      onChange={(next) => (next ? onOpen() : onClose())}
    >
      <Popover.Target>{children}</Popover.Target>
      <Popover.Dropdown className="filter-control">
        <Fields filters={filters} filter={filter} onDone={onClose} />
      </Popover.Dropdown>
    </Popover>
  );
}

/** A filter that is set: its name and value, which open its control, and the button that takes it away. */
export function Chip({
  filters,
  filter,
  isOpen,
  onOpen,
  onClose,
  onRemove,
}: Omit<ControlProps, 'children'> & { readonly onRemove: () => void }) {
  const { name, label, kind } = filter;
  const value = valueOf(filters, filter);
  // A list of values opens itself.
  const hasFields =
    kind === 'text' || kind === 'found' || (kind === 'range' && filters.get(name) === 'dates');
  const text = (
    <span className="chip-text">
      {label}: <bdi>{value === undefined || value === false ? '…' : value}</bdi>
    </span>
  );
  const opener: ComponentProps<'button'> = {
    type: 'button',
    className: 'chip-open',
    ...(hasFields ? { onClick: isOpen ? onClose : onOpen } : {}),
  };
  return (
    <span className="chip" data-filter={name}>
      {kind === 'fixed' ? (
        <span className="chip-open">{text}</span>
      ) : (
        <Control filters={filters} filter={filter} isOpen={isOpen} onOpen={onOpen} onClose={onClose}>
          <button {...opener}>
            {text}
            <ChevronDown size={12} aria-hidden="true" />
          </button>
        </Control>
      )}
      {filters.get(name) !== undefined && (
        <button
          type="button"
          className="chip-remove"
          aria-label={`Remove the filter ${label}`}
          onClick={onRemove}
        >
          <X size={14} aria-hidden="true" />
        </button>
      )}
    </span>
  );
}
