import { DAY_MS } from '../../src/domain/time.ts';
import { MoneyModel } from '../../test/support/money-model.ts';
import type { Books } from '../../test/support/money-model.ts';
import type { Currency } from '../../test/support/money-facts.ts';
import { reportOf } from './events.ts';
import { HOLD_DAYS, WINDOW_DAYS } from './plan.ts';
import type { Plan, Story } from './plan.ts';

/*
 * The books that a run must end with, from the model of the tests, which has no code of the service. Every story has a
 * model of its own: stories share no user and no payment.
 */

const dayOf = (at: number) => Math.floor(at / DAY_MS);

/** The worth of a euro in thousandths of a dollar, and of a yen in ten-thousandths, on a day. */
const euro = (day: number) => 1_050 + (day % 40);
const yen = (day: number) => 60 + (day % 7);

/** Returns the rates of the last days as a file for `tributary rates import`. */
export function ratesFile(now: number): string {
  const lines = ['date,currency,usd_rate'];
  for (let day = dayOf(now) - 70; day <= dayOf(now); day += 1) {
    const date = new Date(day * DAY_MS).toISOString().slice(0, 10);
    lines.push(
      `${date},EUR,${(euro(day) / 1_000).toFixed(3)}`,
      `${date},JPY,${(yen(day) / 10_000).toFixed(4)}`,
    );
  }
  return `${lines.join('\n')}\n`;
}

function toUsd(minor: bigint, currency: Currency, at: number): readonly [bigint, bigint] {
  switch (currency) {
    case 'usd':
      return [minor, 1n];
    case 'eur':
      return [minor * BigInt(euro(dayOf(at))), 1_000n];
    case 'jpy':
      return [minor * 100n * BigInt(yen(dayOf(at))), 10_000n];
  }
}

/** What one payment must have earned. */
export interface ExpectedPayment extends Books {
  readonly app: number;
  readonly ref: string;
  /** Epoch ms. */
  readonly dueAt: number;
}

/** Names a creator of the plan. */
export const creatorName = (app: number, creator: number): string => `${app}/creator-${creator}`;

function booksOfStory(plan: Plan, story: Story, epoch: number): ExpectedPayment[] {
  const model = new MoneyModel({ windowMs: WINDOW_DAYS * DAY_MS, toUsd });
  const { app, facts } = story;
  for (const [n, { rateBps, isPaused }] of (plan.apps[app] ?? []).entries())
    model.setCreator(creatorName(app, n), { rateBps, isPaused });
  for (const fact of facts)
    if (fact.kind === 'install') model.install(fact.device, `${app}/${fact.slug}`, epoch + fact.at);
  for (const fact of facts) if (fact.kind === 'identify') model.identify(fact.device, fact.user);
  const dueAt = new Map<string, number>();
  for (const fact of facts) {
    if (fact.kind !== 'event') continue;
    const report = reportOf(fact.event, epoch);
    if (report === undefined) continue;
    model.report(report);
    if (report.payment !== undefined) dueAt.set(report.payment.ref, report.payment.at + HOLD_DAYS * DAY_MS);
  }
  return [...model.books()].flatMap(([refs, books]) =>
    refs.map((ref) => ({ app, ref, dueAt: dueAt.get(ref) ?? 0, ...books })),
  );
}

/** Returns what each payment of the stories must have earned at the end. */
export function expectedBooks(plan: Plan, stories: readonly Story[], epoch: number): ExpectedPayment[] {
  return stories.flatMap((story) => booksOfStory(plan, story, epoch));
}
