import * as z from 'zod';
import { checkLedger, LedgerCheckTooLong } from '../../db/ledger-checks.ts';
import { LONG_STATEMENT_MS } from '../../db/sql.ts';
import type { LedgerCheckResult } from '../../db/ledger-checks.ts';
import type { Sql } from '../../db/sql.ts';
import type { AccountId, AppId } from '../../domain/ids.ts';
import type { HttpDeps } from '../deps.ts';
import { ApiError } from '../errors.ts';
import { count, epochMs, exampleId, textField } from '../fields.ts';
import { appRoute } from '../route.ts';

/** After this time a request starts no further statement. */
const TIME_LIMIT_MS = 20_000;
const RETRY_AFTER_BUSY_SECONDS = 10;
const RETRY_AFTER_TOO_LARGE_SECONDS = 3_600;

/** Accounts with a running check, by database. A check reads every row of an app, so few may run at once. */
const running = new WeakMap<Sql, Set<AccountId>>();
const RUNNING_LIMIT = 2;

const ledgerCheck = z
  .object({
    ok: z.boolean().describe('True if no check found a violation.'),
    checkedAt: epochMs('When the check began.'),
    checks: z
      .array(
        z.object({
          name: textField('paid_in_one_payout', 'The name of the rule. Stable, in snake case.'),
          ok: z.boolean().describe('Whether no row breaks the rule.'),
          description: textField(
            'Each paid commission is in exactly one payout.',
            'The rule, in one sentence.',
          ),
          violations: count('The number of rows that break the rule.'),
          examples: z
            .array(z.string())
            .max(20)
            .meta({
              description: 'Rows that break it. Each text begins with the id of a row.',
              examples: [[`${exampleId('commission')} is in no payout`]],
            }),
        }),
      )
      .describe('One per rule.'),
  })
  .meta({ id: 'LedgerCheck', description: 'The result of each rule of the ledger.' });

function unavailable(detail: string, retryAfterSeconds: number): ApiError {
  return new ApiError('unavailable', { detail, headers: { 'Retry-After': String(retryAfterSeconds) } });
}

/** Checks the app's ledger. Throws 503 if the account or the process runs too many checks, or the ledger is too large. */
async function checkWithinLimits(
  { sql, now }: HttpDeps,
  accountId: AccountId,
  appId: AppId,
): Promise<LedgerCheckResult[]> {
  const accounts = running.get(sql) ?? new Set();
  running.set(sql, accounts);
  if (accounts.has(accountId) || accounts.size >= RUNNING_LIMIT) {
    throw unavailable(
      'Another ledger check is running. Try again after `Retry-After` seconds.',
      RETRY_AFTER_BUSY_SECONDS,
    );
  }
  accounts.add(accountId);
  const endsAt = now() + TIME_LIMIT_MS;
  try {
    return await checkLedger(sql.within(LONG_STATEMENT_MS), [appId], () => now() > endsAt);
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
  appRoute({
    method: 'GET',
    path: '/apps/:appId/diagnostics/ledger',
    permission: 'read',
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
