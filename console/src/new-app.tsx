import { Button, Stack, TextInput } from '@mantine/core';
import { useState } from 'react';
import { useNavigate } from 'react-router';
import { api, read } from './api/client.ts';
import { useRetryKey } from './api/idempotency.ts';
import { KEYS, useApps, useChange } from './api/queries.ts';
import { APP_DEFAULTS } from './app-defaults.ts';
import { rememberSdkKey } from './setup/sdk-key.ts';
import { useLeaveGuard } from './leave/leave-guard.tsx';
import { NoPermission, PageHead } from './parts.tsx';
import { useFieldErrors } from './parts/field-errors.tsx';
import { isNumber, NumberField, PercentField } from './parts/number-field.tsx';
import type { Entered } from './parts/number-field.tsx';
import { usePermission } from './session.ts';

const PERCENT_IN_BPS = 100;

/** What the form begins with: percent, and days. */
const RATE = APP_DEFAULTS.commissionRateBps / PERCENT_IN_BPS;
const HOLD_DAYS = APP_DEFAULTS.holdPeriodDays;

export default function NewAppPage() {
  const isAllowed = usePermission('setup');
  const apps = useApps();
  const navigate = useNavigate();
  const [name, setName] = useState('');
  const [rate, setRate] = useState<Entered>(RATE);
  const [hold, setHold] = useState<Entered>(HOLD_DAYS);
  const body = {
    name: name.trim(),
    commissionRateBps: Math.round(Number(rate) * PERCENT_IN_BPS),
    holdPeriodDays: Number(hold),
  };
  // One app, also if its answer was lost: nobody can delete a second one.
  const { key, onError } = useRetryKey(body);
  const create = useChange(
    async () => await read(api.POST('/apps', { params: { header: { 'Idempotency-Key': key } }, body })),
    KEYS.apps,
  );
  const errors = useFieldErrors(create.error, {
    name: 'Name',
    commissionRateBps: 'Commission',
    holdPeriodDays: 'Hold period',
  });
  const { question, release } = useLeaveGuard(true, () => name !== '' || rate !== RATE || hold !== HOLD_DAYS);
  const isFirst = apps.data?.length === 0;
  if (!isAllowed) {
    return (
      <>
        <PageHead title="New app" />
        <NoPermission permission="setup" what="this form" />
      </>
    );
  }
  return (
    <>
      <PageHead title={isFirst ? 'Create your first app' : 'New app'}>
        An app has its own links, creators and billing providers. You can change all of this later; links keep
        their address, and commissions that exist stay as they are.
      </PageHead>
      {question}
      <form
        {...errors.root}
        className="surface"
        style={{ maxWidth: 520, padding: 24 }}
        onSubmit={(event) => {
          event.preventDefault();
          create.mutate(undefined, {
            onError,
            onSuccess: (app) => {
              release();
              rememberSdkKey(app.id, app.sdkKey);
              void navigate(`/apps/${app.id}/setup`);
            },
          });
        }}
      >
        <Stack>
          <TextInput
            label="Name"
            placeholder="Lantern Notes"
            description="Creators see it on their page, and their links contain it."
            required
            withAsterisk={false}
            maxLength={200}
            value={name}
            {...errors.at('name')}
            onChange={(event) => setName(event.currentTarget.value)}
          />
          <PercentField
            label="Commission"
            description="The share of each payment that a creator earns, in percent."
            required
            withAsterisk={false}
            value={rate}
            {...errors.at('commissionRateBps')}
            onChange={setRate}
          />
          <NumberField
            label="Hold period"
            description="Days from the purchase until its commission is due, so that refunds come first. 0 in an app that is only for a trial: then you can try the payout at once."
            required
            withAsterisk={false}
            max={365}
            suffix=" days"
            value={hold}
            {...errors.at('holdPeriodDays')}
            onChange={setHold}
          />
          {errors.rest}
          <Button
            type="submit"
            loading={create.isPending}
            disabled={!isNumber(rate) || !isNumber(hold)}
            style={{ alignSelf: 'flex-start' }}
          >
            Create the app
          </Button>
        </Stack>
      </form>
    </>
  );
}
