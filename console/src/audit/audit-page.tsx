import { Anchor, Text } from '@mantine/core';
import { Link } from 'react-router';
import { api, AS_CSV, given, read, readCsv } from '../api/client.ts';
import type { Schemas } from '../api/client.ts';
import { useApps } from '../api/queries.ts';
import { formatAgo, formatInstant } from '../format.ts';
import { NoPermission, PageHead } from '../parts.tsx';
import { CsvButton } from '../parts/csv-button.tsx';
import { FilterBar } from '../parts/filter-bar.tsx';
import { choiceFilter, fixedFilter, rangeFilter } from '../parts/filter-kinds.ts';
import { oneOf, RANGE_FILTERS, useFilters, useRange } from '../parts/filters.ts';
import type { Filters } from '../parts/filters.ts';
import { ListView, useList } from '../parts/list.tsx';
import { ViewsButton } from '../parts/views-button.tsx';
import { TermsInWords } from '../policies/terms.tsx';
import { useCurrentSession, usePermission } from '../session.ts';
import {
  ACTIONS,
  ACTORS,
  fieldName,
  fieldValue,
  headingOf,
  nameOf,
  NONE,
  OBJECTS,
  pathOf,
  pathOfId,
} from './words.ts';

type Row = Schemas['AuditRow'];

const keysOf = <K extends string>(texts: Readonly<Record<K, string>>) => Object.keys(texts) as K[];

/** A value of a field. What is named by its id has its name, which leads to its page, and the id beside it. */
function Value({
  row: { appId, names, object },
  field,
  value,
}: {
  readonly row: Row;
  readonly field: string;
  readonly value: unknown;
}) {
  // A value such as `constructor` is no name, although every object has one.
  const name = typeof value === 'string' && Object.hasOwn(names, value) ? names[value] : undefined;
  if (name === undefined) return fieldValue(field, value, object.kind);
  const path = pathOfId(appId, value);
  return (
    <>
      {path === null ? name : <Link to={path}>{name}</Link>}{' '}
      <span className="quiet code-text">{fieldValue(field, value, object.kind)}</span>
    </>
  );
}

/** What a new version of a policy says, beside what the one before it said. */
function ChangedTerms({ terms: { before, after } }: { readonly terms: NonNullable<Row['terms']> }) {
  return (
    <div className="changed-terms">
      {before !== null && (
        <del>
          <span className="spoken">from</span>
          <TermsInWords {...before} />
        </del>
      )}
      <ins>
        {before !== null && <span className="spoken">to</span>}
        <TermsInWords {...after} />
      </ins>
    </div>
  );
}

/** The fields of a change: those of a new object, or of a changed one before and after. */
function Change({ row }: { readonly row: Row }) {
  const { before, after } = row;
  // Of a new object, what is empty says nothing. The key of a session stands in the column of who acts.
  const fields = Object.keys(after).filter(
    (field) =>
      before !== null || (field !== 'keyId' && fieldValue(field, after[field], row.object.kind) !== NONE),
  );
  if (fields.length === 0) return null;
  return (
    <ul className="changes">
      {fields.map((field) =>
        field === 'terms' && row.terms !== undefined ? (
          <li key={field}>
            <ChangedTerms terms={row.terms} />
          </li>
        ) : (
          <li key={field}>
            <span className="quiet">{fieldName(field, row.object.kind)}</span>{' '}
            {before !== null && (
              <>
                <span className="spoken">from</span>
                <del>
                  <Value row={row} field={field} value={before[field]} />
                </del>{' '}
                <span aria-hidden="true">→</span> <span className="spoken">to</span>
              </>
            )}
            <ins>
              <Value row={row} field={field} value={after[field]} />
            </ins>
          </li>
        ),
      )}
    </ul>
  );
}

function Actor({ row, filters }: { readonly row: Row; readonly filters: Filters }) {
  const { keyId, kind, label } = row.actor;
  return (
    <>
      {label !== null &&
        (keyId === null ? (
          <Text size="sm">{label}</Text>
        ) : (
          <Anchor
            component="button"
            type="button"
            size="sm"
            ta="left"
            aria-label={`Show only changes by ${label}`}
            onClick={() => filters.set({ key: keyId })}
          >
            {label}
          </Anchor>
        ))}
      <Text size={label === null ? 'sm' : 'xs'} className={label === null ? '' : 'quiet'}>
        {ACTORS[kind]}
      </Text>
    </>
  );
}

function AuditTableRow({
  row,
  appName,
  filters,
}: {
  readonly row: Row;
  readonly appName: string | null;
  readonly filters: Filters;
}) {
  const path = pathOf(row);
  const { id, kind } = row.object;
  const [heading, name] = [headingOf(row), nameOf(row)];
  return (
    <tr>
      <td>
        <Text size="sm" style={{ whiteSpace: 'nowrap' }} title={formatAgo(row.changedAt)}>
          {formatInstant(row.changedAt)}
        </Text>
      </td>
      <td>
        <Actor row={row} filters={filters} />
      </td>
      <td>
        <Text size="sm">
          {name !== null && `${heading}: `}
          {path === null ? (name ?? heading) : <Link to={path}>{name ?? heading}</Link>}
        </Text>
        <Text size="xs" className="quiet">
          {[kind === 'app' ? null : appName, id].filter((text) => text !== null).join(' · ')}
        </Text>
      </td>
      <td>
        <Change row={row} />
      </td>
    </tr>
  );
}

function Audit() {
  const { account } = useCurrentSession();
  const apps = useApps();
  const filters = useFilters('app', 'by', 'key', 'action', 'kind', 'object', ...RANGE_FILTERS);
  const range = useRange(filters);
  const query = {
    ...range,
    ...given({
      appId: filters.get('app'),
      actorKind: oneOf(keysOf(ACTORS), filters.get('by')),
      keyId: filters.get('key'),
      action: oneOf(keysOf(ACTIONS), filters.get('action')),
      objectKind: oneOf(keysOf(OBJECTS), filters.get('kind')),
      objectId: filters.get('object'),
    }),
  };
  const path = { accountId: account.id };
  const list = useList(
    ['audit', account.id, query],
    async (cursor) =>
      await read(
        api.GET('/accounts/{accountId}/audit', { params: { path, query: { ...query, ...cursor } } }),
      ),
    { idOf: ({ id }) => id },
  );
  const [first] = list.rows;
  const names = new Map((apps.data ?? []).map(({ id, name }) => [id, name]));
  const [key, object] = [filters.get('key'), filters.get('object')];
  const only = [
    ...(key === undefined
      ? []
      : [`Only changes by ${first?.actor.label ?? 'one key'} and sessions with that key.`]),
    ...(object === undefined ? [] : [`Only changes of ${first?.object.label ?? 'one object'}.`]),
  ].join(' ');
  return (
    <>
      <FilterBar
        filters={filters}
        kinds={[
          choiceFilter('app', 'App', Object.fromEntries(names)),
          choiceFilter('kind', 'What', OBJECTS),
          choiceFilter('action', 'Done', ACTIONS),
          choiceFilter('by', 'How', ACTORS),
          rangeFilter('When'),
          fixedFilter('key', 'Key', first?.actor.label ?? key ?? ''),
          fixedFilter('object', 'Object', first?.object.label ?? object ?? ''),
        ]}
        aside={
          <>
            <ViewsButton list="audit" appId={null} filters={filters} />
            <CsvButton
              name="audit"
              readPart={async (cursor) =>
                await readCsv(
                  api.GET('/accounts/{accountId}/audit', {
                    params: { path, query: { ...query, ...cursor } },
                    ...AS_CSV,
                  }),
                )
              }
            />
          </>
        }
      />
      {only !== '' && (
        <Text size="sm" mb="xs">
          {only}
        </Text>
      )}
      <ListView
        list={list}
        what="changes"
        isFiltered={!filters.isEmpty}
        onClearFilters={filters.clear}
        nothingYet="Each change from now on appears here."
      >
        {(rows) => (
          <table className="rows audit">
            <thead>
              <tr>
                <th scope="col">When</th>
                <th scope="col">Who</th>
                <th scope="col">What</th>
                <th scope="col">Change</th>
              </tr>
            </thead>
            <tbody>
              {rows.map((row) => (
                <AuditTableRow
                  key={row.id}
                  row={row}
                  appName={row.appId === null ? null : (names.get(row.appId) ?? null)}
                  filters={filters}
                />
              ))}
            </tbody>
          </table>
        )}
      </ListView>
    </>
  );
}

export default function AuditPage() {
  const canRead = usePermission('read');
  return (
    <>
      <PageHead title="Audit">
        Who changed which setting, key, secret, creator, link or payout. Rows are only added; nobody can edit
        or delete one.
      </PageHead>
      {canRead ? <Audit /> : <NoPermission permission="read" what="the changes" />}
    </>
  );
}
