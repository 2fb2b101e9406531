import { Button } from '@mantine/core';
import { useState } from 'react';
import { useParams } from 'react-router';
import { api, AS_CSV, given, readCsv } from '../api/client.ts';
import { NoPermission } from '../parts.tsx';
import { ColumnsButton } from '../parts/columns-button.tsx';
import { CsvButton } from '../parts/csv-button.tsx';
import { FilterBar } from '../parts/filter-bar.tsx';
import { choiceFilter, creatorFilter, textFilter } from '../parts/filter-kinds.ts';
import { oneOf, useFilters } from '../parts/filters.ts';
import { HeadAside, HeadNote } from '../parts/head-aside.tsx';
import { ViewsButton } from '../parts/views-button.tsx';
import { useOpensNew } from '../shortcuts/use-opens-new.ts';
import { IS_NEW } from '../shortcuts/use-shortcuts.ts';
import { usePermission } from '../session.ts';
import { linkColumns, LinkTable } from './link-table.tsx';
import { NewLinkDialog } from './new-link.tsx';

const STATES = { active: 'Active', inactive: 'Inactive' } as const;

const SEARCH = textFilter('q', 'Search', 'Search: link code or campaign');
const kindsOf = (appId: string) => [choiceFilter('state', 'State', STATES), creatorFilter(appId)];

function Links({ appId }: { readonly appId: string }) {
  const filters = useFilters('q', 'state', 'creator');
  const state = oneOf(['active', 'inactive'], filters.get('state'));
  const query = given({
    affiliateId: filters.get('creator'),
    active: state === undefined ? undefined : state === 'active',
    q: filters.get('q'),
  });
  return (
    <>
      <FilterBar
        filters={filters}
        lead={SEARCH}
        kinds={kindsOf(appId)}
        aside={
          <>
            <ViewsButton list="links" appId={appId} filters={filters} />
            <ColumnsButton table="links" columns={linkColumns(appId)} />
            <CsvButton
              name="links"
              readPart={async (cursor) =>
                await readCsv(
                  api.GET('/apps/{appId}/links', {
                    params: { path: { appId }, query: { ...query, ...cursor } },
                    ...AS_CSV,
                  }),
                )
              }
            />
          </>
        }
      />
      <LinkTable appId={appId} query={query} hasCreator onClearFilters={filters.clear} />
    </>
  );
}

export default function LinksPage() {
  const { appId = '' } = useParams();
  const canRead = usePermission('read');
  const canWrite = usePermission('write');
  const [isOpen, setIsOpen] = useState(false);
  useOpensNew(() => setIsOpen(true));
  return (
    <>
      <HeadAside>
        <Button {...IS_NEW} disabled={!canWrite} onClick={() => setIsOpen(true)}>
          New link
        </Button>
      </HeadAside>
      {!canWrite && <HeadNote>Creating links needs the permission “write”, which you do not have.</HeadNote>}
      {canRead ? <Links key={appId} appId={appId} /> : <NoPermission permission="read" what="links" />}
      <NewLinkDialog appId={appId} isOpen={isOpen} onClose={() => setIsOpen(false)} />
    </>
  );
}
