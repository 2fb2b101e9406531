import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { WorkflowHandle } from '@temporalio/client';
import { eventually } from '../support/eventually.ts';
import { setUpFounder } from '../support/founder.ts';
import type { Founder } from '../support/founder.ts';
import { runOn } from '../support/postgres-admin.ts';
import { bodyOf, stripeInvoicePaid } from '../support/provider-fixtures.ts';
import { startTestService } from '../support/service.ts';
import type { TestService } from '../support/service.ts';

let service: TestService;
let founder: Founder;

beforeAll(async () => {
  service = await startTestService();
  founder = await setUpFounder(service);
});
afterAll(async () => {
  await service.close();
});

/** Makes the step that writes a table fail in the database, as a bug or a full disk does. Returns what repairs it. */
async function breakWritesOf(table: 'commissions' | 'events'): Promise<() => Promise<void>> {
  const { url } = service.database;
  await runOn(
    url,
    `create function test_breaks() returns trigger language plpgsql as $$ begin raise exception 'the test broke this step'; end $$;
     create trigger test_breaks before insert on ${table} for each row execute function test_breaks();`,
  );
  return async () => await runOn(url, `drop trigger test_breaks on ${table}; drop function test_breaks();`);
}

/** Waits until the pending step of a workflow was tried a second time. */
async function untilTriedAgain(handle: WorkflowHandle): Promise<void> {
  await eventually('the pending step shows a second attempt', async () => {
    const { raw } = await handle.describe();
    return (raw.pendingActivities?.[0]?.attempt ?? 0) >= 2;
  });
}

/** Asks a workflow for its current details, as the UI does. */
async function currentDetails(handle: WorkflowHandle): Promise<string> {
  const { currentDetails: details } = await handle.query<{ currentDetails: string }>(
    '__temporal_workflow_metadata',
  );
  return details;
}

describe('stuck deliveries', () => {
  // @promise retried-step-no-duplicate, webhook-pending, workflows-found-by-app, workflow-details-in-words
  test('a delivery whose commission step fails returns pending, shows step, attempt and cause, and heals automatically', async () => {
    const user = await founder.customer();
    const fixCommissions = await breakWritesOf('commissions');
    const send = async () => {
      const begin = Date.now();
      const sent = await founder.stripe(bodyOf(stripeInvoicePaid({ userId: user, amount: 2_000 })));
      return { response: sent, tookMs: Date.now() - begin };
    };
    let { response, tookMs } = await send();
    // A machine that stalls for a moment breaks no promise: the time is measured again.
    for (let again = 0; again < 2 && tookMs >= 4_500; again += 1) ({ response, tookMs } = await send());
    // 2.5 s, plus time for a busy machine. The strictest provider gives up after 5 s.
    expect(tookMs).toBeLessThan(4_500);
    expect(response).toMatchObject({
      status: 200,
      body: { pending: true, commissionId: null, eventId: expect.stringMatching(/^evt_/) },
    });

    const { id } = await service.sql.one<{
      id: string;
    }>`select id from deliveries where event_id = ${response.body.eventId}`;
    const found: string[] = [];
    await eventually('the delivery is found by its search attribute', async () => {
      found.length = 0;
      const query = `DeliveryState STARTS_WITH 'stuck:' and TaskQueue = '${service.taskQueue}'`;
      for await (const workflow of service.temporal.workflow.list({ query })) found.push(workflow.workflowId);
      return found.includes(`delivery:${id}`);
    });
    const handle = service.temporal.workflow.getHandle(`delivery:${id}`);
    await untilTriedAgain(handle);
    const description = await handle.describe();
    expect(description.searchAttributes).toMatchObject({
      DeliveryState: ['stuck:writeCommission'],
      AppId: [founder.app.id],
      Provider: ['stripe'],
    });
    const stuck = await currentDetails(handle);
    expect(stuck).toMatch(
      /^\*\*Stuck: the service can't book the commission\*\* \(step `writeCommission`\): .+\.\n\n/,
    );
    expect(stuck).toContain('Remove the cause: nothing else has to be done');
    const [pending] = description.raw.pendingActivities ?? [];
    expect(pending?.activityType?.name).toBe('writeCommission');
    expect(pending?.lastFailure?.message).toContain('the test broke this step');
    const row = await service.sql.one<{ status: string; lastError: string }>`
      select processing_status as status, last_error from deliveries where id = ${id}`;
    expect(row).toEqual({ status: 'processing', lastError: expect.stringContaining('writeCommission: ') });

    await fixCommissions();
    await expect(handle.result()).resolves.toMatchObject({
      status: 'done',
      commissionId: expect.stringMatching(/^com_/),
    });
    const healed = await handle.describe();
    expect(healed.searchAttributes['DeliveryState']).toEqual(['healed']);
    expect(await currentDetails(handle)).toMatch(
      /^\*\*Healed\.\*\* At first the service could not book the commission .*\n\nProcessed\. The commission com_\w+ was booked for the event evt_/,
    );
    const after = await service.sql.one<{ status: string; lastError: string | null }>`
      select processing_status as status, last_error from deliveries where id = ${id}`;
    expect(after).toEqual({ status: 'processed', lastError: null });
  });

  // @promise retried-step-no-duplicate
  test('after a step that had to wait, the steps that are left run in one local activity, not one by one', async () => {
    const fixEvents = await breakWritesOf('events');
    const sent = await founder.stripe(
      bodyOf(stripeInvoicePaid({ userId: await founder.customer(), amount: 2_500 })),
    );
    expect(sent.body).toMatchObject({ pending: true, commissionId: null });
    const { id } = await service.sql.one<{
      id: string;
    }>`select id from deliveries where app_id = ${founder.app.id} order by received_at desc limit 1`;
    const handle = service.temporal.workflow.getHandle(`delivery:${id}`);
    await untilTriedAgain(handle);
    await fixEvents();
    await expect(handle.result()).resolves.toMatchObject({
      status: 'done',
      commissionId: expect.stringMatching(/^com_/),
    });

    const { events } = await handle.fetchHistory();
    const scheduled = events?.map((event) => event.activityTaskScheduledEventAttributes?.activityType?.name);
    expect(scheduled?.filter(Boolean)).toEqual(['verify', 'storeRaw', 'normalize', 'dedupe']);
    expect(await currentDetails(handle)).toMatch(
      /^\*\*Healed\.\*\* At first the service could not store the event, .*\n\nProcessed\. The commission com_\w+ was booked for the event evt_/,
    );
    expect((await handle.describe()).searchAttributes['DeliveryState']).toEqual(['healed']);
  });
});
