import {
  Activity,
  Bell,
  CircleDollarSign,
  CircleHelp,
  Ellipsis,
  FileClock,
  KeyRound,
  LayoutDashboard,
  Link2,
  ListChecks,
  Percent,
  Settings,
  Users,
  UsersRound,
  Wallet,
  Webhook,
} from 'lucide-react';
import type { LucideIcon } from 'lucide-react';
import type { ReactNode } from 'react';
import { NavLink, useLocation } from 'react-router';
import { OpenCount } from './alerts/open-count.tsx';
import { useOverview } from './api/queries.ts';
import { formatMoney } from './format.ts';
import { ICON } from './parts/icon.ts';
import { useCurrentSession, usePermission } from './session.ts';

/** An entry of the navigation. */
interface Entry {
  /** The path of the page, under `/apps/:appId/` or under the console. */
  readonly path: string;
  readonly title: string;
  readonly Icon: LucideIcon;
}

/** The pages of an app, by what they are about. */
export const APP_ENTRIES: readonly { readonly label: string | null; readonly entries: readonly Entry[] }[] = [
  {
    label: null,
    entries: [
      { path: 'overview', title: 'Overview', Icon: LayoutDashboard },
      { path: 'alerts', title: 'Alerts', Icon: Bell },
    ],
  },
  {
    label: 'Program',
    entries: [
      { path: 'creators', title: 'Creators', Icon: Users },
      { path: 'links', title: 'Links', Icon: Link2 },
      { path: 'policies', title: 'Policies', Icon: Percent },
    ],
  },
  {
    label: 'Money',
    entries: [
      { path: 'commissions', title: 'Commissions', Icon: CircleDollarSign },
      { path: 'payouts', title: 'Payouts', Icon: Wallet },
    ],
  },
  {
    label: 'Data',
    entries: [
      { path: 'events', title: 'Events', Icon: Activity },
      { path: 'unattributed', title: 'Unattributed', Icon: CircleHelp },
      { path: 'deliveries', title: 'Deliveries', Icon: Webhook },
    ],
  },
];

/** The parts of the settings of an app, each a page. */
const SETTINGS_PARTS = [
  ['settings', 'General'],
  ['setup', 'Set-up'],
  ['webhooks', 'Webhooks'],
  ['ledger', 'Ledger'],
] as const;

const TEAM: Entry = { path: 'team', title: 'Team', Icon: UsersRound };

const ACCOUNT_ENTRIES: readonly Entry[] = [
  { path: 'access', title: 'Access', Icon: KeyRound },
  { path: 'audit', title: 'Audit', Icon: FileClock },
];

/** Returns the pages of the account that the session may see: a member who manages nobody has no team. */
function useAccountEntries(): readonly Entry[] {
  const { managesMembers, member } = useCurrentSession();
  return managesMembers || member === null ? [TEAM, ...ACCOUNT_ENTRIES] : ACCOUNT_ENTRIES;
}

/** Returns the pages that somebody may look for: those of the app, if one is chosen, and of the account. */
export function usePages(
  appId: string | null,
): readonly (Pick<Entry, 'title' | 'Icon'> & { readonly to: string })[] {
  const ofAccount = useAccountEntries();
  const settings = SETTINGS_PARTS.map(([path, title]) => ({
    path,
    title: path === 'settings' ? 'Settings' : title,
    Icon: Settings,
  }));
  const ofApp = [...APP_ENTRIES.flatMap(({ entries }) => entries), ...settings];
  return [
    ...(appId === null
      ? []
      : ofApp.map(({ path, ...entry }) => ({ ...entry, to: `/apps/${appId}/${path}` }))),
    ...ofAccount.map(({ path, ...entry }) => ({ ...entry, to: `/${path}` })),
  ];
}

function EntryLink({
  entry: { title, Icon },
  to,
  isCurrent,
  onClick,
  children,
}: {
  readonly entry: Pick<Entry, 'title' | 'Icon'>;
  readonly to: string;
  /** Whether the page is one of those of the entry, where the address alone does not say it. */
  readonly isCurrent?: boolean;
  readonly onClick: () => void;
  readonly children?: ReactNode;
}) {
  return (
    <NavLink
      className="nav"
      to={to}
      onClick={onClick}
      {...(isCurrent === true ? { 'aria-current': 'page' as const } : {})}
    >
      <Icon {...ICON} />
      {title}
      {children}
    </NavLink>
  );
}

/** What is due to creators, beside the name of the payouts. */
function DueAmount({ cents }: { readonly cents: number }) {
  return cents === 0 ? null : (
    <span className="nav-count">
      {formatMoney(cents)}
      <span className="spoken"> due</span>
    </span>
  );
}

/** The links to the pages of an app, if one is chosen, and to those of the account. */
export function Navigation({
  appId,
  onChosen,
}: {
  readonly appId: string | null;
  readonly onChosen: () => void;
}) {
  const { pathname } = useLocation();
  const canRead = usePermission('read');
  const overview = useOverview(appId ?? '', canRead && appId !== null);
  const accountEntries = useAccountEntries();
  const isOf = (path: string) => pathname === `/apps/${appId}/${path}`;
  // Until the first sale; then it is a part of the settings.
  const isSettingUp = overview.data?.funnel.paid === 0;
  const isInSettings = SETTINGS_PARTS.some(([path]) => isOf(path) && !(path === 'setup' && isSettingUp));
  return (
    <>
      {appId !== null && (
        <>
          {isSettingUp && (
            <EntryLink
              entry={{ title: 'Set-up', Icon: ListChecks }}
              to={`/apps/${appId}/setup`}
              onClick={onChosen}
            />
          )}
          {APP_ENTRIES.map(({ label, entries }) => (
            <div key={label}>
              {label !== null && <div className="nav-label">{label}</div>}
              {entries.map((entry) => (
                <EntryLink
                  key={entry.path}
                  entry={entry}
                  to={`/apps/${appId}/${entry.path}`}
                  onClick={onChosen}
                >
                  {entry.path === 'alerts' && <OpenCount appId={appId} />}
                  {entry.path === 'payouts' && <DueAmount cents={overview.data?.due.payableCents ?? 0} />}
                </EntryLink>
              ))}
            </div>
          ))}
        </>
      )}
      <div className="nav-end">
        {appId !== null && (
          <EntryLink
            entry={{ title: 'Settings', Icon: Settings }}
            to={`/apps/${appId}/settings`}
            isCurrent={isInSettings}
            onClick={onChosen}
          />
        )}
        {accountEntries.map((entry) => (
          <EntryLink key={entry.path} entry={entry} to={`/${entry.path}`} onClick={onChosen} />
        ))}
      </div>
    </>
  );
}

/** The pages of an app that a founder on a phone opens most. */
const PHONE_PATHS: readonly string[] = ['overview', 'creators', 'payouts'];
const PHONE_ENTRIES = APP_ENTRIES.flatMap(({ entries }) => entries).filter(({ path }) =>
  PHONE_PATHS.includes(path),
);

/** The bar at the lower edge of a phone: the pages that are opened most, and a button that opens the list of the others. */
export function PhoneBar({
  appId,
  isMoreOpen,
  onMore,
  onChosen,
}: {
  readonly appId: string | null;
  readonly isMoreOpen: boolean;
  readonly onMore: () => void;
  readonly onChosen: () => void;
}) {
  return (
    <nav className="phone-bar" aria-label="Frequent pages">
      {appId !== null &&
        PHONE_ENTRIES.map(({ path, title, Icon }) => (
          <NavLink key={path} to={`/apps/${appId}/${path}`} onClick={onChosen}>
            <Icon {...ICON} />
            {title}
          </NavLink>
        ))}
      <button type="button" aria-label="More pages" aria-expanded={isMoreOpen} onClick={onMore}>
        <Ellipsis {...ICON} />
        More
      </button>
    </nav>
  );
}

/** The links between the parts of the settings of an app. */
export function SettingsParts({ appId }: { readonly appId: string }) {
  return (
    <nav className="page-parts" aria-label="Parts of the settings">
      {SETTINGS_PARTS.map(([path, title]) => (
        <NavLink key={path} to={`/apps/${appId}/${path}`}>
          {title}
        </NavLink>
      ))}
    </nav>
  );
}
