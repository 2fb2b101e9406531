import { Alert, Button, Group, NativeSelect, Text, TextInput } from '@mantine/core';
import { useCallback, useState } from 'react';
import { api, given, read } from '../api/client.ts';
import type { Schemas } from '../api/client.ts';
import { useIdempotencyKey } from '../api/idempotency.ts';
import { useChange } from '../api/queries.ts';
import { Dialog } from '../dialog.tsx';
import { formatCountOf, formatMoney } from '../format.ts';
import { Section } from '../lists.tsx';
import { AskToPay, watchRaise } from './raise-form.tsx';
import { Steps } from './run-dialogs.tsx';
import { ReportForm } from './run-report.tsx';
import type { Report } from './run-report.tsx';
import { useMoneyChanged, useRunFiles } from './runs.ts';
import { METHODS } from './words.ts';
import type { Run } from './words.ts';

interface FormProps {
  readonly appId: string;
  readonly run: Run;
  readonly onNotRaised: () => void;
  /** It is done, and this became of it. */
  readonly onDone: (what: string) => void;
  readonly onClose: () => void;
}

type File = Schemas['PayoutFile'];

/** Payouts of which one statement can be made. */
interface Choice {
  readonly value: 'all' | File['method'];
  readonly label: string;
  /** Whether all their files were downloaded. */
  readonly isDownloaded: boolean;
}

/** Returns what a founder chooses from: all payouts, and those of each method. Empty with one method. */
function choicesOf(files: readonly File[]): readonly Choice[] {
  const methods = [...new Set(files.map(({ method }) => method))];
  if (methods.length < 2) return [];
  const choiceOf = (value: Choice['value'], name: string, chosen: readonly File[]) => {
    const count = chosen.reduce((sum, { rowCount }) => sum + rowCount, 0);
    const cents = chosen.reduce((sum, { totalCents }) => sum + totalCents, 0);
    return {
      value,
      label: `${name}: ${formatCountOf(count, 'payout')}, ${formatMoney(cents)}`,
      isDownloaded: chosen.every(({ downloadCount }) => downloadCount > 0),
    };
  };
  return [
    choiceOf('all', 'All', files),
    ...methods.map((method) =>
      choiceOf(
        method,
        METHODS[method],
        files.filter((file) => file.method === method),
      ),
    ),
  ];
}

function MarkAllForm({
  appId,
  run,
  reference,
  onReference,
  onNotRaised,
  onDone,
  onClose,
}: FormProps & { readonly reference: string; readonly onReference: (reference: string) => void }) {
  const files = useRunFiles(appId, run.id);
  const choices = choicesOf(files.data?.items ?? []);
  const [chosen, setChosen] = useState<Choice['value'] | null>(null);
  const choice =
    choices.find(({ value }) => value === chosen) ??
    choices.find(({ isDownloaded }) => isDownloaded) ??
    choices.at(0);
  const body = {
    state: 'sent' as const,
    ...given({
      method: choice === undefined || choice.value === 'all' ? undefined : choice.value,
      reference: reference.trim() === '' ? undefined : reference.trim(),
    }),
  };
  const key = useIdempotencyKey(body);
  const moneyChanged = useMoneyChanged(appId);
  const mark = useChange(
    async () =>
      await read(
        api.POST('/apps/{appId}/payout-runs/{runId}/transfers', {
          params: { path: { appId, runId: run.id }, header: { 'Idempotency-Key': key } },
          body,
        }),
      ),
  );
  const send = () =>
    mark.mutate(undefined, {
      onSuccess: ({ sentCount }) => {
        void moneyChanged();
        onDone(
          sentCount === 0
            ? 'Nothing was left to mark.'
            : `${formatCountOf(sentCount, 'payout')} ${sentCount === 1 ? 'is' : 'are'} marked as sent.`,
        );
      },
      onError: watchRaise(onNotRaised),
    });
  return (
    <Steps appId={appId} change={mark} keep="Cancel" action="Mark as sent" onSend={send} onClose={onClose}>
      <Text size="sm">
        You uploaded the files, and the money left. Payouts that are marked already stay as they are.
      </Text>
      {choices.length > 0 && (
        <NativeSelect
          label="Payouts"
          data={choices.map(({ value, label }) => ({ value, label }))}
          value={choice?.value ?? 'all'}
          onChange={(event) => setChosen(event.currentTarget.value as Choice['value'])}
        />
      )}
      {choice?.isDownloaded === false && (
        <Text size="sm">A file with some of these was never downloaded.</Text>
      )}
      <TextInput
        label="Reference"
        description="Of the bank or the payment service, for all of them. May be empty."
        maxLength={200}
        data-autofocus
        value={reference}
        onChange={(event) => onReference(event.currentTarget.value)}
      />
    </Steps>
  );
}

type Step = 'mark' | 'report';

/** What became of the money of a settled run: marks all payouts as sent, or imports the report of a payment service. */
export function RunTransfers({ appId, run }: { readonly appId: string; readonly run: Run }) {
  const [step, setStep] = useState<Step | null>(null);
  const [done, setDone] = useState<string | null>(null);
  const [reference, setReference] = useState('');
  const [report, setReport] = useState<Report | null>(null);
  const close = useCallback(() => setStep(null), []);
  const open = (next: Step) => {
    setDone(null);
    setReference('');
    setReport(null);
    setStep(next);
  };
  return (
    <Section
      id="transfers"
      title="Transfers"
      hint="After the upload, say what became of the money. Creators see it with their payouts."
    >
      <div className="surface part">
        <Group gap="xs">
          <Button variant="default" onClick={() => open('mark')}>
            Mark all as sent …
          </Button>
          <Button variant="default" onClick={() => open('report')}>
            Import a report …
          </Button>
        </Group>
        <Text size="sm" c="dimmed" mt="xs">
          A report of the payment service says which payments arrived and which came back.
        </Text>
        <div role="status">
          {done !== null && (
            <Alert color="teal" variant="light" mt="sm">
              <Text size="sm">{done}</Text>
            </Alert>
          )}
        </div>
      </div>
      <Dialog
        isOpen={step !== null}
        onClose={close}
        size={step === 'mark' ? 'md' : 'lg'}
        title={step === 'mark' ? 'Mark all payouts as sent' : 'Import a report'}
      >
        {step !== null && (
          <AskToPay onCancel={close}>
            {(onNotRaised) => {
              const form = {
                appId,
                run,
                onNotRaised,
                onClose: close,
                onDone: (what: string) => {
                  setDone(what);
                  close();
                },
              };
              return step === 'mark' ? (
                <MarkAllForm {...form} reference={reference} onReference={setReference} />
              ) : (
                <ReportForm {...form} report={report} onReport={setReport} />
              );
            }}
          </AskToPay>
        )}
      </Dialog>
    </Section>
  );
}
