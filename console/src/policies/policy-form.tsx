import { Button, Group, Stack, Text } from '@mantine/core';
import { useState } from 'react';
import type { ReactNode } from 'react';
import { Problem } from '../api/client.ts';
import { Dialog } from '../dialog.tsx';
import { formatInstant } from '../format.ts';
import { useLeaveGuard } from '../leave/leave-guard.tsx';
import { ErrorBox } from '../parts.tsx';
import { isRaised, RaiseForm, watchRaise } from '../payouts/raise-form.tsx';
import { useCurrentSession, usePermission } from '../session.ts';
import { needsToPay, problemOf, termsOf } from './draft.ts';
import type { TermsDraft } from './draft.ts';
import { canTakeEffect, EffectiveField, effectiveFromOf, insteadOf } from './effective.tsx';
import { Preview } from './preview.tsx';
import type { Publication } from './publish.ts';
import type { Version } from './queries.ts';
import { TermsFields } from './terms-fields.tsx';

/** Returns what the page calls the fields that an error is about. */
const labelsOf = (error: Error): Readonly<Record<string, string>> => ({
  name: 'Name',
  effectiveFrom: 'Takes effect',
  ...Object.fromEntries(
    (error instanceof Problem ? error.fields : []).flatMap(({ path }) => {
      const [, index] = /^rules\.(\d+)/.exec(path) ?? [];
      return index === undefined ? [] : [[path, `Rule ${Number(index) + 1}`]];
    }),
  ),
});

/** The form of a version beside the preview of its rules. */
export function PolicyForm({
  appId,
  draft,
  onDraft,
  isEdited = false,
  missingBefore = '',
  action,
  scheduled,
  before,
  after,
  change,
  onPublish,
  onCancel,
}: {
  readonly appId: string;
  readonly draft: TermsDraft;
  readonly onDraft: (draft: TermsDraft) => void;
  /** Whether something was entered in `before`. */
  readonly isEdited?: boolean;
  /** What is missing in `before`, as a sentence. Empty for nothing. */
  readonly missingBefore?: string;
  /** The text of the button. */
  readonly action: string;
  /** The version of the policy that takes effect next. The new one takes its place, unless another time is chosen. */
  readonly scheduled?: Version | null;
  readonly before?: ReactNode;
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
  const problem = problemOf(draft);
  const terms = problem === null ? termsOf(draft) : null;
  const effectiveFrom = effectiveFromOf(effective);
  const publish = () => {
    if (terms === null || effectiveFrom === null) return;
    setIsAsking(false);
    onPublish({ terms, effectiveFrom }, { onError: watchRaise(() => setIsAsking(true)), release });
  };
  const noDate = effectiveFrom === null ? 'Choose the day on which it takes effect.' : '';
  const missing = missingBefore || (problem ?? '') || noDate;
  const canPublish = canWrite && missing === '' && terms !== null && canTakeEffect(effective);
  const isNotRaised = change.error instanceof Problem && change.error.code === 'session_not_raised';
  return (
    <>
      {question}
      <div className="policy-editor">
        <Stack gap="md">
          {before}
          <TermsFields draft={draft} onChange={onDraft} />
        </Stack>
        <Preview appId={appId} terms={terms} problem={problem} />
        {/* Only the last fields: Enter in a field of a rule does not publish it. */}
        <form
          noValidate
          onSubmit={(event) => {
            event.preventDefault();
            if (!canPublish) return;
            if (needsToPay(terms) && !isRaised(session)) setIsAsking(true);
            else publish();
          }}
        >
          <Stack gap="md">
            <div className="surface part">
              <Stack gap="md">
                {after}
                <EffectiveField draft={effective} onChange={setEffective} />
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
            {change.error !== null && !isNotRaised && (
              <ErrorBox error={change.error} labels={labelsOf(change.error)} />
            )}
            <Group justify="flex-end" gap="sm">
              <Text size="sm" className="quiet" role="status" style={{ flex: '1 1 200px' }}>
                {canWrite ? missing : 'Publishing needs the permission “write”, which your key lacks.'}
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
              <Button type="submit" loading={change.isPending} disabled={!canPublish}>
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
