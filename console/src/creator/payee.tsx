import { Button } from '@mantine/core';
import { lazy, Suspense, useState } from 'react';
import { countsText, METHODS, PROBLEMS } from '../creators/payee-words.ts';
import { formatInstant } from '../format.ts';
import { Section } from '../lists.tsx';
import { seenAs } from './api.ts';
import type { Creator } from './queries.ts';

// Few creators open it, and seldom.
const OwnPayeeDialog = lazy(async () => await import('./payee-dialog.tsx'));

const isAhead = (at: number): boolean => at > Date.now();

/** Says who sets the payee, and from when on the creator can. */
function Who({ appName, payee, payeeCodes }: Creator) {
  if (payeeCodes !== undefined && !isAhead(payeeCodes.from)) {
    return (
      <>
        You set it with a code that is mailed to {payeeCodes.maskedAddress}. Tell {appName} at once if it is
        not right.
      </>
    );
  }
  return (
    <>
      {appName} sets it.{' '}
      {payee === undefined ? 'Tell them where to send your money.' : 'Tell them at once if it is not right.'}
      {payeeCodes !== undefined &&
        ` From ${formatInstant(payeeCodes.from)} on you can set it yourself, since your address ${payeeCodes.maskedAddress} is new here.`}
    </>
  );
}

/** Where the money of the creator goes, and what changes it. */
export function Payee({ creator }: { readonly creator: Creator }) {
  const [isOpen, setOpen] = useState(false);
  const { payee, payeeCodes } = creator;
  const canSet = payeeCodes !== undefined && !isAhead(payeeCodes.from);
  return (
    <Section
      id="payee"
      title="Where your money goes"
      aside={
        canSet && (
          // A founder who sees the page as the creator cannot act for the creator.
          <Button variant="default" size="xs" disabled={seenAs !== null} onClick={() => setOpen(true)}>
            {payee === undefined || payee.method === 'none' ? 'Set …' : 'Change …'}
          </Button>
        )
      }
    >
      <div className="surface" style={{ padding: '16px 20px' }}>
        <p style={{ margin: 0, overflowWrap: 'anywhere' }}>
          {payee === undefined ? 'Not set yet.' : METHODS[payee.method]}
          {payee !== undefined && payee.maskedRecipient !== null && ` · ${payee.maskedRecipient}`}
          {payee !== undefined && payee.method !== 'none' && ` · ${countsText(payee.countsFrom)}`}
        </p>
        <p className="quiet" style={{ margin: '4px 0 0' }}>
          {payee === undefined || payee.recipientProblem === null
            ? ''
            : `${PROBLEMS[payee.recipientProblem]} `}
          <Who {...creator} />
        </p>
      </div>
      {isOpen && (
        <Suspense>
          <OwnPayeeDialog appName={creator.appName} onClose={() => setOpen(false)} />
        </Suspense>
      )}
    </Section>
  );
}
