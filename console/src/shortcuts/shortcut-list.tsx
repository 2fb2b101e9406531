import { Stack, Switch } from '@mantine/core';
import { Dialog } from '../dialog.tsx';
import { APP_ENTRIES } from '../navigation.tsx';
import { isMac } from '../parts/platform.ts';
import { LETTERS } from './use-shortcuts.ts';

const OTHERS: readonly (readonly [keys: string, meaning: string])[] = [
  ['n', 'Create: a creator, a link, a policy'],
  ['/', 'Filter the list'],
  ['j', 'The next row; Enter opens it'],
  ['k', 'The row before'],
  ['?', 'This list'],
];

/** The list of the shortcuts, and a switch that turns those of one letter off, for people who control the browser by voice. */
export default function ShortcutList({
  isOn,
  onSwitched,
  onClosed,
}: {
  readonly isOn: boolean;
  readonly onSwitched: (isOn: boolean) => void;
  readonly onClosed: () => void;
}) {
  const pages = APP_ENTRIES.flatMap(({ entries }) =>
    entries.flatMap(({ path, title }) => {
      const letter = LETTERS[path];
      return letter === undefined ? [] : [[`g ${letter}`, title] as const];
    }),
  );
  return (
    <Dialog isOpen onClose={onClosed} title="Keyboard shortcuts">
      <Stack>
        <dl className="shortcuts">
          {([[isMac ? '⌘ K' : 'Ctrl K', 'Search or jump to'], ...pages, ...OTHERS] as const).map(
            ([keys, meaning]) => (
              <div key={keys}>
                <dt>
                  {keys.split(' ').map((key) => (
                    <kbd key={key}>{key}</kbd>
                  ))}
                </dt>
                <dd>{meaning}</dd>
              </div>
            ),
          )}
        </dl>
        <Switch
          label="Shortcuts of single letters"
          data-saved-at-once
          checked={isOn}
          onChange={(event) => onSwitched(event.currentTarget.checked)}
        />
      </Stack>
    </Dialog>
  );
}
