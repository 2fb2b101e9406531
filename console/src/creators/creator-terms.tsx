import { Button, Group, Stack, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { Link } from 'react-router';
import { api, read } from '../api/client.ts';
import type { Schemas } from '../api/client.ts';
import { formatInstant, formatRate } from '../format.ts';
import { MoveDialog } from '../groups/move-dialog.tsx';
import { Section } from '../lists.tsx';
import { ErrorBox, Waiting } from '../parts.tsx';
import { AssignDialog } from '../policies/assign-dialog.tsx';
import { sinceOrFrom } from '../policies/effective.tsx';
import { useRefreshAt } from '../policies/queries.ts';
import { Sentences } from '../policies/terms.tsx';
import { usePermission } from '../session.ts';

type Terms = Schemas['CreatorTerms'];
type Earns = Pick<Terms, 'source' | 'rateBps' | 'policy'>;
type Creator = Pick<Schemas['ListedAffiliate'], 'id' | 'name' | 'defaultCommissionRateBps'>;

/** What tells the terms of two times apart. */
const identityOf = ({ source, rateBps, policy }: Earns) =>
  JSON.stringify([source, rateBps, policy?.policyVersionId, policy?.scope]);

/** Returns the later terms that differ from those before. An instant may also change what does not count for the creator. */
const changesOf = (terms: Terms) =>
  terms.upcoming.filter((next, index, all) => identityOf(next) !== identityOf(all[index - 1] ?? terms));

/** Says where the terms of a creator are from. */
function Source({ appId, earns }: { readonly appId: string; readonly earns: Earns }) {
  if (earns.source === 'affiliate') return 'The creator’s own rate.';
  if (earns.policy === null)
    return (
      <>
        The commission of the <Link to={`/apps/${appId}/settings`}>settings</Link>.
      </>
    );
  const { scope, policyId, policyName, version } = earns.policy;
  return (
    <>
      The policy <Link to={`/apps/${appId}/policies/${policyId}`}>{policyName}</Link>, version {version},{' '}
      {{ affiliate: 'of this creator', group: 'of the group', app: 'of the app' }[scope]}.
    </>
  );
}

/** What a creator earns, in sentences, and why. */
function Earning({ appId, earns }: { readonly appId: string; readonly earns: Earns }) {
  return (
    <>
      <Sentences
        sentences={
          earns.policy?.sentences ?? [`${formatRate(earns.rateBps ?? 0)} of the price for each payment.`]
        }
      />
      <Text size="xs" className="quiet" mt={4}>
        <Source appId={appId} earns={earns} />
      </Text>
    </>
  );
}

/** How a creator earns now and later, with the changes that a founder can make. */
export function CreatorTerms({ appId, creator }: { readonly appId: string; readonly creator: Creator }) {
  const canWrite = usePermission('write');
  const [open, setOpen] = useState<'assign' | 'move' | null>(null);
  const close = () => setOpen(null);
  const terms = useQuery({
    // The own rate is a part of the terms.
    queryKey: ['terms', appId, creator.id, creator.defaultCommissionRateBps],
    queryFn: async () =>
      await read(
        api.GET('/apps/{appId}/affiliates/{affiliateId}/terms', {
          params: { path: { appId, affiliateId: creator.id } },
        }),
      ),
  });
  useRefreshAt(appId, terms.data?.upcoming.map(({ from }) => from) ?? []);
  const { data } = terms;
  return (
    <Section
      id="terms"
      title="How this creator earns"
      aside={
        <Group gap="xs">
          <Button variant="default" size="xs" disabled={!canWrite} onClick={() => setOpen('assign')}>
            Assign a policy
          </Button>
          <Button variant="default" size="xs" disabled={!canWrite} onClick={() => setOpen('move')}>
            Move to a group
          </Button>
        </Group>
      }
    >
      {terms.error !== null && <ErrorBox error={terms.error} retry={() => void terms.refetch()} />}
      {data === undefined && terms.error === null && <Waiting what="the terms" />}
      {data !== undefined && (
        <Stack className="surface" gap="md" p="lg">
          <div>
            <Earning appId={appId} earns={data} />
          </div>
          {changesOf(data).map(({ from, ...earns }) => (
            <div key={from} className="next" style={{ marginTop: 0 }}>
              <Text size="xs" fw={600} className="quiet">
                From {formatInstant(from)}
              </Text>
              <Earning appId={appId} earns={earns} />
            </div>
          ))}
          <Text size="sm" className="quiet">
            {data.group === null ? (
              'In no group.'
            ) : (
              <>
                In the group{' '}
                <Link to={`/apps/${appId}/policies/groups/${data.group.id}`}>{data.group.name}</Link>{' '}
                {sinceOrFrom(data.group.memberFrom)}.
              </>
            )}
            {data.nextGroup !== null && (
              <>
                {' '}
                From {formatInstant(data.nextGroup.memberFrom)}{' '}
                {data.nextGroup.id === null ? (
                  'in none'
                ) : (
                  <>
                    in the group{' '}
                    <Link to={`/apps/${appId}/policies/groups/${data.nextGroup.id}`}>
                      {data.nextGroup.name}
                    </Link>
                  </>
                )}
                .
              </>
            )}
          </Text>
        </Stack>
      )}
      <AssignDialog
        appId={appId}
        scope={{ kind: 'affiliate', id: creator.id, name: creator.name }}
        isOpen={open === 'assign'}
        onClose={close}
      />
      <MoveDialog appId={appId} creator={creator} isOpen={open === 'move'} onClose={close} />
    </Section>
  );
}
