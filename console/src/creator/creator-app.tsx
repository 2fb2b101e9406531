import { Text } from '@mantine/core';
import { Fragment, lazy, Suspense, useState } from 'react';
import type { ReactNode } from 'react';
import { Link, NavLink, Route, Routes, useLocation } from 'react-router';
import { timeZone } from '../format.ts';
import { LinkPageHeader, LinkSignInPage } from '../link-sign-in.tsx';
import { ErrorBox, Extra, PageBoundary, PageHead, Waiting } from '../parts.tsx';
import { useSignInLink } from '../sign-in-link.ts';
import { api, seenAs } from './api.ts';
import { BrandMark, useBrand } from './branded.tsx';
import { CommissionsPage } from './commissions-page.tsx';
import { EarningsPage } from './earnings-page.tsx';
import { LinksPage } from './links-page.tsx';
import { PayoutsPage } from './payouts-page.tsx';
import { queryClient, startCreatorAnew, useCreator, usePageSession } from './queries.ts';
import type { Creator } from './queries.ts';
import { RangeStatementPage } from './range-statement-page.tsx';
import { LINK_TERMS, signInWith } from './sign-in.ts';
import { StatementPage } from './statement-page.tsx';

/** Forgets every answer, so that nothing of the last session remains. */
async function signOut(): Promise<void> {
  await api.POST('/creator/session/end', {}).catch(() => {});
  startCreatorAnew();
}

// Opened seldom, and with dialogs: their modules are not part of the first load.
const SessionsPage = lazy(async () => await import('./sessions-page.tsx'));
const CreatorSignInAgain = lazy(async () => await import('./creator-sign-in-again.tsx'));

const PAGES = [
  ['/', 'Earnings'],
  ['/links', 'Links'],
  ['/commissions', 'Commissions'],
  ['/payouts', 'Payouts'],
  // In which browsers a creator is signed in concerns the creator alone.
  ...(seenAs === null ? ([['/sessions', 'Devices']] as const) : []),
] as const;

/** Says to a founder that this is what a creator sees, and leads back. */
function SeenAs({ founderPath }: { readonly founderPath: string }) {
  const creator = useCreator();
  return (
    <aside className="seen-as no-print" aria-label="See as creator">
      You see what {creator.data?.name ?? 'the creator'} sees. <a href={founderPath}>Close</a>
    </aside>
  );
}

const STATUS: Readonly<Record<Creator['status'], string | null>> = {
  active: null,
  paused: 'Your links are paused: new purchases earn nothing for now. What you earned stays yours.',
  removed: 'You no longer earn from new purchases. What you earned stays yours.',
};

function Shell({ creator, children }: { readonly creator: Creator; readonly children: ReactNode }) {
  const notice = STATUS[creator.status];
  useBrand(creator.brandColor);
  return (
    <>
      <LinkPageHeader
        title={creator.appName}
        {...(creator.brandColor === undefined ? {} : { mark: <BrandMark name={creator.appName} /> })}
        subtitle={creator.name}
        signOut={seenAs === null ? signOut : null}
        className="no-print"
      >
        <nav aria-label="Pages" className="tabs">
          {PAGES.map(([to, title]) => (
            <NavLink key={to} className="nav" to={to} end={to === '/'}>
              {title}
            </NavLink>
          ))}
        </nav>
      </LinkPageHeader>
      <main className="creator-main">
        {notice !== null && (
          <Text size="sm" mb="lg" p="sm" className="surface" role="status">
            {notice}
          </Text>
        )}
        {children}
      </main>
      <footer className="creator-foot quiet no-print">Times are in {timeZone}.</footer>
    </>
  );
}

function NotFound() {
  return (
    <PageHead title="There is no such page">
      The address may be mistyped. <Link to="/">Go to your earnings</Link>
    </PageHead>
  );
}

function Pages() {
  const creator = useCreator();
  const { pathname } = useLocation();
  if (creator.data === undefined) {
    return (
      <main className="creator-main">
        {creator.error === null ? (
          <Waiting what="your page" />
        ) : (
          <>
            <PageHead title="Your earnings" />
            <ErrorBox error={creator.error} retry={() => void creator.refetch()} />
          </>
        )}
      </main>
    );
  }
  return (
    <Shell creator={creator.data}>
      <PageBoundary key={pathname}>
        <Routes>
          <Route index element={<EarningsPage creator={creator.data} />} />
          <Route path="links" element={<LinksPage creator={creator.data} />} />
          <Route path="commissions" element={<CommissionsPage />} />
          <Route path="payouts" element={<PayoutsPage />} />
          <Route path="payouts/:id" element={<StatementPage />} />
          <Route path="statement" element={<RangeStatementPage creator={creator.data} />} />
          {seenAs === null && (
            <Route
              path="sessions"
              element={
                <Suspense
                  fallback={
                    <>
                      <PageHead title="Devices" />
                      <Waiting what="your devices" />
                    </>
                  }
                >
                  <SessionsPage />
                </Suspense>
              }
            />
          )}
          <Route path="*" element={<NotFound />} />
        </Routes>
      </PageBoundary>
    </Shell>
  );
}

export function CreatorApp() {
  const current = usePageSession();
  const present = current.data?.person ?? null;
  const [link, closeLink] = useSignInLink(present !== null);
  // Whose page is shown. It stays while something is entered and the session has ended.
  const [last, setLast] = useState<string | null>(null);
  const shown = present ?? (current.data?.stays === true ? last : null);
  if (current.data !== undefined && shown !== last) setLast(shown);
  const [hasEnded, setHasEnded] = useState(false);
  if (present === null && shown !== null && !hasEnded) setHasEnded(true);
  if (current.data === undefined) {
    return (
      <main className="creator-main">
        {current.error === null ? (
          <Waiting what="your page" />
        ) : (
          <ErrorBox error={current.error} retry={() => void queryClient.refetchQueries()} />
        )}
      </main>
    );
  }
  if (seenAs !== null && shown === null)
    return (
      <main className="creator-main">
        <PageHead title="You are not signed in">
          This page shows founders what a creator sees.{' '}
          <a href={seenAs.founderPath}>Sign in to the console</a>
        </PageHead>
      </main>
    );
  if (shown === null || (seenAs === null && link !== null && present !== null))
    return (
      <LinkSignInPage
        title="Your earnings"
        tab="Your earnings"
        withoutLink={
          <Text size="sm" className="quiet">
            Open the sign-in link that you received. If it no longer works, ask the people whose app you
            promote for a new one.
          </Text>
        }
        terms={LINK_TERMS}
        button="Show my earnings"
        token={link?.token ?? null}
        hasSession={present !== null}
        signIn={signInWith}
        onLinkClosed={closeLink}
      />
    );
  // The page of another creator begins anew.
  return (
    <Fragment key={shown}>
      {hasEnded && (
        <Extra>
          <CreatorSignInAgain
            isOpen={present === null}
            token={link?.token ?? null}
            onLinkClosed={closeLink}
          />
        </Extra>
      )}
      {seenAs !== null && <SeenAs founderPath={seenAs.founderPath} />}
      <Pages />
    </Fragment>
  );
}
