import { expect, test } from '@jest/globals';
import { asyncLocalStorage, CancelledFailure } from '@temporalio/activity';
import type { Context } from '@temporalio/activity';
import { pino } from 'pino';
import { createDeliveryActivities } from '../../activities/delivery.ts';
import { createSecretBox } from '../../src/config/secret-box.ts';
import { newId } from '../../src/db/new-id.ts';
import type { Sql } from '../../src/db/sql.ts';
import { NO_CALLBACKS } from '../../tools/no-callbacks.ts';

// @promise cancelled-activity-ends
test('an attempt at a delivery that was cancelled sends no further statement', async () => {
  let statements = 0;
  const maybe = async () => {
    statements += 1;
    throw new Error('no database in this test');
  };
  const { processDelivery } = createDeliveryActivities({
    ...NO_CALLBACKS,
    sql: { maybe } as unknown as Sql,
    secretBox: createSecretBox([Buffer.alloc(32, 1)]),
    logger: pino({ level: 'silent' }),
  });
  const cancellationSignal = AbortSignal.abort(new CancelledFailure('TIMED_OUT'));
  const attempt = asyncLocalStorage.run({ cancellationSignal } as Context, () =>
    processDelivery(newId('delivery')),
  );
  await expect(attempt).rejects.toThrow(CancelledFailure);
  expect(statements).toBe(0);
});
