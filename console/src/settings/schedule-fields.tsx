import { Autocomplete, Group, Stack, Switch, Textarea } from '@mantine/core';
import { timeZones } from '../format.ts';
import type { FieldErrors } from '../parts/field-errors.tsx';
import { DollarField, NumberField } from '../parts/number-field.tsx';
import type { Draft, SETTING_LABELS } from './draft.ts';
import { Section } from './section.tsx';

interface Fields {
  readonly draft: Draft;
  readonly set: (change: Partial<Draft>) => void;
  readonly canWrite: boolean;
  readonly errorAt: FieldErrors<keyof typeof SETTING_LABELS>['at'];
}

const LAST_DAY = 28;

/** The payout run that is drafted each month. */
export function ScheduleFields({ draft, set, canWrite, errorAt }: Fields) {
  const { hasSchedule } = draft;
  return (
    <>
      <Switch
        label="Draft a payout run each month"
        description="The draft pays nobody: somebody who may pay approves it. Where a draft of yours waits, it is left alone. A change needs the permission “payout”."
        checked={hasSchedule}
        disabled={!canWrite}
        onChange={(event) => set({ hasSchedule: event.currentTarget.checked })}
      />
      {hasSchedule && (
        <Stack gap="sm">
          <Group grow align="flex-start">
            <NumberField
              label="Day of the month"
              min={1}
              max={LAST_DAY}
              value={draft.scheduleDay}
              {...errorAt('payoutSchedule.day')}
              disabled={!canWrite}
              onChange={(scheduleDay) => set({ scheduleDay })}
            />
            <Autocomplete
              label="Time zone"
              data={timeZones()}
              limit={20}
              spellCheck={false}
              value={draft.scheduleTimezone}
              {...errorAt('payoutSchedule.timezone')}
              disabled={!canWrite}
              onChange={(scheduleTimezone) => set({ scheduleTimezone })}
            />
          </Group>
          <DollarField
            label="Minimum payout"
            description="Creators to whom less is due wait for the next run."
            value={draft.scheduleMinimum}
            {...errorAt('payoutSchedule.minimumCents')}
            disabled={!canWrite}
            onChange={(scheduleMinimum) => set({ scheduleMinimum })}
          />
          <Switch
            label="Also pay creators without a payee"
            description="They are in a file of their own, which no payment service reads."
            checked={draft.schedulePaysWithoutPayee}
            disabled={!canWrite}
            onChange={(event) => set({ schedulePaysWithoutPayee: event.currentTarget.checked })}
          />
        </Stack>
      )}
    </>
  );
}

/** Who gets mails about the app. */
export function NotificationFields({ draft, set, canWrite, errorAt }: Fields) {
  return (
    <Section title="Notifications" about="Who gets mail about the app.">
      <Textarea
        label="E-mail addresses"
        description="One per line, at most ten. They get mails about alerts, drafts of the payout schedule, and the weekly report. A change needs the permission “setup”."
        autosize
        minRows={1}
        spellCheck={false}
        value={draft.notificationEmails}
        {...errorAt('notificationEmails')}
        disabled={!canWrite}
        onChange={(event) => set({ notificationEmails: event.currentTarget.value })}
      />
      <Switch
        label="Weekly report"
        description="On Mondays from 08:00 UTC on: revenue, commissions and creators of the week, beside the week before."
        checked={draft.weeklyReport}
        disabled={!canWrite}
        onChange={(event) => set({ weeklyReport: event.currentTarget.checked })}
      />
    </Section>
  );
}
