import { Text } from '@mantine/core';
import { Link } from 'react-router';
import type { Schemas } from '../api/client.ts';
import { formatMoney, formatRate } from '../format.ts';

type Policy = Schemas['CommissionPolicy'];
type Amount = Pick<Schemas['Commission'], 'rateBps' | 'baseCents'>;

/** What a rate applies to, behind the amount. The price of a payment needs no word. */
const BASES: Readonly<Record<Policy['base'], string>> = {
  gross: '',
  net_of_tax: ' without tax',
  proceeds: ' proceeds',
};

/** Returns what an earning was computed from: "50 % of $6.59 proceeds (estimated)", or "Fixed amount of $15.00". */
export function earnedWords({
  rateBps,
  baseCents,
  policy,
}: Amount & { readonly policy?: Pick<Policy, 'base' | 'baseEstimated' | 'flatCents'> }): string {
  if (policy === undefined) return `${formatRate(rateBps)} of ${formatMoney(baseCents)}`;
  const { base, baseEstimated, flatCents } = policy;
  if (flatCents !== undefined) return `Fixed amount of ${formatMoney(flatCents)}`;
  return `${formatRate(rateBps)} of ${formatMoney(baseCents)}${BASES[base]}${baseEstimated ? ' (estimated)' : ''}`;
}

/** The policy of an earning, with a link to its page. Nothing for another rate. */
export function PolicyOfEarning({
  appId,
  policy,
}: {
  readonly appId: string;
  readonly policy: Policy | undefined;
}) {
  if (policy === undefined) return null;
  const { policyId, name, version } = policy;
  return (
    <Text span size="xs" className="quiet">
      <Link to={`/apps/${appId}/policies/${policyId}`}>{name}</Link>, version {version}
    </Text>
  );
}
