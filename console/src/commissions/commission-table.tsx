import { Text } from '@mantine/core';
import type { ReactNode } from 'react';
import { Link } from 'react-router';
import { api, read } from '../api/client.ts';
import type { Schemas } from '../api/client.ts';
import { formatAgo, formatInstant, formatMoney } from '../format.ts';
import { Tag } from '../parts/badges.tsx';
import { ENTRY_CATEGORIES, MATCH_METHODS } from '../words.ts';
import { ListView, useList } from '../parts/list.tsx';
import type { List } from '../parts/list.tsx';
import { earnedWords, PolicyOfEarning } from './earned.tsx';
import { COMMISSION_STATUSES } from '../parts/money-state.tsx';

type Commission = Schemas['Commission'];

export const KINDS: Readonly<Record<Commission['kind'], string>> = {
  earning: 'Earning',
  reversal: 'Reversal',
  correction: 'Correction',
  bonus: 'Bonus',
  deduction: 'Deduction',
};
export const COMMISSION_TONES = { pending: 'wait', matured: 'good', paid: 'plain' } as const;

export interface CommissionQuery {
  readonly affiliateId?: string;
  readonly linkId?: string;
  readonly payoutId?: string;
  readonly status?: Commission['status'];
  readonly kind?: Commission['kind'];
  readonly source?: Schemas['Event']['source'];
  readonly from?: number;
  readonly to?: number;
}

/** Reads the commissions that a query selects, page by page. */
export const useCommissions = (appId: string, query: CommissionQuery): List<Commission> =>
  useList(
    ['commissions', appId, query],
    async (cursor) =>
      await read(
        api.GET('/apps/{appId}/commissions', { params: { path: { appId }, query: { ...query, ...cursor } } }),
      ),
    { idOf: ({ id }) => id },
  );

/** Returns the status to show: what can be paid already is due, also in the moment before it is marked so. */
export const shownStatus = ({ status, dueAt }: Pick<Commission, 'status' | 'dueAt'>): Commission['status'] =>
  status === 'pending' && dueAt <= Date.now() ? 'matured' : status;

/** Says when the commission can be paid, or was. */
function statusHint(row: Commission): string {
  const { dueAt, paidAt } = row;
  switch (shownStatus(row)) {
    case 'pending':
      return `due ${formatAgo(dueAt)}`;
    case 'matured':
      return `since ${formatInstant(dueAt)}`;
    case 'paid':
      return paidAt === null ? '' : formatInstant(paidAt);
  }
}

/** Whether a list with an earning has all reversals of it: it is the newest first, and no filter leaves one out. */
const hasAllReversals = ({ status, kind, payoutId, to }: CommissionQuery): boolean =>
  [status, kind, payoutId, to].every((filter) => filter === undefined);

interface Relations {
  /** Whether `takenBack` has everything that was taken back. */
  readonly isWhole: boolean;
  /** What later rows of the list take back of an earning: cents, zero or less. */
  readonly takenBack: ReadonlyMap<string, number>;
  readonly earnings: ReadonlyMap<string, Commission>;
}

function relationsOf(rows: readonly Commission[], query: CommissionQuery): Relations {
  const takenBack = new Map<string, number>();
  for (const { reversesCommissionId: id, amountCents } of rows) {
    if (id !== null) takenBack.set(id, (takenBack.get(id) ?? 0) + amountCents);
  }
  return { isWhole: hasAllReversals(query), takenBack, earnings: new Map(rows.map((row) => [row.id, row])) };
}

/** Returns what a person wrote an entry for, and why. */
const wordsOfEntry = ({ category, reason, undoesEntryId }: NonNullable<Commission['entry']>): string =>
  `${ENTRY_CATEGORIES[category]}${undoesEntryId === null ? '' : ', undone'}: ${reason}`;

/** Says how the user came to the creator, unless a device said so as for most users. */
function Match({ row: { kind, matchMethod } }: { readonly row: Commission }) {
  if (kind !== 'earning' || (matchMethod !== 'purchase_code' && matchMethod !== 'manual')) return null;
  return (
    <Text size="xs" className="quiet">
      by {MATCH_METHODS[matchMethod]}
    </Text>
  );
}

/** Says how a row belongs to another one of the list, or what it is for. */
function Relation({ row, relations }: { readonly row: Commission; readonly relations: Relations }) {
  const earning =
    row.reversesCommissionId === null ? undefined : relations.earnings.get(row.reversesCommissionId);
  const taken = relations.takenBack.get(row.id);
  const text =
    row.entry !== undefined
      ? wordsOfEntry(row.entry)
      : taken !== undefined
        ? relations.isWhole
          ? `${formatMoney(taken)} by reversals: ${formatMoney(row.amountCents + taken)} remain`
          : `${formatMoney(taken)} by reversals in this list`
        : earning !== undefined
          ? `of ${formatMoney(earning.amountCents)} from ${formatInstant(earning.occurredAt)}`
          : row.kind === 'earning'
            ? earnedWords(row)
            : `of an earning that is not in this list`;
  return (
    <Text size="xs" className="quiet">
      {text}
    </Text>
  );
}

function Row({
  row,
  appId,
  relations,
  hasCreator,
}: {
  readonly row: Commission;
  readonly appId: string;
  readonly relations: Relations;
  readonly hasCreator: boolean;
}) {
  return (
    <tr>
      <td>
        {row.eventId === null ? (
          formatInstant(row.occurredAt)
        ) : (
          <Link to={`/apps/${appId}/events/${row.eventId}`}>{formatInstant(row.occurredAt)}</Link>
        )}
        <Text size="xs" className="quiet">
          {row.customerUserId}
        </Text>
      </td>
      {hasCreator && (
        <td>
          <Link to={`/apps/${appId}/creators/${row.affiliateId}`}>{row.affiliateName}</Link>
        </td>
      )}
      <td>
        <Text size="sm" fw={row.kind === 'earning' ? undefined : 600}>
          {KINDS[row.kind]}
        </Text>
        <Relation row={row} relations={relations} />
        {row.kind === 'earning' && <PolicyOfEarning appId={appId} policy={row.policy} />}
        <Match row={row} />
      </td>
      <td>
        {row.payoutId === null ? (
          <Tag tone={COMMISSION_TONES[shownStatus(row)]}>{COMMISSION_STATUSES[shownStatus(row)]}</Tag>
        ) : (
          <Link to={`/apps/${appId}/payouts/${row.payoutId}`}>{COMMISSION_STATUSES[row.status]}</Link>
        )}
        <Text size="xs" className="quiet">
          {statusHint(row)}
        </Text>
      </td>
      <td className="number lead">{formatMoney(row.amountCents)}</td>
    </tr>
  );
}

/** Commissions with what belongs together, and their status in words. */
export function CommissionTable({
  appId,
  list,
  query,
  isFiltered = false,
  onClearFilters = () => {},
  hasCreator = false,
  nothingYet = 'A commission appears here within seconds of a payment by a user whom a creator brought.',
}: {
  readonly appId: string;
  readonly list: List<Commission>;
  /** What the list selects. */
  readonly query: CommissionQuery;
  readonly isFiltered?: boolean;
  readonly onClearFilters?: () => void;
  readonly hasCreator?: boolean;
  readonly nothingYet?: ReactNode;
}) {
  return (
    <ListView
      list={list}
      what="commissions"
      isFiltered={isFiltered}
      onClearFilters={onClearFilters}
      nothingYet={nothingYet}
    >
      {(rows) => {
        const relations = relationsOf(rows, query);
        return (
          <table className="rows">
            <thead>
              <tr>
                <th scope="col">Time</th>
                {hasCreator && <th scope="col">Creator</th>}
                <th scope="col">Kind</th>
                <th scope="col">Status</th>
                <th scope="col" className="number">
                  Amount
                </th>
              </tr>
            </thead>
            <tbody>
              {rows.map((row) => (
                <Row key={row.id} row={row} appId={appId} relations={relations} hasCreator={hasCreator} />
              ))}
            </tbody>
          </table>
        );
      }}
    </ListView>
  );
}
