import { Button, Group, Stack, Text } from '@mantine/core';
import { useState } from 'react';
import { api, read } from '../api/client.ts';
import type { Schemas } from '../api/client.ts';
import { useChange } from '../api/queries.ts';
import { Dialog } from '../dialog.tsx';
import { formatCount, formatCountOf } from '../format.ts';
import { ErrorBox } from '../parts.tsx';
import { Failures, forEachRow } from '../parts/each-row.tsx';
import { sayDone } from '../parts/toast.tsx';

type Creator = Schemas['ListedAffiliate'];

/** How many names are listed before the others are counted. */
const MOST_NAMES = 10;

const IS_NOT_ACTIVE = {
  paused: 'is paused already.',
  removed: 'was removed. A pause would bring the creator back.',
} as const;

/**
 * Pauses a creator who is active. One who is not stays as the creator is: a page may be old, and a pause of a removed creator would
 * bring the creator back. A second call changes nothing.
 */
async function pause(appId: string, affiliateId: string): Promise<string | null> {
  const params = { path: { appId, affiliateId } };
  const { status } = await read(api.GET('/apps/{appId}/affiliates/{affiliateId}', { params }));
  if (status !== 'active') return IS_NOT_ACTIVE[status];
  await read(api.PATCH('/apps/{appId}/affiliates/{affiliateId}', { params, body: { status: 'paused' } }));
  return null;
}

function namesOf(creators: readonly Creator[]): string {
  const names = creators.slice(0, MOST_NAMES).map(({ name }) => name);
  const more = creators.length - names.length;
  return names.join(', ') + (more === 0 ? '' : ` and ${formatCount(more)} more`);
}

function Steps({
  appId,
  creators,
  onBusy,
  onDone,
  onClose,
}: {
  readonly appId: string;
  readonly creators: readonly Creator[];
  readonly onBusy: (isBusy: boolean) => void;
  /** Called with those who are paused now. */
  readonly onDone: (done: readonly Creator[]) => void;
  readonly onClose: () => void;
}) {
  // Those of when it was opened: the list below changes while it works.
  const [left, setLeft] = useState(creators);
  const change = useChange(
    async () => await forEachRow(left, async ({ id }) => await pause(appId, id)),
    ['creators', appId],
    ['creator', appId],
    ['links', appId],
  );
  const failed = change.data?.failed ?? [];
  const send = () => {
    onBusy(true);
    change.mutate(undefined, {
      onSettled: () => onBusy(false),
      onSuccess: (outcomes) => {
        onDone(outcomes.done);
        setLeft(outcomes.failed.map(({ row }) => row));
        if (outcomes.done.length > 0) sayDone(`${formatCountOf(outcomes.done.length, 'creator')} paused.`);
        if (outcomes.failed.length === 0) onClose();
      },
    });
  };
  return (
    <Stack>
      {failed.length === 0 ? (
        <>
          <Text size="sm">
            Their links go on leading to your app, and clicks and installs are counted. Payments from now on
            earn these creators nothing. What is held or due stays and is paid. You can end each pause at any
            time.
          </Text>
          <Text size="sm">{namesOf(left)}</Text>
        </>
      ) : (
        <Failures
          title={`${formatCountOf(failed.length, 'creator')} not paused`}
          failed={failed}
          nameOf={({ name }) => name}
        />
      )}
      {change.error !== null && <ErrorBox error={change.error} />}
      <Group justify="flex-end">
        <Button variant="default" data-autofocus disabled={change.isPending} onClick={onClose}>
          {failed.length === 0 ? 'Cancel' : 'Close'}
        </Button>
        <Button color="red.9" loading={change.isPending} onClick={send}>
          {failed.length === 0 ? `Pause ${formatCountOf(left.length, 'creator')}` : 'Try these again'}
        </Button>
      </Group>
    </Stack>
  );
}

/**
 * Pauses several creators after one question, and says of each who was not paused why. It stays open while it works. Null for none.
 */
export function PauseDialog({
  creators,
  ...steps
}: Omit<Parameters<typeof Steps>[0], 'creators' | 'onBusy'> & {
  readonly creators: readonly Creator[] | null;
}) {
  const [isBusy, setIsBusy] = useState(false);
  return (
    <Dialog isOpen={creators !== null} isHeld={isBusy} onClose={steps.onClose} title="Pause creators">
      {creators !== null && <Steps {...steps} creators={creators} onBusy={setIsBusy} />}
    </Dialog>
  );
}
