import '@mantine/spotlight/styles.css';
import { createSpotlight, Spotlight } from '@mantine/spotlight';
import { useDebouncedValue } from '@mantine/hooks';
import { CornerDownLeft, Link2, Search, Users } from 'lucide-react';
import type { LucideIcon } from 'lucide-react';
import { useEffect, useRef, useState } from 'react';
import { useNavigate } from 'react-router';
import { usePages } from '../navigation.tsx';
import { ICON } from '../parts/icon.ts';
import { TYPING_MS } from '../parts/filters.ts';
import { useSearch } from '../parts/found.ts';
import { usePermission } from '../session.ts';
import { jumpsTo } from './jumps.ts';

/** How many creators and links are shown at most, each. */
const MOST = 6;

const [store, palette] = createSpotlight();

interface Row {
  readonly to: string;
  readonly title: string;
  readonly hint?: string;
  readonly Icon: LucideIcon;
}

function Rows({ label, rows }: { readonly label: string; readonly rows: readonly Row[] }) {
  const navigate = useNavigate();
  if (rows.length === 0) return null;
  return (
    <Spotlight.ActionsGroup label={label}>
      {rows.map(({ to, title, hint, Icon }) => (
        <Spotlight.Action
          key={to + title}
          label={title}
          {...(hint === undefined ? {} : { description: hint })}
          leftSection={<Icon {...ICON} />}
          onClick={() => void navigate(to)}
        />
      ))}
    </Spotlight.ActionsGroup>
  );
}

/**
 * Finds a page, a creator, a link, or what belongs to an id, and leads there. It is open from when it is shown. A chunk of its own: load
 * it lazily.
 */
export default function Palette({
  appId,
  onClosed,
}: {
  readonly appId: string | null;
  readonly onClosed: () => void;
}) {
  useEffect(() => palette.open(), []);
  const [query, setQuery] = useState('');
  /** Whether the arrows were used since the text was entered. */
  const hasMoved = useRef(false);
  const text = query.trim();
  const [typed] = useDebouncedValue(text, TYPING_MS);
  const canSearch = usePermission('read') && appId !== null;
  const search = useSearch(appId ?? '', typed, canSearch);
  const found = typed === '' ? undefined : search.data;
  const pages = usePages(appId).filter(({ title }) => title.toLowerCase().includes(text.toLowerCase()));
  const base = `/apps/${appId}`;
  const groups: readonly (readonly [label: string, rows: readonly Row[]])[] = [
    [
      'Creators',
      (found?.affiliates ?? []).slice(0, MOST).map(({ id, name, email }) => ({
        to: `${base}/creators/${id}`,
        title: name,
        ...(email === null ? {} : { hint: email }),
        Icon: Users,
      })),
    ],
    [
      'Links',
      (found?.links ?? []).slice(0, MOST).map(({ slug, affiliateName }) => ({
        to: `${base}/links?q=${encodeURIComponent(slug)}`,
        title: slug,
        hint: affiliateName,
        Icon: Link2,
      })),
    ],
    ['Pages', pages.map(({ to, title, Icon }) => ({ to, title, Icon }))],
    [
      'Go to',
      appId === null || text === ''
        ? []
        : jumpsTo(text).map(({ path, title }) => ({ to: `${base}/${path}`, title, Icon: CornerDownLeft })),
    ],
  ];
  // What was found comes above the rows that were there: until somebody chooses by the arrows, Enter takes the first.
  useEffect(() => {
    if (hasMoved.current) return;
    const rows = document.querySelectorAll('.palette-rows [data-action]');
    for (const row of rows) row.removeAttribute('data-selected');
    rows[0]?.setAttribute('data-selected', 'true');
    store.updateState((state) => ({ ...state, selected: 0 }));
  });
  const isEmpty = groups.every(([, rows]) => rows.length === 0);
  return (
    <Spotlight.Root
      store={store}
      query={query}
      onQueryChange={(entered) => {
        hasMoved.current = false;
        setQuery(entered);
      }}
      onSpotlightClose={onClosed}
      shortcut={null}
      attributes={{ content: { 'aria-label': 'Search or jump to' } }}
      scrollable
      maxHeight={420}
    >
      <Spotlight.Search
        placeholder="A creator, link, page, user id, or any id"
        aria-label="Search or jump to"
        leftSection={<Search {...ICON} />}
        onKeyDown={({ key }) => {
          if (key === 'ArrowDown' || key === 'ArrowUp') hasMoved.current = true;
        }}
      />
      <Spotlight.ActionsList className="palette-rows">
        {groups.map(([label, rows]) => (
          <Rows key={label} label={label} rows={rows} />
        ))}
        {isEmpty && <Spotlight.Empty>Nothing found</Spotlight.Empty>}
      </Spotlight.ActionsList>
    </Spotlight.Root>
  );
}
