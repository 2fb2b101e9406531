import { Group, NativeSelect, Stack, TextInput } from '@mantine/core';
import { formatInstant, timeZone } from '../format.ts';
import type { FieldError } from '../parts/field-errors.tsx';

/** When a change takes effect, as it is being entered. */
export interface EffectiveDraft {
  readonly kind: 'soon' | 'planned' | 'at';
  /** The instant of what the change replaces, epoch ms. Null unless that is still ahead. */
  readonly planned: number | null;
  /** Such as 2027-01-01. */
  readonly date: string;
  /** Such as 14:30. */
  readonly time: string;
}

export const SOON: EffectiveDraft = { kind: 'soon', planned: null, date: '', time: '00:00' };

/** How far ahead a change takes effect at the earliest, ms. */
const SOONEST_MS = 120_000;

/** Begins with the instant of what a change replaces, if that can still be replaced. */
export const insteadOf = (planned: number | null | undefined): EffectiveDraft =>
  planned != null && planned >= Date.now() + SOONEST_MS ? { ...SOON, kind: 'planned', planned } : SOON;

/** Returns the chosen instant, epoch ms. Undefined for the earliest one, null while it is incomplete. */
export function effectiveFromOf({ kind, planned, date, time }: EffectiveDraft): number | null | undefined {
  if (kind === 'soon') return undefined;
  if (kind === 'planned') return planned;
  const at = new Date(`${date}T${time}`).getTime();
  return Number.isNaN(at) ? null : at;
}

/** Whether a change can take effect then. The service compares with its own clock. */
export function canTakeEffect(draft: EffectiveDraft): boolean {
  const at = effectiveFromOf(draft);
  return at === undefined || (at !== null && at >= Date.now() + SOONEST_MS);
}

/** Returns what is wrong with the chosen time, as a sentence. Null for nothing. */
export function effectiveProblem(draft: EffectiveDraft): string | null {
  if (effectiveFromOf(draft) === null) return 'Choose the day on which it takes effect.';
  if (canTakeEffect(draft)) return null;
  return draft.kind === 'planned'
    ? 'That is less than two minutes ahead by now.'
    : 'Choose a time at least two minutes ahead.';
}

const KINDS = ['soon', 'planned', 'at'] as const;

/** Asks when a change takes effect. */
export function EffectiveField({
  label = 'Takes effect',
  draft,
  field = { error: null, 'data-field': 'effectiveFrom' },
  onChange,
}: {
  readonly label?: string;
  readonly draft: EffectiveDraft;
  /** What a form says about it. A time that is too early is called wrong without it. */
  readonly field?: FieldError;
  readonly onChange: (draft: EffectiveDraft) => void;
}) {
  const { error, ...named } = field;
  const isAt = draft.kind === 'at';
  const problem = effectiveFromOf(draft) === null ? error : (effectiveProblem(draft) ?? error);
  return (
    <Stack gap="xs">
      <NativeSelect
        label={label}
        description="Payments from then on count. Earlier payments, and commissions that exist, do not change."
        value={draft.kind}
        {...(isAt ? {} : { error: problem, ...named })}
        onChange={(event) =>
          onChange({ ...draft, kind: KINDS.find((kind) => kind === event.currentTarget.value) ?? 'soon' })
        }
      >
        {draft.planned !== null && (
          <option value="planned">As planned, {formatInstant(draft.planned)}</option>
        )}
        <option value="soon">In two minutes</option>
        <option value="at">At a date …</option>
      </NativeSelect>
      {isAt && (
        <Group gap="sm" align="flex-start" grow {...named}>
          <TextInput
            label="Date"
            type="date"
            required
            withAsterisk={false}
            value={draft.date}
            error={problem}
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
