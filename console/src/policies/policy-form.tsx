import { Button, Group, Stack, Text } from '@mantine/core';
import { useMemo, useState } from 'react';
import type { ReactNode } from 'react';
import { Problem } from '../api/client.ts';
import { Dialog } from '../dialog.tsx';
import { formatInstant } from '../format.ts';
import { useLeaveGuard } from '../leave/leave-guard.tsx';
import { useFieldErrors } from '../parts/field-errors.tsx';
import type { FieldErrors } from '../parts/field-errors.tsx';
import { isRaised, RaiseForm, watchRaise } from '../payouts/raise-form.tsx';
import { useCurrentSession, usePermission } from '../session.ts';
import { fieldPathOf, needsToPay, problemsOf, problemWords, termsOf } from './draft.ts';
import type { FieldProblem, TermsDraft } from './draft.ts';
import { EffectiveField, effectiveFromOf, effectiveProblem, insteadOf } from './effective.tsx';
import { Preview } from './preview.tsx';
import type { Publication } from './publish.ts';
import type { Version } from './queries.ts';
import { TermsFields } from './terms-fields.tsx';
import { labelsOf } from './words.ts';

/** Returns the errors of the service at the fields of the form. */
const atFields = (error: Error | null): Error | null =>
  error instanceof Problem && error.fields.length > 0
    ? error.withFields(error.fields.map(({ path, message }) => ({ path: fieldPathOf(path), message })))
    : error;

/** The form of a version beside the preview of its rules. */
export function PolicyForm({
  appId,
  draft,
  onDraft,
  isEdited = false,
  missing = [],
  action,
  scheduled,
  renderBefore,
  after,
  change,
  onPublish,
  onCancel,
}: {
  readonly appId: string;
  readonly draft: TermsDraft;
  readonly onDraft: (draft: TermsDraft) => void;
  /** Whether something was entered in the first fields. */
  readonly isEdited?: boolean;
  /** What is missing in the first fields. */
  readonly missing?: readonly FieldProblem[];
  /** The text of the button. */
  readonly action: string;
  /** The version of the policy that takes effect next. The new one takes its place, unless another time is chosen. */
  readonly scheduled?: Version | null;
  /** Shows the first fields, with what is wrong with them. */
  readonly renderBefore?: (errorAt: FieldErrors<string>['at']) => ReactNode;
  readonly after?: ReactNode;
  readonly change: { readonly error: Error | null; readonly isPending: boolean };
  /** Publishes. Calls `release` before it leaves the page. */
  readonly onPublish: (
    publication: Publication,
    handlers: { readonly onError: (error: Error) => void; readonly release: () => void },
  ) => void;
  readonly onCancel: () => void;
}) {
  const canWrite = usePermission('write');
  const session = useCurrentSession();
  const [firstEffective] = useState(() => insteadOf(scheduled?.effectiveFrom));
  const [effective, setEffective] = useState(firstEffective);
  const [begun] = useState(draft);
  const { question, release } = useLeaveGuard(
    true,
    () => isEdited || draft !== begun || effective !== firstEffective,
  );
  const [isAsking, setIsAsking] = useState(false);
  const problems = problemsOf(draft);
  const [problem] = problems;
  const terms = problem === undefined ? termsOf(draft) : null;
  const effectiveFrom = effectiveFromOf(effective);
  const publish = () => {
    if (terms === null || effectiveFrom === null) return;
    setIsAsking(false);
    onPublish({ terms, effectiveFrom }, { onError: watchRaise(() => setIsAsking(true)), release });
  };
  const order = draft.rules.map(({ key }) => key).join();
  /** What was wrong before the form could be sent, the order of its rules then, and whether that is over. */
  const [attempt, setAttempt] = useState<{
    readonly found: Problem | null;
    readonly order: string;
    readonly isOver: boolean;
  }>({ found: null, order, isOver: false });
  const isNotRaised = change.error instanceof Problem && change.error.code === 'session_not_raised';
  const failed = attempt.isOver || isNotRaised ? attempt.found : (attempt.found ?? change.error);
  // A path counts the rules, so once they are in another order it is about another rule.
  if (attempt.order !== order && failed instanceof Problem && failed.fields.length > 0)
    setAttempt({ found: null, order, isOver: true });
  const error = useMemo(() => atFields(failed), [failed]);
  const errors = useFieldErrors<string>(error, labelsOf(draft));
  const submit = () => {
    const wrongTime = effectiveProblem(effective);
    const found = [
      ...missing,
      ...problems,
      ...(wrongTime === null ? [] : [{ path: 'effectiveFrom', message: wrongTime }]),
    ];
    const problemFound = found.length === 0 ? null : new Problem(400, { errors: found });
    setAttempt({ found: problemFound, order, isOver: false });
    if (found.length > 0 || terms === null) return;
    if (needsToPay(terms) && !isRaised(session)) setIsAsking(true);
    else publish();
  };
  return (
    <>
      {question}
      <div className="policy-editor" {...errors.root}>
        <Stack gap="md">
          {renderBefore?.(errors.at)}
          <TermsFields draft={draft} errorAt={errors.at} onChange={onDraft} />
        </Stack>
        <Preview appId={appId} terms={terms} problem={problem === undefined ? null : problemWords(problem)} />
        {/* Only the last fields: Enter in a field of a rule does not publish it. */}
        <form
          noValidate
          onSubmit={(event) => {
            event.preventDefault();
            if (canWrite) submit();
          }}
        >
          <Stack gap="md">
            <div className="surface part">
              <Stack gap="md">
                {after}
                <EffectiveField
                  draft={effective}
                  field={errors.at('effectiveFrom')}
                  onChange={setEffective}
                />
                {scheduled != null &&
                  effectiveFrom !== null &&
                  (effectiveFrom === undefined || effectiveFrom < scheduled.effectiveFrom) && (
                    <Text size="sm" role="status">
                      Version {scheduled.version} still takes effect at{' '}
                      {formatInstant(scheduled.effectiveFrom)}, and then counts instead of this one.
                    </Text>
                  )}
              </Stack>
            </div>
            {errors.rest}
            <Group justify="flex-end" gap="sm">
              <Text size="sm" className="quiet" role="status" style={{ flex: '1 1 200px' }}>
                {!canWrite && 'Publishing needs the permission “write”, which you do not have.'}
              </Text>
              <Button
                variant="default"
                onClick={() => {
                  release();
                  onCancel();
                }}
              >
                Cancel
              </Button>
              <Button type="submit" loading={change.isPending} disabled={!canWrite}>
                {action}
              </Button>
            </Group>
          </Stack>
        </form>
      </div>
      <Dialog
        isOpen={isAsking}
        onClose={() => setIsAsking(false)}
        title="A payment may cost more than it brings"
      >
        {isAsking && <RaiseForm onRaised={publish} onCancel={() => setIsAsking(false)} />}
      </Dialog>
    </>
  );
}
