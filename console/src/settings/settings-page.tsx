import { Button, Group, Stack, Switch, Text, Textarea, TextInput } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { Link, useParams } from 'react-router';
import { api, read } from '../api/client.ts';
import type { Schemas } from '../api/client.ts';
import { KEYS, useChange } from '../api/queries.ts';
import { SettingsParts } from '../navigation.tsx';
import { useLeaveGuard } from '../leave/leave-guard.tsx';
import { CopyLine, ErrorBox, NoPermission, Waiting } from '../parts.tsx';
import { isUncertain } from '../parts/changes.ts';
import { useFieldErrors } from '../parts/field-errors.tsx';
import { NumberField, PercentField } from '../parts/number-field.tsx';
import type { Entered } from '../parts/number-field.tsx';
import { RaiseOver, shownError } from '../payouts/raise-over.tsx';
import { usePermission } from '../session.ts';
import { NotificationFields, ScheduleFields } from './schedule-fields.tsx';
import { Section } from './section.tsx';
import { changesOf, draftOf, isComplete, SETTING_CODES, SETTING_LABELS } from './draft.ts';
import type { Draft } from './draft.ts';

/** The look of a field for a number, which needs little room. */
const SHORT = { wrapper: { maxWidth: 200 } };

type Settings = Schemas['AppSettings'];

/** A colour as it is being entered. Nothing until it is one. */
function ColorSwatch({ color }: { readonly color: string }) {
  return /^#[0-9a-f]{6}$/i.test(color) ? (
    <span className="swatch" style={{ background: color }} aria-hidden="true" />
  ) : null;
}

function SettingsForm({ appId, settings }: { readonly appId: string; readonly settings: Settings }) {
  const canWrite = usePermission('write');
  // What was saved last. The form keeps what is being entered when the settings are read again.
  const [saved, setSaved] = useState(settings);
  const [draft, setDraft] = useState(() => draftOf(settings));
  const set = (change: Partial<Draft>) => setDraft({ ...draft, ...change });
  const changes = changesOf(saved, draft);
  const hasChanges = Object.keys(changes).length > 0;
  const save = useChange(
    async () =>
      await read(api.PATCH('/apps/{appId}/settings', { params: { path: { appId } }, body: changes })),
    KEYS.apps,
    ['settings', appId],
    ['setup', appId],
  );
  const errors = useFieldErrors(shownError(save.error), SETTING_LABELS, SETTING_CODES);
  const { question } = useLeaveGuard(true, () => hasChanges);
  // The service may have the changes although its answer was lost: then a field that is set back is a change.
  const readAgain = (failure: Error) => {
    if (!isUncertain(failure)) return;
    const path = { appId };
    void read(api.GET('/apps/{appId}/settings', { params: { path } })).then(setSaved, () => {});
  };
  const submit = () =>
    save.mutate(undefined, {
      onSuccess: ({ id: _id, ...stored }) => {
        setSaved(stored);
        setDraft(draftOf(stored));
      },
      onError: readAgain,
    });
  const text = (name: 'name' | 'linkSubdomain' | 'brandColor') => ({
    value: draft[name],
    ...errors.at(name),
    disabled: !canWrite,
    onChange: (event: { readonly currentTarget: { readonly value: string } }) =>
      set({ [name]: event.currentTarget.value }),
  });
  const lines = (name: 'destinationSchemes' | 'stripeAccounts' | 'iosAppIds' | 'androidApps') => ({
    value: draft[name],
    ...errors.at(name),
    disabled: !canWrite,
    autosize: true,
    minRows: 1,
    spellCheck: false,
    onChange: (event: { readonly currentTarget: { readonly value: string } }) =>
      set({ [name]: event.currentTarget.value }),
  });
  const number = (
    name: 'rate' | 'attributionWindowDays' | 'holdPeriodDays' | 'deferredWindowMinutes' | 'payeeWaitDays',
  ) => ({
    value: draft[name],
    ...errors.at(name === 'rate' ? 'commissionRateBps' : name),
    disabled: !canWrite,
    required: true,
    withAsterisk: false,
    styles: SHORT,
    onChange: (value: Entered) => set({ [name]: value }),
  });
  return (
    <>
      {question}
      <form
        {...errors.root}
        onSubmit={(event) => {
          event.preventDefault();
          submit();
        }}
      >
        <Stack gap="lg" className="settings">
          {!canWrite && (
            <Text size="sm" className="quiet">
              Changing settings needs the permission “write”, which you do not have.
            </Text>
          )}
          <Section title="App" about="What creators see of the app.">
            <TextInput
              label="Name"
              description="Creators see it on their page."
              maxLength={200}
              required
              withAsterisk={false}
              {...text('name')}
            />
            <TextInput
              label="Colour"
              description="Of the app's mark and the main buttons on the pages of your creators. Empty: the colour of Tributary."
              placeholder="#0b7285"
              maxLength={7}
              spellCheck={false}
              rightSection={<ColorSwatch color={draft.brandColor.trim()} />}
              {...text('brandColor')}
            />
            <div>
              <Text size="sm" fw={500} mb={4}>
                Id
              </Text>
              <CopyLine text={appId} what="the id of the app" />
            </div>
          </Section>
          <Section
            title="Commissions"
            about="What a creator earns where no policy says more, and when it is due."
          >
            <PercentField
              label="Commission"
              description="For payments that are evaluated after the change. A creator's own rate and policies come before it."
              {...number('rate')}
            />
            <NumberField
              label="Hold period"
              description="Days from a purchase until its commission is due. A change moves no date that exists."
              max={365}
              suffix=" days"
              {...number('holdPeriodDays')}
            />
          </Section>
          <Section title="Attribution" about="Which purchases belong to a creator.">
            <NumberField
              label="Attribution window"
              description="Days from a click to the first start of the app. Devices that have their creator keep the creator."
              {...number('attributionWindowDays')}
              min={1}
              max={365}
              suffix=" days"
            />
            <NumberField
              label="Deferred match"
              description="Minutes in which an install without a link code is matched to a click by its address. 0 turns it off."
              max={1440}
              suffix=" minutes"
              {...number('deferredWindowMinutes')}
            />
            <Switch
              label="Accept only user ids that your server signed"
              description="A device that reports a user needs a signature with the identity secret, so ship it first. Users who are known stay. To turn it off needs the permission “setup”."
              checked={draft.identityVerification}
              {...errors.at('identityVerification')}
              disabled={!canWrite}
              onChange={(event) => set({ identityVerification: event.currentTarget.checked })}
            />
            <Switch
              label="Purchase codes"
              description="A customer who belongs to no creator and buys with a creator's purchase code, such as a promotion code, belongs to that creator, also with later purchases. You add them on the page of a creator."
              checked={draft.purchaseCodes === 'when_unattributed'}
              disabled={!canWrite}
              onChange={(event) =>
                set({ purchaseCodes: event.currentTarget.checked ? 'when_unattributed' : 'off' })
              }
            />
          </Section>
          <Section title="Payouts" about="How long a payee waits, and who has to approve a payout run.">
            <NumberField
              label="Wait of a new payee"
              description="Days until money goes to a payee that was just set. A change counts for payees that are set after it, and needs a key that may pay."
              {...number('payeeWaitDays')}
              min={1}
              max={30}
              suffix=" days"
            />
            <Switch
              label="A payout run needs the approval of another key"
              description="The key that drafted a run, or set a payee or the address of a creator in it, cannot approve it. Single exports are refused. A change needs the permission “payout”."
              checked={draft.payoutApproval === 'another_key'}
              disabled={!canWrite}
              onChange={(event) =>
                set({ payoutApproval: event.currentTarget.checked ? 'another_key' : 'any_key' })
              }
            />
            <ScheduleFields draft={draft} set={set} canWrite={canWrite} errorAt={errors.at} />
          </Section>
          <NotificationFields draft={draft} set={set} canWrite={canWrite} errorAt={errors.at} />
          <Section title="Links" about="Where links begin, and where they may lead.">
            <TextInput
              label="Subdomain"
              description="The first part of new links. Links under a former subdomain go on working; an app can have 20 in its life."
              required
              withAsterisk={false}
              spellCheck={false}
              {...text('linkSubdomain')}
            />
            <Textarea
              label="Own schemes"
              description={`One per line, such as myapp. New links may lead only to these schemes and the web; links from before stay. ${saved.destinationSchemes?.length === 0 ? 'None: new links may lead only to the web, which the API has set.' : 'Empty: to any scheme that is not dangerous.'}`}
              {...lines('destinationSchemes')}
            />
            <Textarea
              label="iOS apps"
              description="One per line: team id, dot, bundle id. They open links directly within a minute."
              {...lines('iosAppIds')}
            />
            <Textarea
              label="Android apps"
              description="One per line: the package, then the SHA-256 fingerprints of its certificates, separated by spaces."
              {...lines('androidApps')}
            />
          </Section>
          <Section title="Billing" about="Whose payments count as those of the app.">
            <Textarea
              label="Connected accounts of Stripe"
              description="One per line, such as acct_1032D82eZvKYlo2C. Their events count as your own; those of others are ignored."
              {...lines('stripeAccounts')}
            />
            <Text size="sm">
              Webhook addresses, secrets and SDK keys are on the page{' '}
              <Link to={`/apps/${appId}/setup`}>Set-up</Link>.
            </Text>
          </Section>
          {errors.rest}
          <Group className={hasChanges ? 'settings-end bulk-bar' : 'settings-end'}>
            <Button
              type="submit"
              loading={save.isPending}
              disabled={!canWrite || !hasChanges || !isComplete(draft)}
            >
              Save
            </Button>
            {hasChanges && (
              <Button variant="default" onClick={() => setDraft(draftOf(saved))}>
                Undo
              </Button>
            )}
            <Text size="sm" className="quiet" role="status">
              {hasChanges ? 'Not saved yet.' : save.isSuccess ? 'Saved.' : ''}
            </Text>
          </Group>
          <Text size="sm" className="settings-end quiet">
            <Link to={`/audit?object=${appId}&kind=app`}>Who changed these settings, and when</Link>
          </Text>
        </Stack>
      </form>
      <RaiseOver title="Change the settings of payouts" change={save} onRaised={submit} />
    </>
  );
}

function SettingsOfApp({ appId }: { readonly appId: string }) {
  const settings = useQuery({
    // The form keeps what it begins with, so it does not begin with what another page has read.
    queryKey: ['settings', appId, 'form'],
    queryFn: async () => await read(api.GET('/apps/{appId}/settings', { params: { path: { appId } } })),
    gcTime: 0,
  });
  if (settings.data === undefined) {
    return settings.error === null ? (
      <Waiting what="the settings" />
    ) : (
      <ErrorBox error={settings.error} retry={() => void settings.refetch()} />
    );
  }
  return <SettingsForm appId={appId} settings={settings.data} />;
}

export default function SettingsPage() {
  const { appId = '' } = useParams();
  const canRead = usePermission('read');
  return (
    <>
      <SettingsParts appId={appId} />
      {canRead ? (
        <SettingsOfApp key={appId} appId={appId} />
      ) : (
        <NoPermission permission="read" what="the settings" />
      )}
    </>
  );
}
