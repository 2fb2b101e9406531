import { Stack } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { Link } from 'react-router';
import { read } from '../api/client.ts';
import type { Schemas } from '../api/client.ts';
import { OVERVIEW_MS } from '../api/query-client.ts';
import { formatCount, formatDate, formatMoney } from '../format.ts';
import { ErrorBox, PageHead } from '../parts.tsx';
import { api } from './api.ts';
import { EarningsChart } from './earnings-chart.tsx';
import { KEYS } from './queries.ts';
import type { Creator } from './queries.ts';
import { Payee } from './payee.tsx';
import { Rules } from './rules.tsx';
import { ShareFirst } from './share-first.tsx';

function Tile({
  name,
  value,
  isFirst = false,
  children,
}: {
  readonly name: string;
  readonly value: string;
  /** Whether it has a row of its own on a phone. */
  readonly isFirst?: boolean;
  readonly children?: ReactNode;
}) {
  return (
    <div className={isFirst ? 'surface tile tile-first' : 'surface tile'}>
      <dt className="quiet">{name}</dt>
      <dd>
        <span className="tile-value">{value}</span>
        <span className="tile-note quiet">{children}</span>
      </dd>
    </div>
  );
}

/** The names of the tiles. */
const SUMS = ['Next', 'Earned', 'Held', 'Due', 'Booked'] as const;
const COUNTS = ['Clicks', 'Installs', 'Paying users'] as const;

/** Says what is paid next, or becomes due next where the app has no payout schedule, and when. */
function Next({ overview }: { readonly overview: Schemas['CreatorOverview'] }) {
  const { nextRun, nextDueAt, nextDueCents } = overview;
  if (nextRun === undefined)
    return (
      <Tile isFirst name="Next due" value={formatMoney(nextDueCents ?? 0)}>
        {nextDueAt === null ? 'Nothing is held' : `On ${formatDate(nextDueAt)}`}
      </Tile>
    );
  const { date, estimatedCents, minimumCents, exclusionReason } = nextRun;
  // A date of the founder's wall clock, which is the same one everywhere.
  const day = formatDate(Date.parse(`${date}T12:00`));
  return (
    <Tile isFirst name="Next payout" value={formatMoney(estimatedCents)}>
      {exclusionReason === 'no_payee' && `You have no recipient yet: the run on ${day} leaves you out`}
      {exclusionReason === 'payee_changed' &&
        `Your new recipient does not count by ${day}: a later run pays you`}
      {exclusionReason === undefined &&
        (estimatedCents < minimumCents
          ? `On ${day}, from ${formatMoney(minimumCents)} on: less is kept for later`
          : `Estimate for ${day}`)}
    </Tile>
  );
}

function Sums({ overview }: { readonly overview: Schemas['CreatorOverview'] }) {
  const { earnings, funnel, heldUntil, carriedBalanceCents } = overview;
  return (
    <>
      <dl className="tiles">
        <Next overview={overview} />
        <Tile name="Earned" value={formatMoney(earnings.lifetime)}>
          Of all time, net of refunds
        </Tile>
        <Tile name="Held" value={formatMoney(earnings.pending)}>
          {heldUntil !== null && `Until ${formatDate(heldUntil)} at the latest`}
        </Tile>
        <Tile name="Due" value={formatMoney(earnings.matured)}>
          {carriedBalanceCents < 0
            ? `${formatMoney(-carriedBalanceCents)} is deducted from the next payout`
            : earnings.matured > 0 && 'Paid with the next payout'}
        </Tile>
        <Tile name="Booked" value={formatMoney(earnings.paid)}>
          In <Link to="/payouts">your payouts</Link>, which say what was sent
        </Tile>
      </dl>
      <dl className="tiles tiles-small" aria-label="From click to purchase">
        <Tile name="Clicks" value={formatCount(funnel.clicks)} />
        <Tile name="Installs" value={formatCount(funnel.installs)} />
        <Tile name="Paying users" value={formatCount(funnel.paid)} />
      </dl>
    </>
  );
}

/** The tiles before their numbers are known. They take the same place, so that nothing below them moves. */
function NoSums() {
  return (
    <>
      <p className="spoken" role="status">
        Loading your earnings …
      </p>
      <dl className="tiles" aria-hidden="true">
        {SUMS.map((name) => (
          <Tile key={name} name={name} value="…" isFirst={name === 'Next'} />
        ))}
      </dl>
      <dl className="tiles tiles-small" aria-hidden="true">
        {COUNTS.map((name) => (
          <Tile key={name} name={name} value="…" />
        ))}
      </dl>
    </>
  );
}

export function EarningsPage({ creator }: { readonly creator: Creator }) {
  const overview = useQuery({
    queryKey: KEYS.overview,
    queryFn: async () => await read(api.GET('/creator/overview')),
    refetchInterval: OVERVIEW_MS,
  });
  return (
    <>
      <PageHead title="Your earnings">What your links and codes earned with {creator.appName}.</PageHead>
      <Stack gap="xl">
        {creator.payoutsUnderReview === true && (
          <p role="status">
            Your payouts are under review. You go on to earn, and what is due is kept. Ask {creator.appName}{' '}
            if you have questions.
          </p>
        )}
        <ShareFirst creator={creator} />
        <div>
          {overview.error !== null && (
            <ErrorBox error={overview.error} retry={() => void overview.refetch()} />
          )}
          {overview.data === undefined ? (
            overview.error === null && <NoSums />
          ) : (
            <Sums overview={overview.data} />
          )}
        </div>
        <EarningsChart />
        <Rules rules={creator.rules} />
        <Payee creator={creator} />
      </Stack>
    </>
  );
}
