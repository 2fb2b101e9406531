import { Stack, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Link, useParams } from 'react-router';
import { api, Problem, read } from '../api/client.ts';
import type { Schemas } from '../api/client.ts';
import { formatCount, formatMoney } from '../format.ts';
import { Section } from '../lists.tsx';
import { ErrorBox, NoPermission, PageHead, Waiting } from '../parts.tsx';
import { Figures } from '../parts/figures.tsx';
import { usePermission } from '../session.ts';

type Overview = Schemas['AppOverview'];

/** How often sums are read again while the page is shown, ms. */
const OVERVIEW_MS = 15_000;

const percent = new Intl.NumberFormat(undefined, { style: 'percent', maximumFractionDigits: 1 });

/** Says which part of the step before came this far. */
const rate = (part: number, of: number, step: string): string | undefined =>
  of === 0 ? undefined : `${percent.format(part / of)} of ${step}`;

function Funnel({ funnel: { clicks, installs, identified, paid } }: Pick<Overview, 'funnel'>) {
  return (
    <Figures
      figures={[
        { name: 'Clicks', value: formatCount(clicks) },
        { name: 'Installs', value: formatCount(installs), hint: rate(installs, clicks, 'clicks') },
        { name: 'Users', value: formatCount(identified), hint: rate(identified, installs, 'installs') },
        { name: 'Paying users', value: formatCount(paid), hint: rate(paid, identified, 'users') },
      ]}
    />
  );
}

function Money({
  appId,
  overview: { revenueCents, commissions },
}: {
  readonly appId: string;
  readonly overview: Overview;
}) {
  return (
    <Figures
      figures={[
        { name: 'Revenue', value: formatMoney(revenueCents), hint: 'through creators, net of refunds' },
        { name: 'Held', value: formatMoney(commissions.pending), hint: 'commissions in the hold period' },
        {
          name: 'Due',
          value: formatMoney(commissions.matured),
          hint: <Link to={`/apps/${appId}/payouts`}>Pay creators</Link>,
        },
        { name: 'Paid', value: formatMoney(commissions.paid), hint: 'in payouts' },
      ]}
    />
  );
}

function Leaders({ appId, overview }: { readonly appId: string; readonly overview: Overview }) {
  const creators = overview.affiliates.filter(({ commissionCents }) => commissionCents > 0);
  const links = overview.links.filter(({ clicks }) => clicks > 0);
  return (
    <div className="halves">
      <Section id="top-creators" title="Creators who earned most">
        <div className="surface">
          {creators.length === 0 ? (
            <Text size="sm" className="quiet" p="lg">
              Nobody has earned a commission yet.
            </Text>
          ) : (
            <table className="rows">
              <thead>
                <tr>
                  <th scope="col">Creator</th>
                  <th scope="col" className="number">
                    Earned
                  </th>
                </tr>
              </thead>
              <tbody>
                {creators.map((row) => (
                  <tr key={row.id}>
                    <td>
                      <Link to={`/apps/${appId}/creators/${row.id}`}>{row.name}</Link>
                    </td>
                    <td className="number">{formatMoney(row.commissionCents)}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          )}
        </div>
      </Section>
      <Section id="top-links" title="Links with the most clicks">
        <div className="surface">
          {links.length === 0 ? (
            <Text size="sm" className="quiet" p="lg">
              No link was clicked yet.
            </Text>
          ) : (
            <table className="rows">
              <thead>
                <tr>
                  <th scope="col">Link</th>
                  <th scope="col" className="number">
                    Clicks
                  </th>
                </tr>
              </thead>
              <tbody>
                {links.map((row) => (
                  <tr key={row.id}>
                    <td>
                      <Link to={`/apps/${appId}/links?q=${encodeURIComponent(row.slug)}`}>{row.slug}</Link>
                      <Text size="xs" className="quiet">
                        {row.affiliateName}
                      </Text>
                    </td>
                    <td className="number">{formatCount(row.clicks)}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          )}
        </div>
      </Section>
    </div>
  );
}

export default function OverviewPage() {
  const { appId = '' } = useParams();
  const canRead = usePermission('read');
  const overview = useQuery({
    queryKey: ['overview', appId],
    queryFn: async () => await read(api.GET('/apps/{appId}/overview', { params: { path: { appId } } })),
    enabled: canRead,
    refetchInterval: OVERVIEW_MS,
  });
  const content = () => {
    if (!canRead) return <NoPermission permission="read" what="the overview" />;
    if (overview.error instanceof Problem && overview.error.status === 404)
      return <Text size="sm">There is no such app in your account.</Text>;
    if (overview.error !== null)
      return <ErrorBox error={overview.error} retry={() => void overview.refetch()} />;
    if (overview.data === undefined) return <Waiting what="the overview" />;
    return (
      <Stack gap="xl">
        {overview.data.funnel.clicks === 0 && overview.data.funnel.installs === 0 && (
          <Text size="sm">
            Nothing was counted yet. <Link to={`/apps/${appId}/setup`}>Go on with the set-up</Link>
          </Text>
        )}
        <Section id="funnel" title="From click to payment">
          <Funnel funnel={overview.data.funnel} />
        </Section>
        <Section id="money" title="Money">
          <Money appId={appId} overview={overview.data} />
        </Section>
        <Leaders appId={appId} overview={overview.data} />
      </Stack>
    );
  };
  return (
    <>
      <PageHead title="Overview">What creators brought, since the beginning.</PageHead>
      {content()}
    </>
  );
}
