import { Button, Group, Stack, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { Link, useParams } from 'react-router';
import { api, Problem, read } from '../api/client.ts';
import type { Schemas } from '../api/client.ts';
import { Codes } from '../codes/codes.tsx';
import { CommissionTable, useCommissions } from '../commissions/commission-table.tsx';
import { formatAgo, formatCountOf, formatInstant, formatMoney, formatRate } from '../format.ts';
import { LinkTable } from '../links/link-table.tsx';
import { NewLinkDialog } from '../links/new-link.tsx';
import { ErrorBox, NoPermission, PageHead, Waiting } from '../parts.tsx';
import { Loaded } from '../parts/loaded.tsx';
import { Tag } from '../parts/badges.tsx';
import { Figures } from '../parts/figures.tsx';
import { Section } from '../lists.tsx';
import { PayoutHistory } from '../payouts/payout-history.tsx';
import { IS_NEW } from '../shortcuts/use-shortcuts.ts';
import { usePermission } from '../session.ts';
import { CreatorActions } from './creator-actions.tsx';
import { CreatorNotes } from './creator-notes.tsx';
import { CreatorSeries } from './creator-series.tsx';
import { CreatorTerms } from './creator-terms.tsx';
import { Initials } from './initials.tsx';
import { PayButton, PayCreator } from './pay-creator.tsx';
import type { OnPay } from './pay-creator.tsx';
import { Payee } from './payee.tsx';
import { PayoutBlockDialog, PayoutBlockHistory, PayoutBlockNotice } from './payout-block.tsx';
import { Entries } from './entries.tsx';
import { CREATOR_STATUSES, CREATOR_TONES } from './creators-page.tsx';

type Creator = Schemas['ListedAffiliate'];

interface CreatorProps {
  readonly appId: string;
  readonly creator: Creator;
  /** Null while a payment waits for its answer. */
  readonly onPay: OnPay | null;
}

/** Whether an instant is in the future. An earning that is due and not paid yet has a due date in the past. */
const isAhead = (at: number | null): at is number => at !== null && at > Date.now();

function Money({ appId, creator, onPay }: CreatorProps) {
  const affiliateId = creator.id;
  const overview = useQuery({
    queryKey: ['creator', appId, affiliateId, 'overview'],
    queryFn: async () =>
      await read(
        api.GET('/apps/{appId}/affiliates/{affiliateId}/overview', {
          params: { path: { appId, affiliateId } },
        }),
      ),
  });
  if (overview.error !== null)
    return <ErrorBox error={overview.error} retry={() => void overview.refetch()} />;
  if (overview.data === undefined) return <Waiting what="the sums" />;
  const { earnings, funnel, nextDueAt, carriedBalanceCents } = overview.data;
  return (
    <Stack gap="sm">
      <Figures
        figures={[
          { name: 'Earned', value: formatMoney(earnings.lifetime), hint: 'net of refunds' },
          {
            name: 'Held',
            value: formatMoney(earnings.pending),
            hint: isAhead(nextDueAt) ? `next due ${formatAgo(nextDueAt)}` : undefined,
          },
          {
            name: 'Due',
            value: formatMoney(earnings.matured),
            hint:
              carriedBalanceCents < 0
                ? `${formatMoney(-carriedBalanceCents)} are deducted from the next payout`
                : creator.payoutBlock === undefined &&
                  onPay !== null && <PayButton appId={appId} affiliateId={affiliateId} onPay={onPay} />,
          },
          { name: 'Booked', value: formatMoney(earnings.paid) },
        ]}
      />
      <Text size="sm" className="quiet">
        {formatCountOf(funnel.clicks, 'click')}, {formatCountOf(funnel.installs, 'install')},{' '}
        {formatCountOf(funnel.identified, 'user')} of the app, {formatCountOf(funnel.paid, 'paying user')}.
      </Text>
    </Stack>
  );
}

/** How many commissions are shown at first. */
const SHOWN = 10;

function CreatorView({ appId, creator, onPay }: CreatorProps) {
  const canWrite = usePermission('write');
  const canInvite = usePermission('setup');
  const [isLinking, setIsLinking] = useState(false);
  const [isLifting, setIsLifting] = useState(false);
  const query = { affiliateId: creator.id, limit: SHOWN };
  const commissions = useCommissions(appId, query);
  const { status } = creator;
  return (
    <Stack gap="xl">
      <Group gap="xs">
        <Tag tone={CREATOR_TONES[status]}>{CREATOR_STATUSES[status]}</Tag>
        <Text size="sm" className="quiet">
          {creator.email ?? 'No e-mail address'} ·{' '}
          {creator.defaultCommissionRateBps === null
            ? 'no own rate'
            : `own rate of ${formatRate(creator.defaultCommissionRateBps)}`}{' '}
          · since {formatInstant(creator.createdAt)}
        </Text>
        {!canWrite && (
          <Text size="sm" className="quiet">
            Changes need the permission “write”, which you do not have.
          </Text>
        )}
        {!canInvite && (
          <Text size="sm" className="quiet">
            Invite links need the permission “setup”, which you do not have.
          </Text>
        )}
      </Group>
      <PayoutBlockNotice creator={creator} onLift={() => setIsLifting(true)} />
      <Money appId={appId} creator={creator} onPay={onPay} />
      <CreatorSeries appId={appId} affiliateId={creator.id} />
      <div className="main-and-side">
        <Stack gap="xl">
          <Section
            id="links"
            title="Links"
            aside={
              <Button
                {...IS_NEW}
                variant="default"
                size="xs"
                disabled={!canWrite}
                onClick={() => setIsLinking(true)}
              >
                New link
              </Button>
            }
          >
            <LinkTable appId={appId} query={{ affiliateId: creator.id }} />
          </Section>
          <Codes appId={appId} creator={creator} />
          <Section
            id="commissions"
            title="Commissions"
            aside={
              <Link className="more" to={`/apps/${appId}/commissions?creator=${creator.id}`}>
                All, with filters
              </Link>
            }
          >
            <CommissionTable appId={appId} list={commissions} query={query} />
          </Section>
          <Entries appId={appId} creator={creator} />
          <Section id="payouts" title="Payouts">
            <PayoutHistory appId={appId} affiliateId={creator.id} />
          </Section>
        </Stack>
        <Stack gap="xl">
          <CreatorTerms appId={appId} creator={creator} />
          <Payee appId={appId} creator={creator} />
          <CreatorNotes appId={appId} creator={creator} />
          <PayoutBlockHistory appId={appId} affiliateId={creator.id} />
        </Stack>
      </div>
      <NewLinkDialog appId={appId} creator={creator} isOpen={isLinking} onClose={() => setIsLinking(false)} />
      <PayoutBlockDialog
        appId={appId}
        creator={creator}
        state={isLifting ? 'lifted' : null}
        onClose={() => setIsLifting(false)}
      />
    </Stack>
  );
}

export default function CreatorPage() {
  const { appId = '', affiliateId = '' } = useParams();
  const canRead = usePermission('read');
  const creator = useQuery({
    queryKey: ['creator', appId, affiliateId],
    queryFn: async () =>
      await read(
        api.GET('/apps/{appId}/affiliates/{affiliateId}', { params: { path: { appId, affiliateId } } }),
      ),
    enabled: canRead,
  });
  const content = (onPay: OnPay | null) => {
    if (!canRead) return <NoPermission permission="read" what="creators" />;
    if (creator.error instanceof Problem && creator.error.status === 404)
      return <Text size="sm">There is no such creator in this app.</Text>;
    return (
      <Loaded reading={creator} what="the creator">
        {(loaded) => <CreatorView key={loaded.id} appId={appId} creator={loaded} onPay={onPay} />}
      </Loaded>
    );
  };
  return (
    <>
      <Text size="sm" mb={6}>
        <Link to={`/apps/${appId}/creators`}>All creators</Link>
      </Text>
      <PageHead
        title={creator.data?.name ?? 'Creator'}
        {...(creator.data === undefined
          ? {}
          : {
              mark: <Initials name={creator.data.name} />,
              aside: <CreatorActions key={creator.data.id} appId={appId} creator={creator.data} />,
            })}
      />
      <PayCreator key={affiliateId} appId={appId} affiliateId={affiliateId}>
        {content}
      </PayCreator>
    </>
  );
}
