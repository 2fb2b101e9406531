import { Button, Group, Progress, Stack, Text } from '@mantine/core';
import { useInfiniteQuery } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import type { ReactNode } from 'react';
import { api, given, Problem, read } from '../api/client.ts';
import type { Schemas } from '../api/client.ts';
import { formatCount, formatInstant } from '../format.ts';
import { CodeBlock, ErrorBox } from '../parts.tsx';
import { Tag } from '../parts/badges.tsx';
import { MOST_ROWS, RowsCut, RuleRow, RuleTable } from '../parts/rules.tsx';
import { Section } from './section.tsx';

type Part = Schemas['OperatorLedgerCheck'];
type Rule = Part['checks'][number];

/** With more apps, one command checks all of them. */
const MOST_COMMANDS = 3;
/** The rule of the sums, which are the only stored values that a command corrects. */
const SUMS = 'rollups_equal_facts';
const ADMIN = 'npm run -s admin --';
/**
 * How often, and after how long, a part is asked for again: when another one runs, also that of a page that was closed, which
 * takes up to a minute to end; and when the service was not reached.
 */
const WHEN_BUSY = { retries: 6, delayMs: 10_000 };
const WHEN_UNREACHED = { retries: 2, delayMs: 1_000 };
const NEVER = { retries: 0, delayMs: 0 };

function retriesOf(error: Error): typeof NEVER {
  if (!(error instanceof Problem)) return NEVER;
  return error.status === 503 ? WHEN_BUSY : error.status === 0 ? WHEN_UNREACHED : NEVER;
}

/** Adds up the parts of a run by their rules. */
function rulesOf(parts: readonly Part[]): Rule[] {
  const rules = new Map<string, Rule>();
  for (const rule of parts.flatMap(({ checks }) => checks)) {
    const known = rules.get(rule.name);
    rules.set(
      rule.name,
      known === undefined
        ? rule
        : {
            ...rule,
            apps: known.apps + rule.apps,
            violations: known.violations + rule.violations,
            rows: [...known.rows, ...rule.rows].slice(0, MOST_ROWS),
            unfinished: [...known.unfinished, ...rule.unfinished],
          },
    );
  }
  return [...rules.values()];
}

const isBroken = (rule: Rule) => rule.violations > 0;
const holds = (rule: Rule) => !isBroken(rule) && rule.unfinished.length === 0;

/**
 * A run over all apps, part by part, while the page is shown. It begins when it is asked for, since it reads every row. A run
 * that was stopped or has failed goes on where it was.
 */
function useLedgerRun() {
  const [run, setRun] = useState(0);
  const [isStopped, setStopped] = useState(false);
  const query = useInfiniteQuery({
    queryKey: ['ledger-check', run],
    initialPageParam: undefined as string | undefined,
    queryFn: async ({ pageParam, signal }) =>
      await read(
        api.GET('/operator/ledger-check', { params: { query: given({ cursor: pageParam }) }, signal }),
      ),
    getNextPageParam: ({ nextCursor }) => nextCursor ?? undefined,
    enabled: run > 0,
    retry: (failures, error) => failures < retriesOf(error).retries,
    retryDelay: (_, error) => retriesOf(error).delayMs,
    // A page that is shown again begins with no run.
    gcTime: 0,
    staleTime: Infinity,
    refetchOnWindowFocus: false,
    refetchOnReconnect: false,
  });
  const { data, error, failureReason, fetchNextPage, hasNextPage, isFetching, refetch } = query;
  useEffect(() => {
    if (hasNextPage && !isFetching && !isStopped && error === null) void fetchNextPage();
  }, [error, fetchNextPage, hasNextPage, isFetching, isStopped]);
  const last = data?.pages.at(-1);
  return {
    rules: rulesOf(data?.pages ?? []),
    last,
    error,
    isWaiting: isFetching && failureReason !== null && retriesOf(failureReason) === WHEN_BUSY,
    isFetching,
    isStopped,
    isFinished: last !== undefined && last.nextCursor === null,
    retry: () => void (data === undefined ? refetch() : fetchNextPage()),
    setStopped,
    start: () => {
      setStopped(false);
      setRun(run + 1);
    },
  };
}

/** The ids of the rows that break a rule, by their apps, and whether there are more than are listed. */
function BrokenRows({ rule: { rows, violations } }: { readonly rule: Rule }) {
  const apps = new Map<string, Rule['rows']>();
  for (const row of rows) apps.set(row.appId, [...(apps.get(row.appId) ?? []), row]);
  return (
    <>
      {[...apps].map(([appId, ofApp]) => (
        <div key={appId}>
          <Text size="xs" className="quiet" mt={6}>
            In {appId} of {ofApp[0]?.accountId}:
          </Text>
          <ul className="changes code-text">
            {ofApp.map(({ id }) => (
              <li key={id}>{id === appId ? 'the sums of the app' : id}</li>
            ))}
          </ul>
        </div>
      ))}
      <RowsCut violations={violations} />
    </>
  );
}

function ResultOf({ rule }: { readonly rule: Rule }) {
  if (isBroken(rule)) return <Tag tone="bad">{formatCount(rule.violations)} broken</Tag>;
  return holds(rule) ? <Tag tone="good">Holds</Tag> : <Tag tone="wait">Not finished</Tag>;
}

function Rules({ rules, caption }: { readonly rules: readonly Rule[]; readonly caption: string }) {
  return (
    <RuleTable caption={caption}>
      {rules.map((rule) => (
        <RuleRow key={rule.name} rule={rule} result={<ResultOf rule={rule} />}>
          <BrokenRows rule={rule} />
          {rule.unfinished.length > 0 && (
            <Text size="xs" mt={6}>
              Not checked in time: {rule.unfinished.join(', ')}
            </Text>
          )}
        </RuleRow>
      ))}
    </RuleTable>
  );
}

function Advice({
  code,
  what,
  children,
}: {
  readonly code: string;
  readonly what: string;
  readonly children: ReactNode;
}) {
  return (
    <Stack gap={4}>
      <Text size="sm">{children}</Text>
      <CodeBlock code={code} what={what} />
    </Stack>
  );
}

/** What to do about the rules that do not hold. */
function NextSteps({ rules }: { readonly rules: readonly Rule[] }) {
  const isSum = ({ name }: Rule) => name === SUMS;
  const rows = rules.filter((rule) => isBroken(rule) && !isSum(rule)).flatMap((rule) => rule.rows);
  const unfinished = rules.flatMap((rule) => rule.unfinished);
  const apps = [...new Set([...rows.map(({ appId }) => appId), ...unfinished])];
  return (
    <Stack gap="sm">
      {apps.length > 0 && (
        <Advice
          code={
            apps.length > MOST_COMMANDS
              ? `${ADMIN} ledger check`
              : apps.map((appId) => `${ADMIN} ledger check --app ${appId}`).join('\n')
          }
          what="the check of the ledger"
        >
          {rows.length > 0 &&
            'A rule of the money is broken when rows were changed without the service, when a backup was restored partially, ' +
              'or when the service has a bug. Do not edit the rows. '}
          {unfinished.length > 0 && 'The command line checks apps of any size. '}
          To see more, run this where the service runs:
        </Advice>
      )}
      {rules.some((rule) => isBroken(rule) && isSum(rule)) && (
        <Advice code={`${ADMIN} rollups check\n${ADMIN} rollups repair`} what="the repair of the sums">
          Sums of the dashboards are computed from the rows, so they can be corrected while the service works.
          Keep the output of the first command: it shows what was wrong, and after the second one nothing
          does.
        </Advice>
      )}
    </Stack>
  );
}

/** Returns a number of rules with its verb: "1 rule holds", "2 rules hold". */
const rulesThat = (number: number, singular: string, plural: string) =>
  `${formatCount(number)} ${number === 1 ? `rule ${singular}` : `rules ${plural}`}`;

/** Says what a run has found. */
function verdictOf(rules: readonly Rule[], last: Part): string {
  const broken = rules.filter(isBroken).length;
  const unfinished = rules.filter((rule) => rule.unfinished.length > 0).length;
  const found = broken === 0 ? 'No rule is broken' : rulesThat(broken, 'is broken', 'are broken');
  if (last.nextCursor !== null) return `${found} so far.`;
  if (last.total === 0) return 'There is no app yet.';
  if (unfinished > 0)
    return `${found}. The ${unfinished === 1 ? 'check' : 'checks'} of ${rulesThat(unfinished, 'is', 'are')} not finished.`;
  return broken > 0 ? `${found}.` : `All ${rulesThat(rules.length, 'holds', 'hold')}.`;
}

export function LedgerCheck() {
  const { rules, last, error, isFetching, isWaiting, isStopped, isFinished, retry, setStopped, start } =
    useLedgerRun();
  const isRunning = isFetching || (last !== undefined && !isFinished && !isStopped && error === null);
  const faults = rules
    .filter((rule) => !holds(rule))
    .toSorted((a, b) => Number(isBroken(b)) - Number(isBroken(a)));
  // The last rule can go on in the next part.
  const held = (isFinished ? rules : rules.slice(0, -1)).filter(holds);
  return (
    <Section title="Ledger and sums">
      <Stack gap="sm">
        <Text size="sm" className="quiet">
          Every rule of the money, and every sum of the dashboards, is checked against all rows of all apps.
          The check reads much and changes nothing. Keep this page open until it ends.
        </Text>
        <div>
          {/* Always there, so that screen readers announce its changes, and without the progress, which changes often. */}
          <div role="status">{last !== undefined && <Text fw={600}>{verdictOf(rules, last)}</Text>}</div>
          {last !== undefined && (
            <Text size="sm" className="quiet">
              {isFinished
                ? `Checked ${formatInstant(last.checkedAt)}.`
                : `${formatCount(last.done)} of ${formatCount(last.total)} checks are done: each rule in each app is one.`}
            </Text>
          )}
        </div>
        {isRunning && (
          <Progress
            value={last === undefined || last.total === 0 ? 0 : (100 * last.done) / last.total}
            aria-label="Progress of the check"
          />
        )}
        {isWaiting && (
          <Text size="sm">
            The service is busy, perhaps with another check. This page tries again every 10 seconds.
          </Text>
        )}
        {error !== null && !isFetching && <ErrorBox error={error} retry={retry} />}
        <Group>
          {isRunning && !isStopped ? (
            <Button variant="default" size="compact-sm" onClick={() => setStopped(true)}>
              Stop
            </Button>
          ) : (
            <Button variant="default" size="compact-sm" loading={isFetching} onClick={start}>
              {last === undefined ? 'Check all apps' : 'Check again'}
            </Button>
          )}
          {isStopped && !isFinished && !isFetching && (
            <Button variant="default" size="compact-sm" onClick={() => setStopped(false)}>
              Continue
            </Button>
          )}
        </Group>
        {faults.length > 0 && (
          <>
            <Rules rules={faults} caption="Rules that do not hold" />
            <NextSteps rules={faults} />
          </>
        )}
        {held.length > 0 && (
          <details>
            <Text component="summary" size="sm" mb="xs">
              {rulesThat(held.length, 'holds', 'hold')}
            </Text>
            <Rules rules={held} caption="Rules that hold" />
          </details>
        )}
      </Stack>
    </Section>
  );
}
