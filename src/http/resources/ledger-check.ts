import * as z from 'zod';
import {
  checkAndRecordLedger,
  LEDGER_CHECKS,
  LedgerCheckTooLong,
  MOST_EXAMPLES,
} from '../../db/ledger-checks/index.ts';
import type { LedgerCheckResult } from '../../db/ledger-checks/index.ts';
import { runLedgerPart } from '../../db/ledger-runs.ts';
import type { CheckedRule } from '../../db/ledger-runs.ts';
import type { Sql } from '../../db/sql.ts';
import type { AccountId, AppId } from '../../domain/ids.ts';
import type { HttpDeps } from '../deps.ts';
import { ApiError } from '../errors.ts';
import { count, epochMs, exampleId, idOf, textField } from '../fields.ts';
import { decodeCursor, encodeCursor, pageQuery } from '../pagination.ts';
import { accountApp, operatorSession } from '../routing/callers.ts';
import { route } from '../routing/route.ts';

/** After this time a request of an account, or a check in a part of the operator's run, starts no further statement. */
const TIME_LIMIT_MS = 20_000;
/** After this time a part of the operator's run begins no further check, so that its progress is shown. */
const PART_MS = 5_000;
const RETRY_AFTER_BUSY_SECONDS = 10;
const RETRY_AFTER_TOO_LARGE_SECONDS = 3_600;

/** Accounts with a running check, by database. A check reads every row of an app, so few may run at once. */
const running = new WeakMap<Sql, Set<AccountId>>();
const RUNNING_LIMIT = 2;
/** Databases with a running part of the operator, who has one at a time, besides those of accounts. */
const runningParts = new WeakSet<Sql>();

const ruleName = textField('paid_once', 'The name of the rule. Stable, in snake case.');
const ruleDescription = textField(
  'A commission is an item of at most one payout.',
  'The rule, in one sentence.',
);

const ledgerCheck = z
  .object({
    ok: z.boolean().describe('True if no check found a violation.'),
    checkedAt: epochMs('When the check began.'),
    checks: z
      .array(
        z.object({
          name: ruleName,
          ok: z.boolean().describe('Whether no row breaks the rule.'),
          description: ruleDescription,
          violations: count('The number of rows that break the rule.'),
          examples: z
            .array(z.string())
            .max(MOST_EXAMPLES)
            .meta({
              description: 'Rows that break it. Each text begins with the id of a row.',
              examples: [[exampleId('commission')]],
            }),
        }),
      )
      .describe('One per rule.'),
  })
  .meta({ id: 'LedgerCheck', description: 'The result of each rule of the ledger.' });

const ledgerPart = z
  .object({
    checkedAt: epochMs('When this part began.'),
    checks: z
      .array(
        z.object({
          name: ruleName,
          description: ruleDescription,
          apps: count('The number of apps of which this part examined all rows.'),
          violations: count('The number of their rows that break the rule.'),
          rows: z
            .array(
              z.object({
                accountId: idOf('account'),
                appId: idOf('app'),
                id: textField(exampleId('commission'), 'The id of the row.'),
              }),
            )
            .max(MOST_EXAMPLES)
            .describe('The first of them, without their values.'),
          unfinished: z
            .array(idOf('app'))
            .describe(
              'Apps that are too large to examine within a request. Check them with `tributary ledger check --app`.',
            ),
        }),
      )
      .describe('The rules that this part checked. A rule can go on in the next part.'),
    done: count('How many pairs of a rule and an app are done, with those of the parts before.'),
    total: count('How many pairs there are.'),
    nextCursor: z
      .string()
      .nullable()
      .meta({
        description: 'Pass it as `cursor` to run the next part. Null after the last one.',
        examples: ['WyJwYWlkX29uY2UiLCJhcHBfMDFrYmYiXQ'],
      }),
  })
  .meta({
    id: 'OperatorLedgerCheck',
    description: 'One part of a check of the ledgers and dashboard sums of all apps.',
  });

/** Runs of the operator continue at a check and an app. */
const runKey = { list: 'operator-ledger-check', appId: '', filters: {} };
const checkName = z.enum(LEDGER_CHECKS.map((check) => check.name));

function presentRule(rule: CheckedRule): z.input<typeof ledgerPart>['checks'][number] {
  return {
    name: rule.name,
    description: rule.description,
    apps: rule.apps,
    violations: rule.violations,
    rows: rule.rows.map(({ accountId, appId, id }) => ({ accountId, appId, id })),
    unfinished: [...rule.unfinished],
  };
}

function unavailable(detail: string, retryAfterSeconds: number): ApiError {
  return new ApiError('unavailable', { detail, headers: { 'Retry-After': String(retryAfterSeconds) } });
}

const busy = () =>
  unavailable('Another ledger check is running. Try again when it has ended.', RETRY_AFTER_BUSY_SECONDS);

/** Checks the app's ledger. Throws 503 if the account or the process runs too many checks, or the ledger is too large. */
async function checkWithinLimits(
  { patientSql: sql, elapsed = () => performance.now() }: HttpDeps,
  accountId: AccountId,
  appId: AppId,
): Promise<LedgerCheckResult[]> {
  const accounts = running.get(sql) ?? new Set();
  running.set(sql, accounts);
  if (accounts.has(accountId) || accounts.size >= RUNNING_LIMIT) {
    throw busy();
  }
  accounts.add(accountId);
  const endsAt = elapsed() + TIME_LIMIT_MS;
  try {
    return await checkAndRecordLedger(sql.forManyRows(), [appId], () => elapsed() > endsAt);
  } catch (error) {
    if (!(error instanceof LedgerCheckTooLong)) throw error;
    throw unavailable(
      "The ledger is too large to check within a request. Check it with the operator's command line.",
      RETRY_AFTER_TOO_LARGE_SECONDS,
    );
  } finally {
    accounts.delete(accountId);
  }
}

export const ledgerCheckRoutes = [
  route({
    method: 'GET',
    path: '/apps/:appId/diagnostics/ledger',
    caller: accountApp('read'),
    operationId: 'checkLedger',
    summary: "Checks every rule of the ledger against the app's rows.",
    response: { status: 200, schema: ledgerCheck },
    handler: async ({ deps, caller, app, now }) => {
      const checks = await checkWithinLimits(deps, caller.accountId, app.id);
      return {
        ok: checks.every((check) => check.ok),
        checkedAt: now,
        checks: checks.map(({ name, ok, description, violations, examples }) => ({
          name,
          ok,
          description,
          violations,
          examples: [...examples],
        })),
      };
    },
  }),
];

export const operatorLedgerCheckRoutes = [
  route({
    method: 'GET',
    path: '/operator/ledger-check',
    caller: operatorSession,
    operationId: 'checkAllLedgers',
    summary: "Checks every rule of the ledger, and the dashboard sums, against all apps' rows, part by part.",
    description:
      'The first call begins at the first rule; each `nextCursor` continues after the last app that was checked. A part begins no ' +
      'further check after 5 seconds. Add up the parts by the names of the rules until `nextCursor` is null. Only one part runs at a ' +
      'time; another call is a 503 `unavailable` with `Retry-After`.',
    query: z.object({ cursor: pageQuery.cursor }),
    response: { status: 200, schema: ledgerPart },
    handler: async ({ deps, query, now }) => {
      const after = decodeCursor(runKey, checkName, query.cursor);
      if (runningParts.has(deps.patientSql)) throw busy();
      runningParts.add(deps.patientSql);
      try {
        const { checks, done, total, next } = await runLedgerPart(deps.patientSql.forManyRows(), after, {
          elapsed: deps.elapsed ?? (() => performance.now()),
          partMs: PART_MS,
          checkMs: TIME_LIMIT_MS,
        });
        return {
          checkedAt: now,
          checks: checks.map(presentRule),
          done,
          total,
          nextCursor: next === null ? null : encodeCursor(runKey, next),
        };
      } finally {
        runningParts.delete(deps.patientSql);
      }
    },
  }),
];
