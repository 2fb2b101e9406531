import '@mantine/spotlight/styles.css';
import { createSpotlight, Spotlight } from '@mantine/spotlight';
import { useDebouncedValue } from '@mantine/hooks';
import { Activity, AppWindow, CornerDownLeft, Link2, Plus, Search, TicketPercent, Users } from 'lucide-react';
import type { LucideIcon } from 'lucide-react';
import { useEffect, useRef, useState } from 'react';
import { useNavigate } from 'react-router';
import { useApps } from '../api/queries.ts';
import { NAMESPACES } from '../codes/words.ts';
import { eventTitle } from '../events/event-title.ts';
import { formatInstant } from '../format.ts';
import { usePages } from '../navigation.tsx';
import { ICON } from '../parts/icon.ts';
import { TYPING_MS } from '../parts/filters.ts';
import { useSearch } from '../parts/found.ts';
import { usePermission } from '../session.ts';
import { OPENS_NEW } from '../shortcuts/use-opens-new.ts';
import { PROVIDERS } from '../words.ts';
import { jumpsTo } from './jumps.ts';

/** How many rows of a kind are shown at most. */
const MOST = 6;

const [store, palette] = createSpotlight();

interface Row {
  readonly to: string;
  /** Tells rows apart that lead to the same page. `to` and the title without. */
  readonly key?: string;
  readonly title: string;
  readonly hint?: string;
  readonly Icon: LucideIcon;
  /** The state of the navigation. */
  readonly state?: object;
}

function Rows({ label, rows }: { readonly label: string; readonly rows: readonly Row[] }) {
  const navigate = useNavigate();
  if (rows.length === 0) return null;
  return (
    <Spotlight.ActionsGroup label={label}>
      {rows.map(({ to, title, hint, Icon, state, key = to + title }) => (
        <Spotlight.Action
          key={key}
          label={title}
          {...(hint === undefined ? {} : { description: hint })}
          leftSection={<Icon {...ICON} />}
          onClick={() => void navigate(to, { state })}
        />
      ))}
    </Spotlight.ActionsGroup>
  );
}

/** Returns what can be created in an app, by pages that offer it. */
const actionsOf = (base: string): readonly Row[] => [
  { to: `${base}/creators`, title: 'New creator', Icon: Plus, state: OPENS_NEW },
  { to: `${base}/links`, title: 'New link', Icon: Plus, state: OPENS_NEW },
  { to: `${base}/policies/new`, title: 'New policy', Icon: Plus },
];

/**
 * Finds a page, an app, a creator, a link, a code, an event, what can be created, or what belongs to an id, and leads there. It is open from when it is shown. A chunk of its own: load
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
  // What another text has found must not be what Enter opens.
  const found = typed === text && typed !== '' && !search.isPlaceholderData ? search.data : undefined;
  const isSearching = canSearch && text !== '' && found === undefined && search.error === null;
  const isNamed = ({ title }: { readonly title: string }) => title.toLowerCase().includes(text.toLowerCase());
  const pages = usePages(appId).filter(isNamed);
  const canWrite = usePermission('write');
  const apps = useApps();
  const base = `/apps/${appId}`;
  const others = (apps.data ?? [])
    .filter(({ id }) => id !== appId)
    .map(({ id, name }) => ({ to: `/apps/${id}/overview`, title: name, Icon: AppWindow }));
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
    [
      'Codes',
      (found?.codes ?? [])
        .slice(0, MOST)
        .map(({ id, value, namespace, affiliateId, affiliateName, deactivatedAt }) => ({
          to: `${base}/creators/${affiliateId}`,
          key: id,
          title: value,
          hint: `${affiliateName}, ${NAMESPACES[namespace].name}${deactivatedAt === null ? '' : ', deactivated'}`,
          Icon: TicketPercent,
        })),
    ],
    [
      'Events',
      (found?.events ?? []).slice(0, MOST).map((event) => ({
        to: `${base}/events/${event.eventId}`,
        title: eventTitle(event.kind, event.amountMinor, event.currency),
        hint: [
          PROVIDERS[event.source],
          event.environment === 'sandbox' ? 'Sandbox' : null,
          formatInstant(event.occurredAt),
          event.customerUserId,
        ]
          .filter((part) => part !== null)
          .join(' · '),
        Icon: Activity,
      })),
    ],
    ['Pages', pages.map(({ to, title, Icon }) => ({ to, title, Icon }))],
    ['Actions', appId === null || !canWrite ? [] : actionsOf(base).filter(isNamed)],
    ['Apps', text === '' ? [] : others.filter(isNamed).slice(0, MOST)],
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
        placeholder="A creator, link, code, user, transaction, page …"
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
        {isEmpty && <Spotlight.Empty>{isSearching ? 'Searching …' : 'Nothing found'}</Spotlight.Empty>}
      </Spotlight.ActionsList>
    </Spotlight.Root>
  );
}
