import { formatCount, formatShare } from '../format.ts';
import type { Sums } from './measures.ts';

const STEPS = [
  { name: 'Clicks', unit: 'clicks', of: ({ clicks }: Sums) => clicks },
  { name: 'Installs', unit: 'installs', of: ({ installs }: Sums) => installs },
  { name: 'Users', unit: 'users', of: ({ identified }: Sums) => identified },
  { name: 'Paying users', unit: 'paying users', of: ({ paid }: Sums) => paid },
] as const;

/** The way from a click to a payment, and which part of each step came to the next one. */
export function Funnel({ sums }: { readonly sums: Sums }) {
  const most = Math.max(1, ...STEPS.map(({ of }) => of(sums)));
  return (
    <dl className="funnel">
      {STEPS.map(({ name, of }, index) => {
        const count = of(sums);
        const before = STEPS[index - 1];
        const from = before === undefined ? 0 : before.of(sums);
        // Purchase codes and people bring paying users who are not counted in the step before.
        const hasShare = before !== undefined && from > 0 && count <= from;
        return (
          <div key={name}>
            <dt>{name}</dt>
            <dd>
              <b>{formatCount(count)}</b>
              <span className="quiet">
                {hasShare ? `${formatShare(count / from)} of ${before.unit}` : ''}
              </span>
              <span className="funnel-bar" aria-hidden="true">
                <span style={{ width: `${(count / most) * 100}%` }} />
              </span>
            </dd>
          </div>
        );
      })}
    </dl>
  );
}
