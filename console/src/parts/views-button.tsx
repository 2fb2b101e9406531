import { Button, Popover, Stack, Text, TextInput } from '@mantine/core';
import { Bookmark, X } from 'lucide-react';
import { useState } from 'react';
import type { Filters } from './filters.ts';
import { ICON } from './icon.ts';
import { MOST_LETTERS, useViews } from './saved-views.ts';
import { sayDone } from './toast.tsx';

/** Names the present filters and order of a list. */
function SaveForm({
  names,
  onSave,
}: {
  /** The names that are taken. */
  readonly names: readonly string[];
  readonly onSave: (name: string) => void;
}) {
  const [entered, setEntered] = useState('');
  const name = entered.trim();
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        if (name !== '') onSave(name);
      }}
    >
      <Stack gap="xs">
        <TextInput
          size="xs"
          label="Name of the view"
          description={
            names.includes(name)
              ? 'It replaces the view of this name.'
              : 'The filters and the order that are set now. It stays in this browser until you sign out.'
          }
          maxLength={MOST_LETTERS}
          data-autofocus
          value={entered}
          onChange={(event) => setEntered(event.currentTarget.value)}
        />
        <Button type="submit" size="xs" disabled={name === ''}>
          Save view
        </Button>
      </Stack>
    </form>
  );
}

/** The saved views of a list: opens and removes them, and saves the present filters and order as one. */
export function ViewsButton({
  list,
  appId,
  filters,
}: {
  readonly list: string;
  /** Null for a list of the account. */
  readonly appId: string | null;
  readonly filters: Filters;
}) {
  const { views, save, remove } = useViews(list, appId);
  const [isOpen, setIsOpen] = useState(false);
  const shown = filters.isEmpty ? undefined : views.find(({ query }) => query === filters.query);
  return (
    <Popover
      position="bottom-end"
      offset={4}
      width={280}
      shadow="md"
      withinPortal={false}
      trapFocus
      returnFocus
      opened={isOpen}
      onChange={setIsOpen}
    >
      <Popover.Target>
        <Button
          variant="default"
          size="xs"

          leftSection={<Bookmark {...ICON} size={14} />}
          onClick={() => setIsOpen(!isOpen)}
        >
          {shown === undefined ? 'Views' : <bdi className="views-shown">{shown.name}</bdi>}
        </Button>
      </Popover.Target>
      <Popover.Dropdown className="filter-control">
        <Stack gap="sm">
          {views.length > 0 && (
            <ul className="views">
              {views.map((view) => (
                <li key={view.name}>
                  <button
                    type="button"
                    className="view-open"
                    aria-current={view === shown}
                    onClick={() => {
                      filters.show(view.query);
                      setIsOpen(false);
                    }}
                  >
                    <bdi>{view.name}</bdi>
                  </button>
                  <button
                    type="button"
                    className="view-remove"
                    aria-label={`Remove the view ${view.name}`}
                    onClick={({ currentTarget }) => {
                      // The button is gone afterwards.
                      currentTarget.closest<HTMLElement>('[role=dialog]')?.focus();
                      remove(view.name);
                    }}
                  >
                    <X size={14} aria-hidden="true" />
                  </button>
                </li>
              ))}
            </ul>
          )}
          {filters.isEmpty ? (
            <Text size="sm" className="quiet">
              Set filters or an order. Then save them here under a name.
            </Text>
          ) : (
            shown === undefined && (
              <SaveForm
                names={views.map(({ name }) => name)}
                onSave={(name) => {
                  const isStored = save({ name, query: filters.query });
                  sayDone(
                    isStored
                      ? `The view “${name}” is saved in this browser.`
                      : `The view “${name}” is there until you close the page: this browser stores nothing for it.`,
                  );
                  setIsOpen(false);
                }}
              />
            )
          )}
        </Stack>
      </Popover.Dropdown>
    </Popover>
  );
}
