import { Button, Group, NativeSelect, Stack } from '@mantine/core';
import { useState } from 'react';
import { api, given, read } from '../api/client.ts';
import { useChange } from '../api/queries.ts';
import { Dialog } from '../dialog.tsx';
import { formatInstant } from '../format.ts';
import { ErrorBox } from '../parts.tsx';
import { Loaded } from '../parts/loaded.tsx';
import { CreatorSelect } from '../parts/creator-select.tsx';
import type { ChosenCreator } from '../parts/creator-select.tsx';
import { canTakeEffect, EffectiveField, effectiveFromOf, SOON } from '../policies/effective.tsx';
import { staleAfterTerms, useGroups } from '../policies/queries.ts';
import type { AffiliateGroup } from '../policies/queries.ts';
import { sayDone } from '../parts/toast.tsx';
import { RaiseOver, shownError } from '../payouts/raise-over.tsx';

function Form({
  appId,
  groups,
  group,
  fixedCreator,
  onClose,
}: {
  readonly appId: string;
  readonly groups: readonly AffiliateGroup[];
  /** The group to begin with. */
  readonly group: AffiliateGroup | undefined;
  readonly fixedCreator: ChosenCreator | undefined;
  readonly onClose: () => void;
}) {
  const [groupId, setGroupId] = useState(group?.id ?? groups[0]?.id ?? '');
  const [creator, setCreator] = useState<ChosenCreator | null>(fixedCreator ?? null);
  const [effective, setEffective] = useState(SOON);
  const move = useChange(
    async ({ affiliateId, from }: { readonly affiliateId: string; readonly from: number | undefined }) =>
      await read(
        api.PUT('/apps/{appId}/affiliates/{affiliateId}/group', {
          params: { path: { appId, affiliateId } },
          body: { groupId: groupId === '' ? null : groupId, ...given({ effectiveFrom: from }) },
        }),
      ),
    ...staleAfterTerms(appId),
  );
  const from = effectiveFromOf(effective);
  const send = () => {
    if (creator === null || from === null) return;
    const { id: affiliateId, name } = creator;
    move.mutate(
      { affiliateId, from },
      {
        onSuccess: ({ effectiveFrom }) => {
          sayDone(`${name} changes the group at ${formatInstant(effectiveFrom)}.`);
          onClose();
        },
      },
    );
  };
  const error = shownError(move.error);
  return (
    <>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          send();
        }}
      >
        <Stack>
          {fixedCreator === undefined && (
            <CreatorSelect appId={appId} value={creator} onChange={setCreator} />
          )}
          <NativeSelect
            label="Group"
            description="A creator is in one group at most. The policy of the group counts unless the creator has an own rate or an own policy."
            value={groupId}
            onChange={(event) => setGroupId(event.currentTarget.value)}
          >
            {groups.map(({ id, name }) => (
              <option key={id} value={id}>
                {name}
              </option>
            ))}
            <option value="">No group</option>
          </NativeSelect>
          <EffectiveField draft={effective} onChange={setEffective} />
          {error !== null && <ErrorBox error={error} />}
          <Group justify="flex-end">
            <Button variant="default" onClick={onClose}>
              Cancel
            </Button>
            <Button
              type="submit"
              loading={move.isPending}
              disabled={creator === null || !canTakeEffect(effective)}
            >
              Move
            </Button>
          </Group>
        </Stack>
      </form>
      <RaiseOver title="Change what a creator earns" change={move} onRaised={send} />
    </>
  );
}

function Choices({ appId, ...form }: Omit<Parameters<typeof Form>[0], 'groups'>) {
  const groups = useGroups(appId);
  return (
    <Loaded reading={groups} what="the groups">
      {({ rows }) => <Form appId={appId} groups={rows} {...form} />}
    </Loaded>
  );
}

/** Moves a creator to a group, or out of one. Without a creator, it asks for one. */
export function MoveDialog({
  appId,
  creator,
  group,
  isOpen,
  onClose,
}: {
  readonly appId: string;
  readonly creator?: ChosenCreator | undefined;
  readonly group?: AffiliateGroup | undefined;
  readonly isOpen: boolean;
  readonly onClose: () => void;
}) {
  return (
    <Dialog
      isOpen={isOpen}
      onClose={onClose}
      title={
        creator === undefined
          ? `Add a creator to ${group?.name ?? 'a group'}`
          : `Move ${creator.name} to a group`
      }
    >
      {isOpen && <Choices appId={appId} group={group} fixedCreator={creator} onClose={onClose} />}
    </Dialog>
  );
}
