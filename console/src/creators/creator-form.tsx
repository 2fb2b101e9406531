import { Button, Group, Stack } from '@mantine/core';
import { useState } from 'react';
import { api, read } from '../api/client.ts';
import type { Schemas } from '../api/client.ts';
import { useChange } from '../api/queries.ts';
import { useChanges } from '../parts/changes.ts';
import { useFieldErrors } from '../parts/field-errors.tsx';
import { PercentField } from '../parts/number-field.tsx';
import type { Entered } from '../parts/number-field.tsx';
import { sayDone } from '../parts/toast.tsx';
import { RaiseOver, shownError } from '../payouts/raise-over.tsx';
import { IdentityFields } from './identity-fields.tsx';
import type { Identity } from './identity-fields.tsx';

const PERCENT_IN_BPS = 100;

interface Fields {
  readonly name: string;
  readonly email: string | null;
  readonly defaultCommissionRateBps: number | null;
}

/** Changes a creator. */
export function CreatorForm({
  appId,
  creator,
  onDone,
  onCancel,
}: {
  readonly appId: string;
  readonly creator: Schemas['ListedAffiliate'];
  readonly onDone: () => void;
  readonly onCancel: () => void;
}) {
  const [identity, setIdentity] = useState<Identity>({ name: creator.name, email: creator.email ?? '' });
  // What the form began with. The creator may be read again meanwhile.
  const [before] = useState<Fields>(creator);
  const own = before.defaultCommissionRateBps;
  const [rate, setRate] = useState<Entered>(own === null ? '' : own / PERCENT_IN_BPS);
  // An address that somebody else has set is not confirmed by the way.
  const { changesTo, onError } = useChanges(before);
  const save = useChange(
    async (body: Partial<Fields>) =>
      await read(
        api.PATCH('/apps/{appId}/affiliates/{affiliateId}', {
          params: { path: { appId, affiliateId: creator.id } },
          body,
        }),
      ),
    ['creators', appId],
    ['creator', appId],
  );
  const send = () =>
    save.mutate(
      changesTo({
        name: identity.name.trim(),
        email: identity.email.trim() || null,
        defaultCommissionRateBps: rate === '' ? null : Math.round(Number(rate) * PERCENT_IN_BPS),
      }),
      {
        onSuccess: ({ name }) => {
          sayDone(`The changes to ${name} are saved.`);
          onDone();
        },
        onError,
      },
    );
  const errors = useFieldErrors(shownError(save.error), {
    name: 'Name',
    email: 'E-mail address',
    defaultCommissionRateBps: 'Own commission',
  });
  return (
    <>
      <form
        {...errors.root}
        onSubmit={(event) => {
          event.preventDefault();
          send();
        }}
      >
        <Stack>
          <IdentityFields
            value={identity}
            errors={errors}
            onChange={(entered) => setIdentity({ ...identity, ...entered })}
          />
          <PercentField
            label="Own commission"
            description="In percent of the price. It goes before the policies of groups and the app, and before the commission of the settings; empty: one of these applies. A change counts for payments that are evaluated from now on; existing commissions stay as they are."
            value={rate}
            {...errors.at('defaultCommissionRateBps')}
            onChange={setRate}
          />
          {errors.rest}
          <Group justify="flex-end">
            <Button variant="default" onClick={onCancel}>
              Cancel
            </Button>
            <Button type="submit" loading={save.isPending}>
              Save
            </Button>
          </Group>
        </Stack>
      </form>
      <RaiseOver title="Change the own rate" change={save} onRaised={send} />
    </>
  );
}
