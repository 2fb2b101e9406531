import { findMoneyLeft } from '../db/self-tests.ts';
import { describeResult } from './check-delivery.ts';
import type { AcceptedPurchase } from './check-delivery.ts';
import { describeTemporalProblem } from './check-processing.ts';
import { SERVICE_FAULT } from './provider-test.ts';
import type { ProviderTest } from './provider-test.ts';
import { failed, passed } from './steps.ts';
import type { Purchase } from './test-purchase.ts';

/** Checks that the recorded event is the purchase that was sent. */
export async function checkRead(test: ProviderTest, purchase: Purchase): Promise<void> {
  const step = 'read';
  const { userId, amountCents } = purchase;
  const [event] = await test.findEvents(purchase);
  if (event === undefined) {
    test.add(failed(step, 'It was reported as processed, but no event was recorded.', SERVICE_FAULT));
    return;
  }
  const differences = [
    event.environment === 'sandbox' ? null : 'environment',
    event.isSelfTest ? null : 'self-test mark',
    event.customerUserId === userId ? null : 'user',
    event.amountMinor === amountCents && event.currency === 'USD' ? null : 'amount',
    event.payments === 1 ? null : 'payment',
  ].filter((difference) => difference !== null);
  test.add(
    differences.length === 0
      ? passed(
          step,
          `It was read as a sandbox purchase of ${(amountCents / 100).toFixed(2)} USD by the right user.`,
        )
      : failed(
          step,
          `It was recorded, but differs from what was sent: ${differences.join(', ')}.`,
          SERVICE_FAULT,
        ),
  );
}

/** Checks that a second delivery of the same purchase is a duplicate. */
export async function checkRepeatIsDuplicate(
  test: ProviderTest,
  { baseUrl, purchase }: AcceptedPurchase,
  secret: string,
): Promise<void> {
  const step = 'repeat_is_duplicate';
  const { accepted, result } = await test.postPurchase(baseUrl, purchase, secret);
  if (accepted?.kind === 'duplicate') {
    test.add(passed(step, 'A second delivery of the same purchase was reported as a duplicate.'));
    return;
  }
  const isPending = accepted?.kind === 'pending';
  test.add(
    failed(
      step,
      isPending
        ? 'A second delivery of the same purchase got a pending response.'
        : `A second delivery of the same purchase got ${describeResult(result)}, not a duplicate response.`,
      isPending ? `Have the operator check ${await describeTemporalProblem(test.session)}.` : SERVICE_FAULT,
    ),
  );
}

/** Checks that two deliveries left one event with one payment. */
export async function checkCountedOnce(test: ProviderTest, purchase: Purchase): Promise<void> {
  const events = await test.findEvents(purchase);
  const payments = events.reduce((sum, event) => sum + event.payments, 0);
  test.add(
    events.length === 1 && payments === 1
      ? passed('counted_once', 'It is recorded once, with one payment.')
      : failed(
          'counted_once',
          `It should be recorded once, with one payment, but there are ${events.length} events and ${payments} payments.`,
          SERVICE_FAULT,
        ),
  );
}

/** Checks that none of the requests of this test left anything that is or can become money. */
export async function checkNoMoney(test: ProviderTest): Promise<void> {
  const { session, provider, sourceEventIds } = test;
  const left = await findMoneyLeft(session.deps.sql, session.appId, provider, sourceEventIds);
  const found = Object.entries(left).filter(([, count]) => count > 0);
  test.add(
    found.length === 0
      ? passed('no_money', 'It created no commission, no revenue and no payment that can earn.')
      : failed(
          'no_money',
          `It created ${found.map(([name, count]) => `${name}: ${count}`).join(', ')}.`,
          SERVICE_FAULT,
        ),
  );
}
