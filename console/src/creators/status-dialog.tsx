import { api, read } from '../api/client.ts';
import type { Schemas } from '../api/client.ts';
import { useChange } from '../api/queries.ts';
import { Confirm, Dialog } from '../dialog.tsx';
import { sayDone } from '../parts/toast.tsx';

type Creator = Schemas['ListedAffiliate'];
type Status = Creator['status'];

/** What a change of the status means. Existing commissions never change. */
const CHANGES: Readonly<
  Record<
    Status,
    {
      readonly title: string;
      readonly action: string;
      readonly meaning: string;
      readonly done: (name: string) => string;
    }
  >
> = {
  paused: {
    title: 'Pause',
    action: 'Pause the creator',
    meaning:
      'The links go on leading to your app, and clicks and installs are counted. Payments from now on earn nothing, also those of users who came before. What is held or due stays and is paid. You can end the pause at any time; what was paid meanwhile stays without a commission.',
    done: (name) => `${name} is paused.`,
  },
  removed: {
    title: 'Remove',
    action: 'Remove the creator',
    meaning:
      'The links go on leading to your app, but nothing is counted, and no install is attributed to this creator. Payments from now on earn nothing. What is held or due stays and is paid. The purchase codes end. The creator can still sign in to see what is owed. History stays, and you can bring the creator back, but codes have to be added again.',
    done: (name) => `${name} is removed.`,
  },
  active: {
    title: 'Make active',
    action: 'Make the creator active',
    meaning:
      'Payments from now on earn commissions again. Payments that earned nothing meanwhile stay so. Purchase codes that ended with a removal have to be added again.',
    done: (name) => `${name} is active.`,
  },
};

/** Asks before the status of a creator changes. */
export function StatusDialog({
  appId,
  creator,
  status,
  onClose,
}: {
  readonly appId: string;
  readonly creator: Creator;
  readonly status: Status | null;
  readonly onClose: () => void;
}) {
  const change = useChange(
    async (next: Status) =>
      await read(
        api.PATCH('/apps/{appId}/affiliates/{affiliateId}', {
          params: { path: { appId, affiliateId: creator.id } },
          body: { status: next },
        }),
      ),
    ['creators', appId],
    ['creator', appId],
    ['links', appId],
    ['codes', appId],
  );
  return (
    <Dialog
      isOpen={status !== null}
      onClose={onClose}
      title={status === null ? '' : `${CHANGES[status].title}: ${creator.name}`}
    >
      {status !== null && (
        <Confirm
          action={CHANGES[status].action}
          {...(status === 'active' ? {} : { color: 'red.9' as const })}
          change={change}
          onConfirm={() =>
            change.mutate(status, {
              onSuccess: () => {
                sayDone(CHANGES[status].done(creator.name));
                onClose();
              },
            })
          }
          onClose={onClose}
        >
          {CHANGES[status].meaning}
        </Confirm>
      )}
    </Dialog>
  );
}
