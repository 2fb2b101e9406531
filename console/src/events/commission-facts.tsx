import type { ReactNode } from 'react';
import { Link } from 'react-router';
import type { Schemas } from '../api/client.ts';
import { earnedWords } from '../commissions/earned.tsx';
import { formatInstant, formatMoney } from '../format.ts';

type Row = Schemas['WriteCommissionStep']['facts']['commissions'][number];
type Component = NonNullable<Schemas['PolicyInputs']['tax']>;

export type Fact = readonly [string, ReactNode];

const KINDS: Readonly<Record<Row['kind'], string>> = {
  earning: 'Earned',
  reversal: 'Taken back',
  correction: 'Corrected',
};

const ORIGINS: Readonly<Record<Component['origin'], string>> = {
  stated: 'stated by the provider',
  estimated: 'estimated by the provider',
  assumed: 'assumed by the policy',
};

const SCOPES: Readonly<Record<NonNullable<Row['policyScope']>, string>> = {
  affiliate: 'the creator alone',
  group: 'the creator’s group',
  app: 'the app',
};

/** Returns what a base leaves out, in words. Null if it leaves nothing out. */
function componentWords(component: Component | null, currency: string | null): string | null {
  if (component === null) return null;
  const amount = currency === null ? String(component.minor) : formatMoney(component.minor, currency);
  return `${amount}, ${ORIGINS[component.origin]}`;
}

/** Returns the rule of a policy that gave an amount, and what it was computed from. */
function factsOfPolicy(
  { policy, policyScope, policyInputs }: Row,
  appId: string,
  currency: string | null,
): Fact[] {
  if (policy === undefined) return [];
  const rule = [
    'By',
    <>
      rule {policy.ruleIndex + 1} of{' '}
      <Link to={`/apps/${appId}/policies/${policy.policyId}`}>{policy.name}</Link>, version {policy.version}
      {policyScope !== undefined && `, the policy of ${SCOPES[policyScope]}`}
    </>,
  ] as const;
  if (policyInputs === undefined) return [rule];
  const { tax, storeFee, paymentNumber, monthsSinceFirst } = policyInputs;
  return [
    rule,
    ['Tax taken off', componentWords(tax, currency)],
    ['Store fee taken off', componentWords(storeFee, currency)],
    ['Of the customer', `payment ${paymentNumber}, in month ${monthsSinceFirst + 1}`],
  ];
}

/** Returns the rows of the ledger that an event has, each with what it was computed from. */
export function commissionFacts(rows: readonly Row[], appId: string, currency: string | null): Fact[] {
  return rows.flatMap((row) => [
    [
      KINDS[row.kind],
      `${formatMoney(row.amountCents)}: ${earnedWords(row)}, ${
        row.status === 'paid' ? 'booked' : `due ${formatInstant(row.dueAt)}`
      }`,
    ] as const,
    ...(row.kind === 'earning' ? factsOfPolicy(row, appId, currency) : []),
  ]);
}
