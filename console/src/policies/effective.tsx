import { Group, NativeSelect, Stack, TextInput } from '@mantine/core';
import { formatInstant, timeZone } from '../format.ts';

/** When a change takes effect, as it is being entered. */
export interface EffectiveDraft {
  readonly kind: 'soon' | 'at';
  /** Such as 2027-01-01. */
  readonly date: string;
  /** Such as 14:30. */
  readonly time: string;
}

export const SOON: EffectiveDraft = { kind: 'soon', date: '', time: '00:00' };

/** How far ahead a change takes effect at the earliest, ms. */
const SOONEST_MS = 120_000;

/** Returns the chosen instant, epoch ms. Undefined for the earliest one, null while it is incomplete. */
export function effectiveFromOf({ kind, date, time }: EffectiveDraft): number | null | undefined {
  if (kind === 'soon') return undefined;
  const at = new Date(`${date}T${time}`).getTime();
  return Number.isNaN(at) ? null : at;
}

/** Whether a change can take effect then. The service compares with its own clock. */
export function canTakeEffect(draft: EffectiveDraft): boolean {
  const at = effectiveFromOf(draft);
  return at === undefined || (at !== null && at >= Date.now() + SOONEST_MS);
}

/** Asks when a change takes effect. */
export function EffectiveField({
  label = 'Takes effect',
  draft,
  onChange,
}: {
  readonly label?: string;
  readonly draft: EffectiveDraft;
  readonly onChange: (draft: EffectiveDraft) => void;
}) {
  const at = effectiveFromOf(draft);
  const isEarly = typeof at === 'number' && !canTakeEffect(draft);
  return (
    <Stack gap="xs">
      <NativeSelect
        label={label}
        description="Payments from then on count. Earlier payments, and commissions that exist, do not change."
        value={draft.kind}
        onChange={(event) => onChange({ ...draft, kind: event.currentTarget.value === 'at' ? 'at' : 'soon' })}
      >
        <option value="soon">In two minutes</option>
        <option value="at">At a date …</option>
      </NativeSelect>
      {draft.kind === 'at' && (
        <Group gap="sm" align="flex-start" grow>
          <TextInput
            label="Date"
            type="date"
            required
            withAsterisk={false}
            value={draft.date}
            error={isEarly && 'Choose a time at least two minutes ahead.'}
            onChange={(event) => onChange({ ...draft, date: event.currentTarget.value })}
          />
          <TextInput
            label={`Time, ${timeZone}`}
            type="time"
            required
            withAsterisk={false}
            value={draft.time}
            onChange={(event) => onChange({ ...draft, time: event.currentTarget.value })}
          />
        </Group>
      )}
    </Stack>
  );
}

/** Whether an instant is in the future. */
export const isAhead = (at: number): boolean => at > Date.now();

/** Returns since when something counts, or from when on: "since Nov 23, 2026, 8:40 AM". */
export const sinceOrFrom = (at: number): string => `${isAhead(at) ? 'from' : 'since'} ${formatInstant(at)}`;
