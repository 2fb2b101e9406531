import type { TimeseriesPoint } from '../../db/timeseries.ts';

/** A point of a timeseries. */
export function presentPoint(point: TimeseriesPoint) {
  const { at, clicks, installs, identified, paidUsers, revenueCents, commissionCents } = point;
  return { at, clicks, installs, identified, paid: paidUsers, revenueCents, commissionCents };
}
