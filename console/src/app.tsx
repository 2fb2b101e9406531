import { AppShell, Box, Burger, Group, NativeSelect, Text } from '@mantine/core';
import { useDisclosure, useHotkeys } from '@mantine/hooks';
import { Search } from 'lucide-react';
import { lazy, Suspense, useEffect, useRef, useState } from 'react';
import type { ReactNode } from 'react';
import { Link, Outlet, Route, Routes, useHref, useLocation, useNavigate, useParams } from 'react-router';
import type { Schemas, Session } from './api/client.ts';
import { queryClient, useApps, useOverview, useSession } from './api/queries.ts';
import { timeZone } from './format.ts';
import { LazyAccountMenu } from './lazy-account-menu.tsx';
import { Navigation, PhoneBar } from './navigation.tsx';
import { APP_PAGES, headOf, isPageLoaded, loadPageOf, pathForOtherApp } from './pages.tsx';
import { ErrorBox, Extra, Logo, PageBoundary, PageHead, Waiting } from './parts.tsx';
import { HeadSlot } from './parts/head-aside.tsx';
import { ICON } from './parts/icon.ts';
import { isMac } from './parts/platform.ts';
import { Toasts } from './parts/toast.tsx';
import { ServiceState } from './service-state.tsx';
import { SessionContext, usePermission, useSeesAllApps } from './session.ts';
import { Shortcuts } from './shortcuts/shortcuts.tsx';
import { useSignInLink } from './sign-in-link.ts';
import { SignInAgain } from './sign-in-again.tsx';
import { SignInPage } from './sign-in.tsx';

const Palette = lazy(async () => await import('./palette/palette.tsx'));
const AccessPage = lazy(async () => await import('./access.tsx'));
const NewAppPage = lazy(async () => await import('./new-app.tsx'));
const TeamPage = lazy(async () => await import('./team/team-page.tsx'));
const AuditPage = lazy(async () => await import('./audit/audit-page.tsx'));

function AppSwitcher({
  apps,
  chosen,
  onChosen,
}: {
  readonly apps: readonly Schemas['ListedApp'][];
  readonly chosen: string;
  readonly onChosen: () => void;
}) {
  const navigate = useNavigate();
  const { pathname } = useLocation();
  const seesAll = useSeesAllApps();
  return (
    <NativeSelect
      aria-label="App"
      value={chosen}
      onChange={(event) => {
        void navigate(
          event.currentTarget.value === 'new'
            ? '/apps/new'
            : `/apps/${event.currentTarget.value}/${pathForOtherApp(pathname)}`,
        );
        onChosen();
      }}
    >
      {apps.map((app) => (
        <option key={app.id} value={app.id}>
          {app.name}
        </option>
      ))}
      {seesAll && <option value="new">New app …</option>}
    </NativeSelect>
  );
}

/**
 * The page of an address: its head at once, and the rest when its program is there. Without a `Suspense`, after which React shows what
 * comes next at most every 300 ms.
 */
function PageOf({ pathname }: { readonly pathname: string }) {
  const [slot, setSlot] = useState<HTMLElement | null>(null);
  const [isThere, setIsThere] = useState(() => isPageLoaded(pathname));
  useEffect(() => {
    // The page itself says why its program cannot be loaded.
    const end = () => setIsThere(true);
    if (!isThere) void loadPageOf(pathname).then(end, end);
  }, [pathname, isThere]);
  const head = headOf(pathname);
  const waiting = <Waiting what="the page" shape={head === undefined ? 'page' : 'rows'} />;
  return (
    <HeadSlot value={slot}>
      {head !== undefined && <PageHead {...head} aside={<div ref={setSlot} className="head-aside" />} />}
      {isThere ? (
        <Suspense fallback={waiting}>
          <Outlet />
        </Suspense>
      ) : (
        waiting
      )}
    </HeadSlot>
  );
}

function Shell({ session }: { readonly session: Session }) {
  const [isOpen, { toggle, close }] = useDisclosure(false);
  const closeButton = useRef<HTMLButtonElement>(null);
  // The list of pages is before the button that opens it.
  useEffect(() => {
    if (isOpen) closeButton.current?.focus();
  }, [isOpen]);
  const apps = useApps();
  const { appId } = useParams();
  const { pathname } = useLocation();
  // Pages of the account leave the last app chosen.
  const [lastAppId, setLastAppId] = useState(appId);
  if (appId !== undefined && appId !== lastAppId) setLastAppId(appId);
  const chosen = pathname === '/apps/new' ? 'new' : (lastAppId ?? apps.data?.[0]?.id);
  const chosenApp = chosen === undefined || chosen === 'new' ? null : chosen;
  const [isSearching, search] = useDisclosure(false);
  useHotkeys([['mod+K', search.open]], []);
  const [listsShortcuts, setListsShortcuts] = useState(false);
  return (
    <AppShell
      layout="alt"
      header={{ height: 56 }}
      navbar={{ width: 232, breakpoint: 'sm', collapsed: { mobile: !isOpen } }}
      footer={{ height: { base: 56, sm: 0 } }}
      padding={{ base: 'md', sm: 'xl' }}
    >
      <AppShell.Header>
        <Group h="100%" px={{ base: 'md', sm: 'xl' }} justify="space-between" wrap="nowrap">
          <Box className="brand" hiddenFrom="sm">
            <Logo /> Tributary
          </Box>
          <button type="button" className="search-button" onClick={search.open}>
            <Search {...ICON} />
            <span className="search-text">Search or jump to …</span>
            <kbd aria-hidden="true">{isMac ? '⌘' : 'Ctrl '}K</kbd>
          </button>
          <LazyAccountMenu session={session} onShortcuts={() => setListsShortcuts(true)} />
        </Group>
      </AppShell.Header>
      <AppShell.Navbar px="sm" pt="sm" pb={{ base: 68, sm: 'sm' }} aria-label="Pages">
        <Group h={32} px={4} mb="sm" justify="space-between" wrap="nowrap">
          <div className="brand">
            <Logo /> Tributary
          </div>
          <Burger ref={closeButton} opened onClick={close} hiddenFrom="sm" size="sm" aria-label="Close" />
        </Group>
        {/* Keeps its place before the apps are known, so that the links below do not move. */}
        <div style={{ minHeight: 36, marginBottom: 8 }}>
          {apps.data !== undefined && apps.data.length > 0 && chosen !== undefined && (
            <AppSwitcher apps={apps.data} chosen={chosen} onChosen={close} />
          )}
        </div>
        <div className="nav-list">
          <Navigation appId={chosenApp} onChosen={close} />
        </div>
        <Text size="xs" className="quiet" px={12}>
          Times are in {timeZone}.
        </Text>
      </AppShell.Navbar>
      <Toasts />
      {isSearching && (
        <Extra>
          <Palette appId={chosenApp} onClosed={search.close} />
        </Extra>
      )}
      <Shortcuts appId={chosenApp} isListed={listsShortcuts} onListed={setListsShortcuts} />
      <AppShell.Main>
        <div style={{ maxWidth: 1280, margin: '0 auto' }}>
          <ServiceState />
          <PageBoundary key={pathname}>
            <PageOf pathname={pathname} />
          </PageBoundary>
        </div>
      </AppShell.Main>
      <AppShell.Footer hiddenFrom="sm">
        <PhoneBar appId={chosenApp} isMoreOpen={isOpen} onMore={toggle} onChosen={close} />
      </AppShell.Footer>
    </AppShell>
  );
}

const withoutSlash = (path: string) => path.replace(/\/$/, '');

/** Leads on from the page that is shown. A press on a link in the same moment counts, and leads where it says. */
function Onward({ to }: { readonly to: string }) {
  const navigate = useNavigate();
  const here = useHref(useLocation().pathname);
  useEffect(() => {
    if (withoutSlash(location.pathname) === withoutSlash(here)) void navigate(to, { replace: true });
  }, [navigate, here, to]);
  return null;
}

/**
 * Leads to the overview of the app of the address or of the first one, to its set-up before the first attributed payment, or
 * to the page that creates an app.
 */
function Start() {
  const canRead = usePermission('read');
  const apps = useApps();
  const { appId = apps.data?.[0]?.id } = useParams();
  const overview = useOverview(appId ?? '', canRead && appId !== undefined);
  if (apps.error !== null) return <ErrorBox error={apps.error} retry={() => void apps.refetch()} />;
  if (apps.data === undefined) return <Waiting what="your apps" shape="page" />;
  if (appId === undefined) return <Onward to="/apps/new" />;
  if (overview.isLoading) return <Waiting what="the overview" shape="page" />;
  // The page itself says what failed.
  const hasSales = canRead && overview.data?.funnel.paid !== 0;
  return <Onward to={`/apps/${appId}/${hasSales ? 'overview' : 'setup'}`} />;
}

function NotFound() {
  return (
    <PageHead title="There is no such page">
      The address may be mistyped, or it belongs to another account. <Link to="/">Go to the start</Link>
    </PageHead>
  );
}

function Centered({ children }: { readonly children: ReactNode }) {
  return <main style={{ maxWidth: 480, margin: '0 auto', padding: '12vh 16px' }}>{children}</main>;
}

/** The places of the navigation and of the page, as the document itself draws them first (outline.html). */
function Outline() {
  return (
    <div className="sk">
      <div className="sk-nav">
        {Array.from({ length: 8 }, (_, index) => (
          <i key={index} />
        ))}
      </div>
      <div className="sk-main">
        <Waiting what="the console" shape="page" />
      </div>
    </div>
  );
}

export function App() {
  const current = useSession();
  // The session of the page. It stays when it has ended, so that the page keeps what was entered.
  const [last, setLast] = useState<Session | null>(null);
  const present = current.data?.session ?? null;
  const [link, closeLink] = useSignInLink(present !== null);
  if (present !== null && present !== last) setLast(present);
  const [hasEnded, setHasEnded] = useState(false);
  if (current.data?.session === null && last !== null && !hasEnded) setHasEnded(true);
  if (current.data === undefined) {
    return current.error === null ? (
      <Outline />
    ) : (
      <Centered>
        <ErrorBox error={current.error} retry={() => void queryClient.refetchQueries()} />
      </Centered>
    );
  }
  const { hasAccounts, sendsMail = false, takesPasskeys = false } = current.data;
  const means = { sendsMail, takesPasskeys };
  const session = present ?? last;
  // A first link creates the first account, so a browser that is signed in does not need it.
  if (session !== null && link?.isNew === true) closeLink();
  if (session === null || (link !== null && present !== null)) {
    return (
      <SignInPage
        hasAccounts={hasAccounts}
        hasSession={present !== null}
        means={means}
        link={link}
        onLinkClosed={closeLink}
      />
    );
  }
  return (
    <SessionContext value={session}>
      {hasEnded && last !== null && (
        <SignInAgain
          last={last}
          isOpen={present === null}
          means={means}
          link={link}
          onLinkClosed={closeLink}
        />
      )}
      <Routes>
        <Route element={<Shell session={session} />}>
          <Route index element={<Start />} />
          <Route path="apps/new" element={<NewAppPage />} />
          <Route path="apps/:appId" element={<Start />} />
          {APP_PAGES.map(({ path, Page }) => (
            <Route key={path} path={`apps/:appId/${path}`} element={<Page />} />
          ))}
          <Route path="team" element={<TeamPage />} />
          <Route path="access" element={<AccessPage />} />
          <Route path="audit" element={<AuditPage />} />
          <Route path="*" element={<NotFound />} />
        </Route>
      </Routes>
    </SessionContext>
  );
}
