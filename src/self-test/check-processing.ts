import { setTimeout as sleep } from 'node:timers/promises';
import * as z from 'zod';
import { findDeliveryState } from '../db/self-tests.ts';
import type { ProviderTest, SentRequest } from './provider-test.ts';
import type { SelfTestSession } from './session.ts';
import { advice, failed, passed } from './steps.ts';

/** How long the self-test waits for the outcome of a pending delivery, and how often it checks. */
const OUTCOME_WITHIN_MS = 3_000;
const OUTCOME_PAUSE_MS = 100;

/** The response of `GET /readyz`: all checks, or the detail of an error. */
const readyResponse = z.object({
  checks: z.array(z.object({ name: z.string(), ok: z.boolean(), detail: z.string().nullable() })).optional(),
  detail: z.string().optional(),
});

/** Checks that the delivery has an outcome. Waits a little for a pending one. */
export async function checkProcessed(test: ProviderTest, { accepted }: SentRequest): Promise<boolean> {
  const step = 'processed';
  const { session } = test;
  if (accepted?.kind !== 'pending') {
    return test.add(passed(step, 'It was processed before the response was sent.'));
  }
  const state = await waitForOutcome(session, accepted.eventId);
  const isDone = state?.isDone === true;
  session.isProcessingStuck = !isDone;
  const cause = await describeTemporalProblem(session);
  if (isDone) {
    test.add(
      advice(
        step,
        'It was stored and got a pending response; it was processed only afterwards.',
        `If this happens again, have the operator check ${cause}.`,
      ),
    );
    return true;
  }
  return test.add(
    failed(
      step,
      `It was stored and got a pending response, but it is not processed${state?.lastError == null ? '' : `: ${state.lastError}`}.`,
      `Have the operator check ${cause}. Stored deliveries continue automatically; nothing has to be sent again.`,
    ),
  );
}

async function waitForOutcome(
  session: SelfTestSession,
  eventId: Parameters<typeof findDeliveryState>[2],
): ReturnType<typeof findDeliveryState> {
  const waitMs = session.isProcessingStuck ? 0 : Math.min(OUTCOME_WITHIN_MS, session.timeLeftMs);
  const giveUpAt = performance.now() + waitMs;
  for (;;) {
    const state = await findDeliveryState(session.deps.sql, session.appId, eventId);
    if (state?.isDone === true || performance.now() >= giveUpAt) return state;
    await sleep(OUTCOME_PAUSE_MS);
  }
}

/** Returns what the operator should check when a delivery stays pending: what `GET /readyz` reports about Temporal. */
export async function describeTemporalProblem(session: SelfTestSession): Promise<string> {
  const { ownUrl, publicUrl } = session.deps;
  const result = session.timeLeftMs > 0 ? await session.send(`${ownUrl ?? publicUrl}/readyz`, {}) : null;
  const ready = readyResponse.safeParse(result?.kind === 'response' ? result.json : undefined).data;
  const problem =
    ready?.checks === undefined
      ? ready?.detail
      : ready.checks.find(({ name, ok }) => name === 'temporal' && !ok)?.detail;
  return problem == null
    ? 'the Temporal server (TEMPORAL_ADDRESS) and that a worker runs (ROLE=worker or all)'
    : 'the Temporal server, which GET /readyz reports as not available; the log has the cause';
}
