import { Box, Button, Text } from '@mantine/core';
import { useState } from 'react';
import { api, read } from '../api/client.ts';
import { formatInstant } from '../format.ts';
import { Section } from '../lists.tsx';
import { Tag } from '../parts/badges.tsx';
import { ListView, useList } from '../parts/list.tsx';
import { usePermission } from '../session.ts';
import { AddCodeDialog, DeactivateDialog } from './code-dialogs.tsx';
import type { Code, Creator } from './code-dialogs.tsx';
import { CodesAreOff, useCodesAreOff } from './codes-are-off.tsx';
import { NAMESPACES } from './words.ts';

function Row({
  code,
  isOff,
  onDeactivate,
}: {
  readonly code: Code;
  readonly isOff: boolean;
  readonly onDeactivate: () => void;
}) {
  const canWrite = usePermission('write');
  const { value, externalId, namespace, createdAt, deactivatedAt } = code;
  const isActive = deactivatedAt === null;
  return (
    <tr>
      <td>
        <Text size="sm" fw={600} className={isActive ? '' : 'quiet'}>
          {value}
        </Text>
        {externalId !== null && (
          <Text size="xs" className="quiet code-text">
            {externalId}
          </Text>
        )}
      </td>
      <td>{NAMESPACES[namespace].name}</td>
      <td>
        {isActive ? (
          <Tag tone={isOff ? 'wait' : 'good'}>{isOff ? 'Off' : 'Active'}</Tag>
        ) : (
          <Tag tone="plain">Deactivated</Tag>
        )}
        <Text size="xs" className="quiet" mt={2}>
          {isActive && isOff ? 'added' : 'since'} {formatInstant(deactivatedAt ?? createdAt)}
        </Text>
      </td>
      <td style={{ textAlign: 'right' }}>
        {isActive && (
          <Button
            variant="default"
            size="compact-sm"
            disabled={!canWrite}
            aria-label={`Deactivate the code ${value}`}
            onClick={onDeactivate}
          >
            Deactivate …
          </Button>
        )}
      </td>
    </tr>
  );
}

/** The codes of a creator, with which customers buy. */
export function Codes({ appId, creator }: { readonly appId: string; readonly creator: Creator }) {
  const canWrite = usePermission('write');
  const [isAdding, setIsAdding] = useState(false);
  const [deactivating, setDeactivating] = useState<Code | null>(null);
  const isOff = useCodesAreOff(appId);
  const list = useList(
    ['codes', appId, creator.id],
    async (cursor) =>
      await read(
        api.GET('/apps/{appId}/codes', {
          params: { path: { appId }, query: { affiliateId: creator.id, ...cursor } },
        }),
      ),
    { idOf: ({ id }) => id },
  );
  return (
    <Section
      id="codes"
      title="Purchase codes"
      hint={`Codes that ${creator.name} tells customers, for when they pay. A customer who belongs to nobody and buys with one belongs to ${creator.name}, also with later purchases.`}
      aside={
        <Button variant="default" size="xs" disabled={!canWrite} onClick={() => setIsAdding(true)}>
          Add a purchase code
        </Button>
      }
    >
      {isOff && (
        <Box mb="sm">
          <CodesAreOff appId={appId} />
        </Box>
      )}
      <ListView
        list={list}
        what="purchase codes"
        isFiltered={false}
        onClearFilters={() => {}}
        nothingYet="Add a code that customers enter when they buy, such as a promotion code. It needs no link, so it suits podcasts and videos."
      >
        {(rows) => (
          <table className="rows">
            <thead>
              <tr>
                <th scope="col">Code</th>
                <th scope="col">Where it is from</th>
                <th scope="col">Status</th>
                <th scope="col">
                  <span className="spoken">Actions</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {rows.map((code) => (
                <Row key={code.id} code={code} isOff={isOff} onDeactivate={() => setDeactivating(code)} />
              ))}
            </tbody>
          </table>
        )}
      </ListView>
      <AddCodeDialog appId={appId} creator={creator} isOpen={isAdding} onClose={() => setIsAdding(false)} />
      <DeactivateDialog
        appId={appId}
        creator={creator}
        code={deactivating}
        onClose={() => setDeactivating(null)}
      />
    </Section>
  );
}
