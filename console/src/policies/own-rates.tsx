import { Text } from '@mantine/core';
import { Fragment } from 'react';
import { Link } from 'react-router';
import type { Schemas } from '../api/client.ts';
import { formatRate } from '../format.ts';
import './policies.css';

export type OwnRate = Schemas['AssignedPolicy']['ownRates'][number];

/** The service names at most this many. */
const MOST_NAMED = 20;

/** Says whom the policy of the app or a group does not reach, because their own rate goes before it. */
export function OwnRates({ appId, rates }: { readonly appId: string; readonly rates: readonly OwnRate[] }) {
  return (
    <div className="notice" role="status">
      <Text size="sm" fw={600} mb={4}>
        Creators with an own rate keep it
      </Text>
      <Text size="sm">
        {rates.map(({ affiliateId, affiliateName, rateBps }, index) => (
          <Fragment key={affiliateId}>
            {index > 0 && ', '}
            <Link to={`/apps/${appId}/creators/${affiliateId}`}>{affiliateName}</Link> {formatRate(rateBps)}
          </Fragment>
        ))}
        {rates.length >= MOST_NAMED && ', and perhaps others'}.
      </Text>
      <Text size="sm" mt={6}>
        An own rate goes before the policies of groups and the app. To let a creator earn by the policy,
        remove the own rate on the creator’s page, or assign the policy to the creator.
      </Text>
    </div>
  );
}
