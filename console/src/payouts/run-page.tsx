import { Alert, Anchor, Button, Group, Progress, Stack, Text } from '@mantine/core';
import { useCallback, useState } from 'react';
import { Link, useParams } from 'react-router';
import { Problem } from '../api/client.ts';
import { formatCount, formatCountOf, formatInstant, formatMoney } from '../format.ts';
import { Section } from '../lists.tsx';
import { ErrorBox, NoPermission, PageHead, Waiting } from '../parts.tsx';
import { Tag } from '../parts/badges.tsx';
import { Figures } from '../parts/figures.tsx';
import { usePermission } from '../session.ts';
import { RunDialog } from './run-dialogs.tsx';
import { RunFiles } from './run-files.tsx';
import { LeftOut, NotPaidByRun, RunItems } from './run-lists.tsx';
import { RunTransfers } from './run-transfers.tsx';
import { useRun } from './runs.ts';
import { drafterOf, itemsOf, keyName, progressOf, RUN_STATUSES, sentenceOf } from './words.ts';
import type { Run } from './words.ts';

const PERCENT = 100;

/** How far a run is that is being paid, and what came of it once it is settled. Its changes are announced. */
function Result({ run }: { readonly run: Run }) {
  const { kind, status, itemCount, settledCount, paidCount, paidCents } = run;
  const unpaid = itemCount - paidCount;
  return (
    <div role="status">
      {status === 'approved' && (
        <div className="surface part">
          <Text size="sm" fw={500} mb="xs">
            {progressOf(run)}
          </Text>
          <Progress
            value={(settledCount / itemCount) * PERCENT}
            aria-label="Creators who are settled"
            animated={run.stoppedAt === null}
          />
        </div>
      )}
      {status === 'settled' && (
        <Alert
          color={unpaid === 0 ? 'teal' : 'yellow'}
          variant="light"
          title={
            paidCount === 0
              ? kind === 'pay'
                ? 'Nobody was paid'
                : 'No payout is in a new file'
              : kind === 'pay'
                ? `${formatMoney(paidCents)} are booked for ${formatCountOf(paidCount, 'creator')}`
                : `${formatMoney(paidCents)} are in new files, for ${formatCountOf(paidCount, 'payout')}`
          }
        >
          <Text size="sm">
            {paidCount > 0 &&
              'Now send the money: upload the files below at your payment services, each once. '}
            {unpaid > 0 &&
              `${itemsOf(run, unpaid)} ${unpaid === 1 ? 'was' : 'were'} not ${kind === 'pay' ? 'paid' : 'sent again'}, for the reasons below.`}
          </Text>
        </Alert>
      )}
    </div>
  );
}

function Facts({ run }: { readonly run: Run }) {
  return (
    <Section id="facts" title="About this run">
      <div className="surface part">
        <dl className="facts">
          <dt>Drafted</dt>
          <dd>
            {formatInstant(run.createdAt)} by {drafterOf(run)}
          </dd>
          <dt>Creators without a payee</dt>
          <dd>{run.withoutPayee === 'include' ? 'Are paid, too' : 'Are left out'}</dd>
          {run.kind === 'pay' && (
            <>
              <dt>Minimum</dt>
              <dd>{run.minimumCents === 0 ? 'None' : formatMoney(run.minimumCents)}</dd>
            </>
          )}
          {run.approvedAt !== null && run.approvedBy !== null && (
            <>
              <dt>Approved</dt>
              <dd>
                {formatInstant(run.approvedAt)} by {keyName(run.approvedBy)}
              </dd>
            </>
          )}
          {run.stoppedAt !== null && (
            <>
              <dt>Cancelled</dt>
              <dd>{formatInstant(run.stoppedAt)}, while it was being paid</dd>
            </>
          )}
          <dt>Number</dt>
          <dd className="code-text">{run.id}</dd>
        </dl>
      </div>
    </Section>
  );
}

function RunContent({ appId, run }: { readonly appId: string; readonly run: Run }) {
  const isApproved = run.approvedAt !== null;
  return (
    <Stack gap="xl">
      <Figures
        figures={[
          { name: 'Total', value: formatMoney(run.totalCents) },
          { name: run.kind === 'pay' ? 'Creators' : 'Payouts', value: formatCount(run.itemCount) },
          ...(isApproved
            ? [
                {
                  name: run.kind === 'pay' ? 'Booked' : 'Sent again',
                  value: formatMoney(run.paidCents),
                  hint: `${run.kind === 'pay' ? 'for ' : ''}${itemsOf(run, run.paidCount)}`,
                },
              ]
            : []),
        ]}
      />
      {isApproved && <Result run={run} />}
      {run.status === 'settled' && <RunFiles appId={appId} run={run} />}
      {run.status === 'settled' && run.paidCount > 0 && <RunTransfers appId={appId} run={run} />}
      <NotPaidByRun appId={appId} run={run} />
      <RunItems appId={appId} run={run} />
      <LeftOut appId={appId} run={run} />
      <Facts run={run} />
    </Stack>
  );
}

/** The buttons of what can be done with a run. */
function Actions({
  run,
  onStep,
}: {
  readonly run: Run;
  readonly onStep: (step: 'approve' | 'cancel') => void;
}) {
  const isDraft = run.status === 'draft';
  if (!isDraft && (run.status !== 'approved' || run.stoppedAt !== null)) return null;
  return (
    <Group gap="xs">
      <Button variant="default" onClick={() => onStep('cancel')}>
        {isDraft ? 'Cancel the draft …' : 'Pay nobody further …'}
      </Button>
      {isDraft && run.itemCount > 0 && <Button onClick={() => onStep('approve')}>Approve …</Button>}
    </Group>
  );
}

export default function RunPage() {
  const { appId = '', runId = '' } = useParams();
  const canRead = usePermission('read');
  const run = useRun(appId, runId, canRead);
  const [step, setStep] = useState<'approve' | 'cancel' | null>(null);
  const close = useCallback(() => setStep(null), []);
  const content = () => {
    if (!canRead) return <NoPermission permission="read" what="payout runs" />;
    if (run.data !== undefined) return <RunContent appId={appId} run={run.data} />;
    if (run.error instanceof Problem && run.error.status === 404)
      return <Text size="sm">There is no such payout run in this app.</Text>;
    if (run.error !== null) return <ErrorBox error={run.error} retry={() => void run.refetch()} />;
    return <Waiting what="the payout run" />;
  };
  const { data } = run;
  return (
    <>
      <Anchor component={Link} to={`/apps/${appId}/payouts/runs`} size="sm">
        All payout runs
      </Anchor>
      <PageHead
        title={data === undefined ? 'Payout run' : `Payout run of ${formatInstant(data.createdAt)}`}
        aside={data !== undefined && <Actions run={data} onStep={setStep} />}
      >
        {data !== undefined && (
          <>
            <Tag tone={RUN_STATUSES[data.status].tone}>{RUN_STATUSES[data.status].word}</Tag>{' '}
            {sentenceOf(data)}
          </>
        )}
      </PageHead>
      {run.error !== null && data !== undefined && (
        <ErrorBox error={run.error} retry={() => void run.refetch()} />
      )}
      {content()}
      {data !== undefined && <RunDialog appId={appId} run={data} step={step} onClose={close} />}
    </>
  );
}
