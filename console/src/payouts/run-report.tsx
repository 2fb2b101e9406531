import { Alert, Anchor, Button, FileButton, Group, Select, Stack, Text } from '@mantine/core';
import { parse } from 'csv-parse/browser/esm/sync';
import { useEffect, useEffectEvent, useRef } from 'react';
import { Link } from 'react-router';
import { api, given, Problem, read } from '../api/client.ts';
import type { Schemas } from '../api/client.ts';
import { useIdempotencyKey } from '../api/idempotency.ts';
import { useChange, useStep } from '../api/queries.ts';
import { formatCount, formatCountOf, formatMoney } from '../format.ts';
import { ErrorBox } from '../parts.tsx';
import { useCurrentSession } from '../session.ts';
import { isRaised, watchRaise } from './raise-form.tsx';
import { Steps } from './run-dialogs.tsx';
import { useMoneyChanged } from './runs.ts';
import type { Run } from './words.ts';

type Results = Schemas['PayoutRunResults'];
type Meaning = Results['statuses'][number]['meaning'];

/** A report that was chosen. */
export interface Report {
  readonly name: string;
  readonly csv: string;
  readonly columns: { readonly status: string; readonly reference?: string | null } | null;
  readonly meanings: Readonly<Record<string, Meaning>>;
}

const MEANINGS: readonly { readonly value: Meaning; readonly label: string }[] = [
  { value: 'sent', label: 'The money arrived' },
  { value: 'returned', label: 'It came back' },
  { value: 'pending', label: 'Neither yet' },
];

const OUTCOMES: Readonly<Record<Results['rows'][number]['outcome'], string>> = {
  sent: 'Arrived',
  returned: 'Came back',
  conflict: 'In conflict',
  unchanged: 'Known before',
  pending: 'Neither yet',
  unknown: 'Unknown word',
};

/** Returns the columns of a report. Empty if it can't be read, which the service explains. */
function columnsOf(csv: string): string[] {
  const [line = ''] = csv.split(/\r?\n/, 1);
  const delimiter =
    [',', ';', '\t'].toSorted((a, b) => line.split(b).length - line.split(a).length)[0] ?? ',';
  try {
    const [header = []] = parse(line, { delimiter, bom: true, trim: true, relax_quotes: true }) as string[][];
    return [...new Set(header.filter((name) => name !== ''))];
  } catch {
    return [];
  }
}

const bodyOf = ({ csv, columns, meanings }: Report) => ({
  csv,
  ...given({ columns: columns ?? undefined }),
  ...(Object.keys(meanings).length > 0 && { meanings: { ...meanings } }),
});

const isAboutColumns = (error: Error | null) =>
  error instanceof Problem && error.fields.some(({ path }) => path.startsWith('columns'));

function Counts({ results }: { readonly results: Results }) {
  const {
    sentCount,
    returnedCount,
    conflictCount,
    unchangedCount,
    pendingCount,
    unknownCount,
    unmatchedCount,
  } = results;
  const facts = [
    ['Arrived', sentCount],
    ['Came back', returnedCount],
    ['In conflict', conflictCount],
    ['Known before', unchangedCount],
    ['Neither yet', pendingCount],
    ['Unknown word', unknownCount],
    ['Rows that are not of this run', unmatchedCount],
  ] as const;
  return (
    <dl className="facts">
      {facts
        .filter(([name, count]) => count > 0 || name === 'Arrived' || name === 'Came back')
        .map(([name, count]) => (
          <div key={name} style={{ display: 'contents' }}>
            <dt>{name}</dt>
            <dd>{formatCount(count)}</dd>
          </div>
        ))}
    </dl>
  );
}

/** The payouts of a report that did not simply arrive. */
function Exceptions({ appId, rows }: Pick<Results, 'rows'> & { readonly appId: string }) {
  if (rows.length === 0) return null;
  return (
    <div
      style={{ maxHeight: 260, overflow: 'auto' }}
      tabIndex={0}
      role="region"
      aria-label="Payouts that did not arrive"
    >
      <table className="rows">
        <thead>
          <tr>
            <th scope="col">Creator</th>
            <th scope="col">Report</th>
            <th scope="col">Meaning</th>
            <th scope="col" className="number">
              Amount
            </th>
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={row.itemId}>
              <td style={{ overflowWrap: 'anywhere' }}>{row.affiliateName}</td>
              <td style={{ overflowWrap: 'anywhere' }}>{row.status}</td>
              <td>
                {row.outcome === 'conflict' ? (
                  <Anchor component={Link} to={`/apps/${appId}/payouts/${row.payoutId}`} size="sm">
                    {OUTCOMES[row.outcome]}
                  </Anchor>
                ) : (
                  OUTCOMES[row.outcome]
                )}
              </td>
              <td className="number lead" data-name="Amount">
                {formatMoney(row.amountCents)}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** Says what to do about payouts of which the report contradicts itself, or what is stated. */
function Conflicts({ conflictCount }: Pick<Results, 'conflictCount'>) {
  if (conflictCount === 0) return null;
  return (
    <Alert
      color="yellow"
      variant="light"
      title={`${formatCountOf(conflictCount, 'payout')} in conflict: look at ${conflictCount === 1 ? 'it' : 'each'} before you send money again`}
    >
      <Text size="sm">
        The money may have come back by one transfer and arrived by another, as when a file is uploaded again.
        None of these is marked as returned, and no run sends one again that was. Look at your payment service
        where the money is, and open the payout. If all transfers came back, press “Mark as returned”. If it
        is marked as returned and the money arrived, press “Withdraw the return”. If the money did come back,
        press “Withdraw the return”, then “Mark as returned”.
      </Text>
    </Alert>
  );
}

/** Asks what the words mean that the service does not know. */
function UnknownWords({
  statuses,
  report,
  onReport,
}: Pick<Results, 'statuses'> & { readonly report: Report; readonly onReport: (report: Report) => void }) {
  const asked = statuses.filter(
    ({ status, meaning }) => meaning === 'unknown' || Object.hasOwn(report.meanings, status),
  );
  return asked.map(({ status, count }) => (
    <Select
      key={status}
      label={`“${status}” means`}
      description={`${formatCountOf(count, 'payout')}. Nothing is stated of ${count === 1 ? 'it' : 'them'} until you say it.`}
      data={MEANINGS}
      value={report.meanings[status] ?? null}
      onChange={(meaning) => {
        const { [status]: _, ...others } = report.meanings;
        onReport({
          ...report,
          meanings: meaning === null ? others : { ...others, [status]: meaning as Meaning },
        });
      }}
    />
  ));
}

const actionOf = ({ sentCount, returnedCount, conflictCount }: Results) =>
  [
    sentCount > 0 && `${formatCount(sentCount)} as sent`,
    returnedCount > 0 && `${formatCount(returnedCount)} as returned`,
    conflictCount > 0 && `${formatCount(conflictCount)} as in conflict`,
  ]
    .filter((part) => part !== false)
    .join(', ')
    .replace(/, ([^,]*)$/, ' and $1');

/** Reads the report of a payment service about a run, shows what it states, and then states it. */
export function ReportForm({
  appId,
  run,
  report,
  onReport,
  onNotRaised,
  onDone,
  onClose,
}: {
  readonly appId: string;
  readonly run: Run;
  /** Null before one is chosen. */
  readonly report: Report | null;
  readonly onReport: (report: Report) => void;
  readonly onNotRaised: () => void;
  readonly onDone: (what: string) => void;
  readonly onClose: () => void;
}) {
  const moneyChanged = useMoneyChanged(appId);
  const path = { appId, runId: run.id };
  const preview = useStep(
    async (chosen: Report) =>
      await read(
        api.POST('/apps/{appId}/payout-runs/{runId}/results/preview', {
          params: { path },
          body: bodyOf(chosen),
        }),
      ),
  );
  const results = preview.data;
  const body =
    report === null || results === undefined
      ? null
      : {
          ...bodyOf(report),
          expected: { sentCount: results.sentCount, returnedCount: results.returnedCount },
        };
  const key = useIdempotencyKey(body ?? {});
  const state = useChange(async () => {
    if (body === null) throw new Error('No report is chosen.');
    return await read(
      api.POST('/apps/{appId}/payout-runs/{runId}/results', {
        params: { path, header: { 'Idempotency-Key': key } },
        body,
      }),
    );
  });
  const show = (chosen: Report) => {
    onReport(chosen);
    state.reset();
    preview.mutate(chosen, { onError: watchRaise(onNotRaised) });
  };
  // The form was closed while it asked for a key. Without one, it would ask again.
  const session = useCurrentSession();
  const showAgain = useEffectEvent(() => {
    if (report !== null && isRaised(session)) show(report);
  });
  useEffect(() => showAgain(), []);
  const again = useRef<() => void>(null);
  const choose = async (file: File | null) => {
    if (file !== null) show({ name: file.name, csv: await file.text(), columns: null, meanings: {} });
  };
  const columns = report === null ? [] : columnsOf(report.csv);
  const action = results === undefined ? '' : actionOf(results);
  return (
    <Steps
      appId={appId}
      change={{ error: state.error, isPending: state.isPending }}
      keep={action === '' ? 'Close' : 'Cancel'}
      action={`Mark ${action}`}
      isOver={action === '' || preview.isPending}
      onSend={() =>
        state.mutate(undefined, {
          onSuccess: (stated) => {
            void moneyChanged();
            onDone(`The report is imported: ${actionOf(stated) || 'nothing was new'}.`);
          },
          onError: watchRaise(onNotRaised),
        })
      }
      onClose={onClose}
    >
      <Stack gap="sm">
        <Text size="sm">
          Choose the CSV that your payment service made of these payments. Its rows are found by the keys of
          the files, never by amounts. You see what it says before anything changes.
        </Text>
        <Group>
          <FileButton
            accept="text/csv,.csv,.tsv,.txt"
            resetRef={again}
            onChange={(file) => {
              // The same file can be chosen again.
              again.current?.();
              void choose(file);
            }}
            inputProps={{ 'aria-label': 'Report' }}
          >
            {(props) => (
              <Button variant="default" loading={preview.isPending} {...props}>
                {report === null ? 'Choose a file …' : 'Choose another file …'}
              </Button>
            )}
          </FileButton>
          {report !== null && <Text size="sm">{report.name}</Text>}
        </Group>
        {report !== null && (isAboutColumns(preview.error) || report.columns !== null) && (
          <Select
            label="Column that says what became of a payment"
            data={columns}
            value={report.columns?.status ?? null}
            onChange={(status) => status !== null && show({ ...report, columns: { status } })}
          />
        )}
        {report?.columns != null && results !== undefined && (
          <Select
            label="Column with the reference of each payment"
            description="It tells two transfers of one payout apart. Leave it empty if there is none."
            data={columns}
            clearable
            value={results.columns.reference}
            onChange={(reference) =>
              report.columns !== null &&
              show({ ...report, columns: { status: report.columns.status, reference } })
            }
          />
        )}
        {preview.error !== null && !isAboutColumns(preview.error) && <ErrorBox error={preview.error} />}
        {results !== undefined && report !== null && (
          <>
            <Counts results={results} />
            <Conflicts conflictCount={results.conflictCount} />
            <UnknownWords statuses={results.statuses} report={report} onReport={show} />
            <Exceptions appId={appId} rows={results.rows} />
          </>
        )}
      </Stack>
    </Steps>
  );
}
