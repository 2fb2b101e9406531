import { CircleCheck, OctagonAlert, TriangleAlert } from 'lucide-react';
import { ICON } from '../parts/icon.ts';
import { verdictOf, verdictOfError } from './verdict.ts';
import type { useInstallationState } from './queries.ts';

const ICONS = { good: CircleCheck, wait: TriangleAlert, bad: OctagonAlert } as const;

/** Says in one sentence whether the installation works, and what to do first. Nothing before that is known. */
export function Headline({ state }: { readonly state: ReturnType<typeof useInstallationState> }) {
  const verdict =
    state.error === null
      ? state.data === undefined
        ? null
        : verdictOf(state.data)
      : verdictOfError(state.error);
  const Icon = verdict === null ? null : ICONS[verdict.tone];
  // Always there, so that screen readers announce its changes.
  return (
    <div role="status">
      {verdict !== null && Icon !== null && (
        <p className="headline toned" data-tone={verdict.tone}>
          <Icon {...ICON} size={20} />
          <span>
            <b>{verdict.word}.</b> {verdict.text}
            {verdict.others > 0 &&
              ` ${verdict.others === 1 ? 'One other thing needs' : `${verdict.others} other things need`} you, below.`}
          </span>
        </p>
      )}
    </div>
  );
}
