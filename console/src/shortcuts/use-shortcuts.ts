import { useEffect, useEffectEvent, useRef } from 'react';
import { useNavigate } from 'react-router';

/** The letters that lead to the pages of an app after `g`, by the path of the page. */
export const LETTERS: Readonly<Record<string, string>> = {
  overview: 'o',
  creators: 'c',
  links: 'l',
  commissions: 'm',
  payouts: 'p',
  events: 'e',
  unattributed: 'u',
  deliveries: 'd',
};

/** How long after `g` a letter counts, ms. */
const SEQUENCE_MS = 1_500;

/** Marks the button of a page that creates something, which `n` presses. */
export const IS_NEW = { 'data-new': true };

/** Where a letter is text, or belongs to what has the focus. */
const OWN_KEYS =
  'input, textarea, select, [contenteditable], [role="menu"], [role="listbox"], [role="radiogroup"]';

/** What filters a list: the field of its text, or the button that adds a filter. */
const FILTER = 'main [role="search"] :is(input, [data-add-filter])';

/** Moves the focus to the first link of the next row of a list, or of the one before. Starts at the first row. */
function moveRow(step: 1 | -1): void {
  const links = [...document.querySelectorAll<HTMLAnchorElement>('main table tbody tr')].flatMap(
    (row) => row.querySelector<HTMLAnchorElement>('a[href]') ?? [],
  );
  const at = links.findIndex((link) => link.closest('tr')?.contains(document.activeElement));
  const next = links[at === -1 ? 0 : at + step];
  next?.focus();
  next?.scrollIntoView({ block: 'nearest' });
}

/** Does what a key alone means. Returns false for any other key. */
function press(key: string, onHelp: () => void): boolean {
  switch (key) {
    case 'j':
      moveRow(1);
      return true;
    case 'k':
      moveRow(-1);
      return true;
    case '/':
      document.querySelector<HTMLElement>(FILTER)?.focus();
      return true;
    case 'n':
      document.querySelector<HTMLElement>('main [data-new]:not(:disabled)')?.click();
      return true;
    case '?':
      onHelp();
      return true;
    default:
      return false;
  }
}

/**
 * Listens to the keys that work on every page, while no dialog is open and no field has the focus: `g` and a letter of `LETTERS`,
 * and those of `press`.
 */
export function useShortcuts({
  isOn,
  appId,
  onHelp,
}: {
  readonly isOn: boolean;
  readonly appId: string | null;
  readonly onHelp: () => void;
}): void {
  const navigate = useNavigate();
  const startedAt = useRef<number | null>(null);
  const onKey = useEffectEvent((event: KeyboardEvent) => {
    const { key, target } = event;
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || event.defaultPrevented) return;
    if (target instanceof Element && target.closest(OWN_KEYS) !== null) return;
    if (document.querySelector('[role="dialog"]') !== null) return;
    const isSecond = startedAt.current !== null && performance.now() - startedAt.current < SEQUENCE_MS;
    startedAt.current = key === 'g' ? performance.now() : null;
    const [page] = Object.entries(LETTERS).find(([, letter]) => letter === key) ?? [];
    if (isSecond && page !== undefined && appId !== null) {
      event.preventDefault();
      void navigate(`/apps/${appId}/${page}`);
    } else if (press(key, onHelp)) {
      event.preventDefault();
    }
  });
  useEffect(() => {
    if (!isOn) return;
    addEventListener('keydown', onKey);
    return () => removeEventListener('keydown', onKey);
  }, [isOn]);
}
