import { formatCountOf, formatInstant, formatRate } from '../format.ts';
import { Section } from '../lists.tsx';
import type { Creator } from './queries.ts';

/** Sentences of the service, in their order. */
function Lines({ sentences }: { readonly sentences: readonly string[] }) {
  return sentences.map((sentence, index) => <div key={index}>{sentence}</div>);
}

/** What a creator earns: by a policy, with what changes later, or by a rate. */
function Share({ rules: { policy, rateBps } }: { readonly rules: Creator['rules'] }) {
  if (policy === undefined) {
    return (
      <>
        <dt>Your share</dt>
        <dd>{formatRate(rateBps)} of each purchase from now on</dd>
      </>
    );
  }
  // An instant may also change what does not count for the creator.
  const changes = policy.upcoming.filter(
    ({ sentences }, index, all) => sentences.join() !== (all[index - 1] ?? policy).sentences.join(),
  );
  return (
    <>
      <dt>Your share</dt>
      <dd>
        <Lines sentences={policy.sentences} />
        {policy.name !== null && <div className="quiet">By “{policy.name}”</div>}
      </dd>
      {changes.map(({ from, sentences }) => (
        <div key={from} style={{ display: 'contents' }}>
          <dt>From {formatInstant(from)}</dt>
          <dd>
            <Lines sentences={sentences} />
          </dd>
        </div>
      ))}
    </>
  );
}

/** How a creator earns, in words. */
export function Rules({ rules }: { readonly rules: Creator['rules'] }) {
  return (
    <Section id="rules" title="How you earn">
      <div className="surface" style={{ padding: '16px 20px' }}>
        <dl className="facts">
          <Share rules={rules} />
          <dt>Window</dt>
          <dd>
            The app has to be opened for the first time within {formatCountOf(rules.windowDays, 'day')} of the
            click
          </dd>
          <dt>Hold</dt>
          <dd>
            {rules.holdDays === 0
              ? 'A commission is due at once'
              : `A commission is held for ${formatCountOf(rules.holdDays, 'day')}, then it is due`}
          </dd>
          <dt>Refunds</dt>
          <dd>{rules.refunds}</dd>
        </dl>
      </div>
    </Section>
  );
}
