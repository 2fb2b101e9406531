import { Text } from '@mantine/core';
import type { ReactNode } from 'react';
import { Link } from 'react-router';
import { api, read } from '../api/client.ts';
import type { Schemas } from '../api/client.ts';
import { formatAgo, formatDate, formatInstant, formatMoney } from '../format.ts';
import { Tag } from '../parts/badges.tsx';
import { DataTable } from '../parts/data-table.tsx';
import type { Column } from '../parts/data-table.tsx';
import { ENTRY_CATEGORIES, MATCH_METHODS } from '../words.ts';
import { ListView, useList } from '../parts/list.tsx';
import type { List } from '../parts/list.tsx';
import { earnedWords, PolicyOfEarning } from './earned.tsx';
import { COMMISSION_STATUSES, MoneyTag } from '../parts/money-state.tsx';

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
  readonly customerUserId?: string;
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

/** Says when the commission can be paid, or was, or since when its money is where the status says. */
function statusHint(row: Commission): string {
  const { dueAt, paidAt, money } = row;
  const since = money?.statedAt ?? paidAt;
  switch (shownStatus(row)) {
    case 'pending':
      return `due ${formatAgo(dueAt)}`;
    case 'matured':
      return `since ${formatDate(dueAt)}`;
    case 'paid':
      return since === null ? '' : formatDate(since);
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

/** Returns what a row is. What undoes a deduction adds, but is no bonus. */
const kindOf = ({ kind, entry }: Commission): string =>
  (entry?.undoesEntryId ?? null) === null ? KINDS[kind] : 'Undo';

/** Says how the user came to the creator, unless a device said so as for most users. */
const matchOf = ({ kind, matchMethod }: Commission): string | null =>
  kind === 'earning' && (matchMethod === 'purchase_code' || matchMethod === 'manual')
    ? `by ${MATCH_METHODS[matchMethod]}`
    : null;

/** Returns how a row belongs to another one of the list, or what it is for. */
function relationOf(row: Commission, relations: Relations): string {
  if (row.entry !== undefined) return wordsOfEntry(row.entry);
  const taken = relations.takenBack.get(row.id);
  if (taken !== undefined)
    return relations.isWhole
      ? `${formatMoney(taken)} by reversals: ${formatMoney(row.amountCents + taken)} remain`
      : `${formatMoney(taken)} by reversals in this list`;
  const earning =
    row.reversesCommissionId === null ? undefined : relations.earnings.get(row.reversesCommissionId);
  return earning === undefined
    ? earnedWords(row)
    : `of ${formatMoney(earning.amountCents)} from ${formatInstant(earning.occurredAt)}`;
}

/** What a row comes from: its relation, the policy of an earning, and how the user came to the creator. */
function Basis({
  appId,
  row,
  relations,
}: {
  readonly appId: string;
  readonly row: Commission;
  readonly relations: Relations;
}) {
  const match = matchOf(row);
  return (
    <span className="wrapped two-lines">
      {relationOf(row, relations)}{' '}
      {row.kind === 'earning' && <PolicyOfEarning appId={appId} policy={row.policy} />}{' '}
      {match !== null && (
        <Text span size="xs" className="quiet">
          {match}
        </Text>
      )}
    </span>
  );
}

const columnsOf = (
  appId: string,
  relations: Relations,
  hasCreator: boolean,
): readonly (Column<Commission> | false)[] => [
  {
    name: 'Time',
    cell: (row) =>
      row.eventId === null ? (
        formatInstant(row.occurredAt)
      ) : (
        <Link to={`/apps/${appId}/events/${row.eventId}`} data-opens-row>
          {formatInstant(row.occurredAt)}
        </Link>
      ),
  },
  { name: 'User', share: 18, dropsAt: 3, isOffPhone: true, cell: (row) => row.customerUserId },
  hasCreator && {
    name: 'Creator',
    share: 24,
    isAbout: true,
    cell: (row) => <Link to={`/apps/${appId}/creators/${row.affiliateId}`}>{row.affiliateName}</Link>,
  },
  {
    name: 'Kind',
    dropsAt: 1,
    cell: (row) => (row.kind === 'earning' ? KINDS.earning : <b>{kindOf(row)}</b>),
  },
  {
    name: 'From',
    share: 44,
    dropsAt: 1,
    isOffPhone: true,
    cell: (row) => <Basis appId={appId} row={row} relations={relations} />,
  },
  {
    name: 'Status',
    cell: (row) => {
      if (row.payoutId !== null)
        return <MoneyTag said={row.money?.state ?? null} to={`/apps/${appId}/payouts/${row.payoutId}`} />;
      const status = shownStatus(row);
      return <Tag tone={COMMISSION_TONES[status]}>{COMMISSION_STATUSES[status]}</Tag>;
    },
  },
  { name: 'Since or due', dropsAt: 2, isOffPhone: true, cell: statusHint },
  { name: 'Amount', kind: 'number', isLead: true, cell: (row) => formatMoney(row.amountCents) },
];

/** Returns the columns of the commissions of an app, of which some can be hidden. */
export const commissionColumns = (appId: string) => columnsOf(appId, relationsOf([], {}), true);

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
      {(rows) => (
        <DataTable
          {...(hasCreator ? { name: 'commissions' } : {})}
          columns={columnsOf(appId, relationsOf(rows, query), hasCreator)}
          rows={rows}
          idOf={({ id }) => id}
        />
      )}
    </ListView>
  );
}
