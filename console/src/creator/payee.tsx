import { countsText, METHODS, PROBLEMS } from '../creators/payee-words.ts';
import { Section } from '../lists.tsx';
import type { Creator } from './queries.ts';

/** Where the money of the creator goes, as the founder has noted it. */
export function Payee({
  payee: { method, maskedRecipient, recipientProblem, countsFrom },
  appName,
}: {
  readonly payee: NonNullable<Creator['payee']>;
  readonly appName: string;
}) {
  return (
    <Section id="payee" title="Where your money goes">
      <div className="surface" style={{ padding: '16px 20px' }}>
        <p style={{ margin: 0, overflowWrap: 'anywhere' }}>
          {METHODS[method]}
          {maskedRecipient !== null && ` · ${maskedRecipient}`}
          {method !== 'none' && ` · ${countsText(countsFrom)}`}
        </p>
        <p className="quiet" style={{ margin: '4px 0 0' }}>
          {recipientProblem === null ? '' : `${PROBLEMS[recipientProblem]} `}
          {appName} has noted it. Tell them at once if it is not right.
        </p>
      </div>
    </Section>
  );
}
