import { Button, Stack, Text } from '@mantine/core';
import { skipToken, useQuery, useQueryClient } from '@tanstack/react-query';
import { api, read } from '../api/client.ts';
import type { Schemas, Setup } from '../api/client.ts';
import { KEYS, useChange } from '../api/queries.ts';
import { ErrorBox } from '../parts.tsx';

type Report = Schemas['SelfTest'];
type Row = Report['app'][number] | Report['providers'][number]['steps'][number];

const STEPS: Readonly<Record<Row['step'], string>> = {
  secret: 'Webhook secret',
  public_address: 'Address of the service',
  accepted: 'Purchase accepted',
  processed: 'Purchase processed',
  tampered_refused: 'Changed purchase refused',
  read: 'Purchase read correctly',
  code_read: 'Code read correctly',
  repeat_is_duplicate: 'Repeat recognized',
  counted_once: 'Purchase counted once',
  no_money: 'No money from a test',
  real_deliveries: 'Real deliveries',
  in_time: 'Finished in time',
  providers: 'Billing provider',
  public_url: 'Address for providers',
  links: 'Links',
  clicks: 'Clicks',
  installs: 'Installs',
  identified: 'Identified users',
  user_ids: 'User ids',
  purchase_codes: 'Purchase codes',
  exchange_rates: 'Exchange rates',
};

function Result({ ok, level }: { readonly ok: boolean; readonly level: Row['level'] }) {
  const [colour, text] = ok
    ? ['green', 'Passed']
    : level === 'error'
      ? ['red', 'Fix it']
      : ['yellow', 'Check'];
  return (
    <span className="result" data-colour={colour}>
      {text}
    </span>
  );
}

function Rows({ caption, rows }: { readonly caption: string; readonly rows: readonly Row[] }) {
  return (
    <table className="rows">
      <caption style={{ textAlign: 'left', fontWeight: 600, fontSize: 14, padding: '4px 0' }}>
        {caption}
      </caption>
      <thead>
        <tr>
          <th scope="col">Result</th>
          <th scope="col">Step</th>
          <th scope="col">Found</th>
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => (
          <tr key={row.step}>
            <td style={{ width: 84 }}>
              <Result ok={row.ok} level={row.level} />
            </td>
            <td style={{ width: 170, fontWeight: 500 }}>{STEPS[row.step]}</td>
            <td>
              <span className="quiet">{row.detail}</span>
              {row.fix !== null && <div style={{ marginTop: 4, fontWeight: 500 }}>{row.fix}</div>}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** What the later steps of the set-up say themselves. */
const LATER_STEPS: ReadonlySet<Row['step']> = new Set([
  'links',
  'clicks',
  'installs',
  'identified',
  'user_ids',
]);

interface SelfTest {
  /** Null before the first one of this page. */
  readonly report: Report | null;
  readonly isRunning: boolean;
  readonly error: Error | null;
  readonly run: () => void;
}

/** Runs self-tests. The last report is kept until the page is closed. */
export function useSelfTest(appId: string): SelfTest {
  const client = useQueryClient();
  const last = useQuery<Report>({
    queryKey: ['self-test', appId],
    queryFn: skipToken,
    staleTime: Infinity,
    gcTime: Infinity,
  });
  const test = useChange(
    async () => await read(api.POST('/apps/{appId}/self-test', { params: { path: { appId } } })),
    KEYS.setup(appId),
  );
  return {
    report: last.data ?? null,
    isRunning: test.isPending,
    error: test.error,
    run: () =>
      test.mutate(undefined, { onSuccess: (report) => client.setQueryData(['self-test', appId], report) }),
  };
}

export function SelfTestStep({ setup, test }: { readonly setup: Setup; readonly test: SelfTest }) {
  const tested = (test.report?.providers ?? []).filter(({ configured }) => configured);
  const nameOf = (name: string) => setup.providers.find(({ provider }) => provider === name)?.title ?? name;
  const hasProvider = setup.providers.some(({ configured }) => configured);
  return (
    <Stack gap="md">
      <Text size="sm">
        The service sends itself a signed test purchase for each connected provider, a changed one and a
        repeat. Nothing of it becomes money.
      </Text>
      <div>
        <Button
          variant={test.report === null ? 'filled' : 'default'}
          loading={test.isRunning}
          disabled={!hasProvider}
          onClick={test.run}
        >
          {test.report === null ? 'Run the self-test' : 'Run it again'}
        </Button>
      </div>
      {!hasProvider && (
        <Text size="sm" className="quiet">
          Connect a billing provider first.
        </Text>
      )}
      {test.error !== null && <ErrorBox error={test.error} />}
      <div aria-live="polite">
        {test.report !== null && (
          <Stack gap="md">
            <Text size="sm" fw={600}>
              {test.report.ok
                ? 'Sales can be counted. Rows marked “Check” may be right as they are.'
                : 'No sale can be counted yet. Fix the rows marked “Fix it”, then run the self-test again.'}
            </Text>
            {tested.map(({ provider, steps }) => (
              <Rows key={provider} caption={nameOf(provider)} rows={steps} />
            ))}
            <Rows caption="App" rows={test.report.app.filter(({ step }) => !LATER_STEPS.has(step))} />
          </Stack>
        )}
      </div>
    </Stack>
  );
}
