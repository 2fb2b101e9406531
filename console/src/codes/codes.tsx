import { Button, Group, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { Link } from 'react-router';
import { api, read } from '../api/client.ts';
import type { Schemas } from '../api/client.ts';
import { useChange } from '../api/queries.ts';
import { formatInstant } from '../format.ts';
import { Section } from '../lists.tsx';
import { ErrorBox } from '../parts.tsx';
import { Tag } from '../parts/badges.tsx';
import { ListView, useList } from '../parts/list.tsx';
import { usePermission } from '../session.ts';
import { AddCodeDialog, DeactivateDialog } from './code-dialogs.tsx';
import type { Code, Creator } from './code-dialogs.tsx';
import { NAMESPACES } from './words.ts';

type Setting = NonNullable<Schemas['AppSettings']['purchaseCodes']>;

/** Says that codes attribute nothing yet, and turns them on. */
function CodesAreOff({ appId }: { readonly appId: string }) {
  const canWrite = usePermission('write');
  const turnOn = useChange(
    async (purchaseCodes: Setting) =>
      await read(
        api.PATCH('/apps/{appId}/settings', { params: { path: { appId } }, body: { purchaseCodes } }),
      ),
    ['settings', appId],
  );
  return (
    <div className="surface" role="status" style={{ padding: '12px 16px' }}>
      <Group justify="space-between" gap="sm">
        <Text size="sm" style={{ flex: '1 1 280px' }}>
          <b>Purchase codes are off.</b> No code attributes a purchase before you turn them on, here or in the{' '}
          <Link to={`/apps/${appId}/settings`}>settings</Link> of the app. A customer who came through a
          creator’s link stays with that creator either way.
        </Text>
        <Button
          size="compact-sm"
          disabled={!canWrite}
          loading={turnOn.isPending}
          onClick={() => turnOn.mutate('when_unattributed')}
        >
          Turn on purchase codes
        </Button>
      </Group>
      {turnOn.error !== null && <ErrorBox error={turnOn.error} />}
    </div>
  );
}

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
  const settings = useQuery({
    queryKey: ['settings', appId],
    queryFn: async () => await read(api.GET('/apps/{appId}/settings', { params: { path: { appId } } })),
  });
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
  const isOff = settings.data !== undefined && settings.data.purchaseCodes !== 'when_unattributed';
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
      {isOff && <CodesAreOff appId={appId} />}
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
