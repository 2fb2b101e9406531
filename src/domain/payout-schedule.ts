/** When the payout run of each month is drafted, and its terms. */
export interface PayoutSchedule {
  /** From 1 to 28, so that each month has it. */
  readonly day: number;
  /** A name in the time zone database. */
  readonly timezone: string;
  /** Creators to whom less is due are left out. US cents. */
  readonly minimumCents: number;
  /** What it does with creators without a payee. */
  readonly withoutPayee: 'exclude' | 'include';
}

/** A date of a wall clock. */
interface LocalDate {
  readonly year: number;
  /** From 1 to 12. */
  readonly month: number;
  readonly day: number;
}

/** Formats that are made once per time zone: making one takes a hundred times as long as using it. */
const formats = new Map<string, Intl.DateTimeFormat>();

function formatOf(timezone: string): Intl.DateTimeFormat {
  const known = formats.get(timezone);
  if (known !== undefined) return known;
  const format = new Intl.DateTimeFormat('en-US', {
    calendar: 'iso8601',
    numberingSystem: 'latn',
    timeZone: timezone,
    year: 'numeric',
    month: 'numeric',
    day: 'numeric',
  });
  formats.set(timezone, format);
  return format;
}

function localDate(at: number, timezone: string): LocalDate {
  const parts = new Map(
    formatOf(timezone)
      .formatToParts(at)
      .map(({ type, value }) => [type, Number(value)]),
  );
  return { year: parts.get('year') ?? 0, month: parts.get('month') ?? 0, day: parts.get('day') ?? 0 };
}

/** Returns a date such as `2026-11-15`. These texts sort as their dates do: instants are of the years 1970 to 9999. */
const dateText = ({ year, month, day }: LocalDate): string =>
  `${year}-${String(month).padStart(2, '0')}-${String(day).padStart(2, '0')}`;

/**
 * Returns the date of the next run by the wall clock of the schedule, such as `2026-11-15`: today, if it is the day, and next month if the run
 * of this month is over. `now` is epoch ms.
 */
export function nextRunDate(
  { day, timezone }: Pick<PayoutSchedule, 'day' | 'timezone'>,
  now: number,
  isMonthOver = false,
): string {
  const { year, month, day: today } = localDate(now, timezone);
  if (today <= day && !isMonthOver) return dateText({ year, month, day });
  return dateText(month === 12 ? { year: year + 1, month: 1, day } : { year, month: month + 1, day });
}

/**
 * Returns the month, such as `2026-11`, whose run is the last one that is due at `now`: the last month whose day has begun by the wall
 * clock of the schedule. Null if that was before the day on which the schedule was made, `since`. Instants are epoch ms.
 *
 * Only dates are compared, so a day that begins late, or twice, when the clock is changed makes no difference.
 */
export function monthThatIsDue(
  { day, timezone }: Pick<PayoutSchedule, 'day' | 'timezone'>,
  since: number,
  now: number,
): string | null {
  const today = localDate(now, timezone);
  const isThisMonth = today.day >= day;
  const isBeforeJanuary = !isThisMonth && today.month === 1;
  const due = dateText({
    year: isBeforeJanuary ? today.year - 1 : today.year,
    month: isThisMonth ? today.month : isBeforeJanuary ? 12 : today.month - 1,
    day,
  });
  return due < dateText(localDate(since, timezone)) ? null : due.slice(0, 7);
}
