import { Button, Group, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Link } from 'react-router';
import { api, read } from '../api/client.ts';
import type { Schemas } from '../api/client.ts';
import { KEYS, useStep } from '../api/queries.ts';
import { ErrorBox } from '../parts.tsx';
import { usePermission } from '../session.ts';

type Setting = NonNullable<Schemas['AppSettings']['purchaseCodes']>;

/** Returns whether purchase codes are off in an app. False until it is known. */
export function useCodesAreOff(appId: string): boolean {
  const { data } = useQuery({
    queryKey: ['settings', appId],
    queryFn: async () => await read(api.GET('/apps/{appId}/settings', { params: { path: { appId } } })),
  });
  return data !== undefined && data.purchaseCodes !== 'when_unattributed';
}

/** Says that codes attribute nothing yet, and turns them on. Nothing where they are on. */
export function CodesAreOff({ appId }: { readonly appId: string }) {
  const canWrite = usePermission('write');
  const isOff = useCodesAreOff(appId);
  // The form around it stays as it is: nothing of it is saved.
  const turnOn = useStep(
    async (purchaseCodes: Setting) =>
      await read(
        api.PATCH('/apps/{appId}/settings', { params: { path: { appId } }, body: { purchaseCodes } }),
      ),
    ['settings', appId],
    KEYS.setup(appId),
  );
  if (!isOff) return null;
  return (
    <div className="surface" role="status" style={{ padding: '12px 16px' }}>
      <Group justify="space-between" gap="sm">
        <Text size="sm" style={{ flex: '1 1 280px' }}>
          <b>Purchase codes are off.</b> No code attributes a purchase before you turn them on, here or in the{' '}
          <Link to={`/apps/${appId}/settings`}>settings</Link> of the app. A customer who came through a
          creator’s link stays with that creator either way.
        </Text>
        <Button
          variant="default"
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
