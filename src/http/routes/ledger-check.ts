import { checkLedger, LedgerCheckTooLong } from '../../db/ledger-checks.ts';
import type { LedgerCheckResult } from '../../db/ledger-checks.ts';
import type { Sql } from '../../db/sql.ts';
import type { AccountId, AppId } from '../../domain/ids.ts';
import type { HttpDeps } from '../deps.ts';
import { ApiError } from '../errors.ts';
import { route } from '../route.ts';
import * as schemas from '../schemas/ledger-check.ts';

/** How long the checks of one request may begin new statements. */
const TIME_LIMIT_MS = 20_000;
const RETRY_AFTER_BUSY_SECONDS = 10;
const RETRY_AFTER_TOO_LONG_SECONDS = 3_600;

/** Accounts whose check runs now, by database: one of an account and few in all, since it reads everything of an app. */
const running = new WeakMap<Sql, Set<AccountId>>();
const RUNNING_LIMIT = 2;

function unavailable(detail: string, retryAfterSeconds: number): ApiError {
  return new ApiError('unavailable', { detail, headers: { 'Retry-After': String(retryAfterSeconds) } });
}

async function checkAlone(
  { sql, now }: HttpDeps,
  accountId: AccountId,
  appId: AppId,
): Promise<LedgerCheckResult[]> {
  const accounts = running.get(sql) ?? new Set();
  running.set(sql, accounts);
  if (accounts.has(accountId) || accounts.size >= RUNNING_LIMIT) {
    throw unavailable('Another check of a ledger is running.', RETRY_AFTER_BUSY_SECONDS);
  }
  accounts.add(accountId);
  const giveUpAt = now() + TIME_LIMIT_MS;
  try {
    return await checkLedger(sql, [appId], () => now() > giveUpAt);
  } catch (error) {
    if (!(error instanceof LedgerCheckTooLong)) throw error;
    throw unavailable(
      'The ledger is too large to be checked within a request; the command line can do it.',
      RETRY_AFTER_TOO_LONG_SECONDS,
    );
  } finally {
    accounts.delete(accountId);
  }
}

export const ledgerCheckRoutes = [
  route({
    method: 'GET',
    path: '/apps/:appId/diagnostics/ledger',
    auth: 'account',
    permission: 'read',
    operationId: 'checkLedger',
    summary: 'Runs every check of the ledger and answers how each came out.',
    response: { status: 200, schema: schemas.ledgerCheck },
    handler: async ({ deps, caller, app, now }) => {
      const checks = await checkAlone(deps, caller.accountId, app.id);
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
