import type { ReactNode } from 'react';
import { Link } from 'react-router';
import type { Schemas } from '../api/client.ts';
import { formatMoney } from '../format.ts';

interface Part {
  readonly name: string;
  readonly cents: number;
  readonly hint: ReactNode;
  /** The place in the bar. Null for what has none: a negative balance, and what is booked already. */
  readonly tone: 'held' | 'due' | null;
}

/** What creators are owed at present and what they were paid, whatever the range: as one bar, and in words. */
export function Owed({
  appId,
  overview: { commissions, due },
}: {
  readonly appId: string;
  readonly overview: Schemas['AppOverview'];
}) {
  const parts: readonly Part[] = [
    { name: 'Held', cents: commissions.pending, hint: 'in the hold period', tone: 'held' },
    {
      name: 'Due',
      cents: due.payableCents,
      hint:
        due.payableCents > 0 ? <Link to={`/apps/${appId}/payouts`}>Pay creators</Link> : 'nothing to pay now',
      tone: 'due',
    },
    ...(due.negativeCents < 0
      ? [
          {
            name: 'Negative balances',
            cents: due.negativeCents,
            hint: 'refunds after a payout; later commissions outweigh them',
            tone: null,
          },
        ]
      : []),
    { name: 'Booked', cents: commissions.paid, hint: 'in payouts, since the beginning', tone: null },
  ];
  const whole = parts.reduce((sum, { tone, cents }) => sum + (tone === null ? 0 : Math.max(0, cents)), 0);
  return (
    <>
      {whole > 0 && (
        <div className="owed-bar" aria-hidden="true">
          {parts.map(
            ({ name, tone, cents }) =>
              tone !== null &&
              cents > 0 && <span key={name} data-tone={tone} style={{ flexGrow: cents / whole }} />,
          )}
        </div>
      )}
      <dl className="owed">
        {parts.map(({ name, cents, hint, tone }) => (
          <div key={name}>
            <dt>
              <span className="dot" data-tone={tone ?? 'none'} aria-hidden="true" />
              {name}
            </dt>
            <dd>
              <b>{formatMoney(cents)}</b>
              <span className="quiet">{hint}</span>
            </dd>
          </div>
        ))}
      </dl>
    </>
  );
}
