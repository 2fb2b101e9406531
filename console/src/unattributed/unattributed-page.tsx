import { Button, Stack, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { Link, useParams } from 'react-router';
import { api, given, read } from '../api/client.ts';
import type { Schemas } from '../api/client.ts';
import { AttributeDialog } from '../attributions/attribute-dialog.tsx';
import { PAYERS, paymentToAttribute } from '../attributions/queries.ts';
import type { UnattributedPayment } from '../attributions/queries.ts';
import { atLeast, formatAgo, formatCount, formatInstant, formatMoney } from '../format.ts';
import { waitText } from '../events/outcome.tsx';
import { ErrorBox, NoPermission, Waiting } from '../parts.tsx';
import { Section } from '../lists.tsx';
import { Tag } from '../parts/badges.tsx';
import { FilterBar } from '../parts/filter-bar.tsx';
import { choiceFilter, rangeFilter, textFilter } from '../parts/filter-kinds.ts';
import { oneOf, RANGE_FILTERS, useFilters, useRange } from '../parts/filters.ts';
import type { Filters } from '../parts/filters.ts';
import { ColumnsButton } from '../parts/columns-button.tsx';
import { DataTable } from '../parts/data-table.tsx';
import type { Column } from '../parts/data-table.tsx';
import { HeadAside } from '../parts/head-aside.tsx';
import { ListView, useList } from '../parts/list.tsx';
import { ViewsButton } from '../parts/views-button.tsx';
import { usePermission } from '../session.ts';
import { CAUSES, EVENT_KINDS, OUTCOMES, PROVIDERS } from '../words.ts';

type Row = Schemas['UnattributedEvent'];
type Cause = Schemas['UnattributedCause'];

const HEALING = {
  when_fixed: ['wait', 'Can still earn'],
  automatically: ['good', 'Will be evaluated again'],
  never: ['plain', 'Earns nothing'],
} as const;
/** Sales that came through no creator: nothing is wrong with them. */
const ORGANIC = ['plain', 'Organic'] as const;
const isOrganic = ({ likelyCause }: Cause) => likelyCause === 'user_not_attributed';

const SUMMARY_MS = 15_000;

function CauseRow({ row, filters }: { readonly row: Cause; readonly filters: Filters }) {
  const isSettled = row.settledCount === row.count;
  const [tone, text] = isOrganic(row) ? ORGANIC : HEALING[isSettled ? 'never' : row.heals];
  const isChosen = filters.get('cause') === row.likelyCause;
  return (
    <tr aria-selected={isChosen}>
      <td>
        <Text size="sm" fw={600}>
          {CAUSES[row.likelyCause]}
        </Text>
        <Text size="sm" className="quiet" mt={2} maw={560}>
          {row.explanation}
        </Text>
        {row.settledCount > 0 && (
          <Text size="sm" className="quiet" mt={2} maw={560}>
            {atLeast(formatCount(row.settledCount), row.truncated)} of these payments{' '}
            {row.settledCount === 1 ? 'is' : 'are'} from before a manual attribution of the customer and{' '}
            {row.settledCount === 1 ? 'stays' : 'stay'} without a commission.
          </Text>
        )}
      </td>
      <td>
        <Tag tone={tone}>{text}</Tag>
      </td>
      <td className="number" data-name="Payments">
        {atLeast(formatCount(row.count), row.truncated)}
      </td>
      <td className="number lead" data-name="Money">
        {row.unknownCount === row.count ? (
          <span className="quiet">unknown</span>
        ) : (
          atLeast(formatMoney(row.amountCents), row.truncated)
        )}
        {row.unknownCount > 0 && row.unknownCount < row.count && (
          <Text size="xs" className="quiet">
            and {atLeast(formatCount(row.unknownCount), row.truncated)} without a known price
          </Text>
        )}
      </td>
      <td className="number">
        <Button
          variant={isChosen ? 'light' : 'default'}
          size="compact-sm"
          aria-pressed={isChosen}
          aria-label={`Show only: ${CAUSES[row.likelyCause]}`}
          onClick={() => filters.set({ cause: isChosen ? '' : row.likelyCause })}
        >
          {isChosen ? 'Shown' : 'Show'}
        </Button>
      </td>
    </tr>
  );
}

function Causes({
  appId,
  filters,
  range,
}: {
  readonly appId: string;
  readonly filters: Filters;
  readonly range: { readonly from?: number; readonly to?: number };
}) {
  const summary = useQuery({
    queryKey: ['unattributed-summary', appId, range],
    queryFn: async () =>
      await read(
        api.GET('/apps/{appId}/diagnostics/unattributed/summary', {
          params: { path: { appId }, query: range },
        }),
      ),
    refetchInterval: SUMMARY_MS,
  });
  if (summary.data === undefined) {
    return summary.error === null ? (
      <Waiting what="the causes" />
    ) : (
      <ErrorBox error={summary.error} retry={() => void summary.refetch()} />
    );
  }
  // What can be changed comes first.
  const causes = summary.data.causes.toSorted((a, b) => Number(isOrganic(a)) - Number(isOrganic(b)));
  return (
    <div className="surface">
      {causes.length === 0 ? (
        <Stack gap={4} p="xl">
          <Text fw={600}>No payment of this range is without a commission</Text>
          <Text size="sm" className="quiet">
            A payment without a commission appears here with its cause, within seconds.
          </Text>
        </Stack>
      ) : (
        <table className="rows">
          <thead>
            <tr>
              <th scope="col">Cause and what to do</th>
              <th scope="col">These payments</th>
              <th scope="col" className="number">
                Payments
              </th>
              <th scope="col" className="number">
                Money
              </th>
              <th scope="col">
                <span className="spoken">Actions</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {causes.map((row) => (
              <CauseRow key={row.likelyCause} row={row} filters={filters} />
            ))}
          </tbody>
        </table>
      )}
    </div>
  );
}

function AttributeButton({
  row,
  onAttribute,
}: {
  readonly row: Row;
  readonly onAttribute: (payment: UnattributedPayment) => void;
}) {
  const canWrite = usePermission('write');
  const payment = paymentToAttribute({ ...row, cause: row.likelyCause });
  return (
    payment !== null && (
      <Button
        variant="default"
        size="compact-sm"
        disabled={!canWrite}
        aria-label={`Attribute ${payment.customerUserId}, paid ${formatInstant(row.occurredAt)}`}
        onClick={() => onAttribute(payment)}
      >
        Attribute …
      </Button>
    )
  );
}

const columnsOf = (
  appId: string,
  onAttribute: (payment: UnattributedPayment) => void,
): readonly Column<Row>[] => [
  {
    name: 'Paid',
    cell: (row) => <span title={formatInstant(row.occurredAt)}>{formatAgo(row.occurredAt)}</span>,
  },
  { name: 'Provider', dropsAt: 2, isOffPhone: true, cell: (row) => PROVIDERS[row.source] },
  {
    name: 'Event',
    share: 16,
    isAbout: true,
    cell: (row) => <Link to={`/apps/${appId}/events/${row.eventId}`}>{EVENT_KINDS[row.kind]}</Link>,
  },
  {
    name: 'User',
    share: 22,
    cell: (row) =>
      row.customerUserId ?? (
        <span className="quiet">
          {row.attributableKey === undefined ? 'none' : `none (${PAYERS[row.attributableKey.standsFor]})`}
        </span>
      ),
  },
  {
    name: 'Amount',
    kind: 'number',
    isLead: true,
    cell: (row) =>
      row.amountCents === null ? <span className="quiet">unknown</span> : formatMoney(row.amountCents),
  },
  {
    name: 'Cause',
    share: 30,
    dropsAt: 1,
    cell: (row) =>
      row.waitsUntil === undefined ? (
        CAUSES[row.likelyCause]
      ) : (
        <>
          <Tag tone="wait">{OUTCOMES.waiting}</Tag>{' '}
          <span className="quiet" title={row.explanation}>
            {waitText(row.waitsUntil)}
          </span>
        </>
      ),
  },
  {
    name: 'Actions',
    kind: 'actions',
    cell: (row) => <AttributeButton row={row} onAttribute={onAttribute} />,
  },
];

const USER = textFilter('user', 'User id', 'User id, exactly as reported');
const KINDS = [
  rangeFilter('Paid', '30d'),
  choiceFilter('cause', 'Cause', CAUSES),
  choiceFilter('source', 'Provider', PROVIDERS),
];

function Payments({
  appId,
  filters,
  range,
}: {
  readonly appId: string;
  readonly filters: Filters;
  readonly range: { readonly from?: number; readonly to?: number };
}) {
  const [attributing, setAttributing] = useState<UnattributedPayment | null>(null);
  const likelyCause = oneOf(Object.keys(CAUSES) as Row['likelyCause'][], filters.get('cause'));
  const source = oneOf(Object.keys(PROVIDERS) as Row['source'][], filters.get('source'));
  const customerUserId = filters.get('user');
  const query = {
    ...range,
    ...given({ likelyCause, source, customerUserId }),
  };
  const list = useList(
    ['unattributed', appId, query],
    async (cursor) =>
      await read(
        api.GET('/apps/{appId}/diagnostics/unattributed', {
          params: { path: { appId }, query: { ...query, ...cursor } },
        }),
      ),
    { idOf: ({ eventId }) => eventId },
  );
  return (
    <>
      <ListView
        list={list}
        what="payments"
        {...(filters.isEmpty
          ? {
              nothing: (
                <Text size="sm" className="quiet" p="xl">
                  Nothing is left to explain.
                </Text>
              ),
            }
          : { isFiltered: true, onClearFilters: filters.clear, nothingYet: '' })}
      >
        {(rows) => (
          <DataTable
            name="unattributed"
            columns={columnsOf(appId, setAttributing)}
            rows={rows}
            idOf={({ eventId }) => eventId}
          />
        )}
      </ListView>
      <AttributeDialog appId={appId} payment={attributing} onClose={() => setAttributing(null)} />
    </>
  );
}

function Unattributed({ appId }: { readonly appId: string }) {
  const filters = useFilters('cause', 'source', 'user', ...RANGE_FILTERS);
  const range = useRange(filters, '30d');
  return (
    <Stack gap="xl">
      <div>
        <FilterBar
          filters={filters}
          lead={USER}
          kinds={KINDS}
          aside={
            <>
              <ViewsButton list="unattributed" appId={appId} filters={filters} />
              <ColumnsButton table="unattributed" columns={columnsOf(appId, () => {})} />
            </>
          }
        />
        <Section id="causes" title="By cause" hint="All payments of the range, of any provider and user.">
          <Causes appId={appId} filters={filters} range={range} />
        </Section>
      </div>
      <Section id="payments" title="Payments">
        <Payments appId={appId} filters={filters} range={range} />
      </Section>
    </Stack>
  );
}

export default function UnattributedPage() {
  const { appId = '' } = useParams();
  const canRead = usePermission('read');
  return (
    <>
      <HeadAside>
        <Button
          component={Link}
          to={`/apps/${appId}/unattributed/manual`}
          variant="default"
          size="compact-sm"
        >
          Manual attributions
        </Button>
      </HeadAside>
      {canRead ? (
        <Unattributed key={appId} appId={appId} />
      ) : (
        <NoPermission permission="read" what="payments" />
      )}
    </>
  );
}
