import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { runAdmin } from '../../src/cli/admin.ts';
import { noSecretsKeys } from '../support/no-secrets-keys.ts';
import { DAY_MS } from '../../src/domain/time.ts';
import { newApp, startTestApi } from '../support/api.ts';
import { eventually } from '../support/eventually.ts';
import { setUpFounder } from '../support/founder.ts';
import type { Founder } from '../support/founder.ts';
import { bodyOf, revenuecatEvent } from '../support/provider-fixtures.ts';
import { startTestService } from '../support/service.ts';
import type { TestService } from '../support/service.ts';
import { expectConsistentLedger } from '../support/consistent-ledger.ts';

let service: TestService;
let founder: Founder;
let deliveryId: string;
let eventId: string;

async function admin(
  args: readonly string[],
  over: { url?: string; serviceTimeoutMs?: number; stderr?: (text: string) => void } = {},
) {
  let [out, err] = ['', ''];
  const status = await runAdmin(args, {
    openDatabase: async () => {
      const url = over.url ?? service.database.url;
      return { url, ownerUrl: url, close: async () => {} };
    },
    secretsKeys: noSecretsKeys,
    findService: async () => null,
    stdout: (text) => void (out += text),
    stderr: (text) => void (err += text),
    ...over,
  });
  return { status, out, err };
}

const reprocess = (...args: string[]) => admin(['deliveries', 'reprocess', '--app', founder.app.id, ...args]);

beforeAll(async () => {
  service = await startTestService({ settings: { relay: { overdueMs: 1_000, pauseMs: 100 } } });
  founder = await setUpFounder(service);
  const userId = await founder.customer();
  // The constraint makes the delivery fail, as in a version that does not know this kind of event.
  const body = bodyOf(revenuecatEvent({ userId, usd: 10, occurredAt: Date.now() - DAY_MS }));
  await service.sql`alter table events add constraint test_unreadable check (kind <> 'purchase') not valid`;
  const response = await founder.revenuecat(body);
  eventId = response.body.eventId ?? '';
  await service.sql`
    update deliveries set processing_status = 'failed', last_error = 'an earlier version could not read it', completed_at = now()
     where event_id = ${eventId}`;
  await service.sql`alter table events drop constraint test_unreadable`;
  ({ id: deliveryId } = await service.sql.one<{
    id: string;
  }>`select id from deliveries where event_id = ${eventId}`);
  // The workflow ends, because its delivery has an outcome.
  await service.temporal.workflow.getHandle(`delivery:${deliveryId}`).result();
});
afterAll(async () => {
  await expectConsistentLedger(service.sql);
  await service.close();
});

const commissions = () =>
  service.sql<{ id: string; cents: number }>`
    select id, amount_cents as cents from commissions where app_id = ${founder.app.id}`;

interface Report {
  readonly reprocessRunId: string;
  readonly dryRun: boolean;
  readonly seen: number;
  readonly changed: number;
  readonly applied: number;
  readonly deliveries: readonly {
    deliveryId: string;
    eventId: string;
    appliedAt: number | null;
    changes: { what: string }[];
  }[];
}

describe('tributary deliveries reprocess', () => {
  // @promise reprocess-output
  test('deliveries reprocess --dry-run prints a table of changes with sums, and changes nothing', async () => {
    const { status, out, err } = await reprocess('--delivery', deliveryId, '--dry-run');
    expect({ status, err }).toEqual({
      status: 0,
      err: expect.stringContaining('1 of 1 deliveries evaluated, 1 differ, 0 applied.'),
    });
    const row = out.split('\n').find((line) => line.includes('commission')) ?? '';
    for (const cell of [deliveryId, eventId, 'earning at 2000 bps', '2.00', 'would be'])
      expect(row).toContain(cell);
    expect(out).toMatch(/status .* failed .* processed/);
    expect(err).toContain('2.00 USD of commissions and 10.00 USD of revenue would be appended.');
    expect(err).toContain('Nothing was changed.');
    expect(await commissions()).toEqual([]);
  });

  // @promise reprocess-output
  test('deliveries reprocess applies the changes, prints JSON, starts the hold timer and runs as a workflow', async () => {
    const { status, out } = await reprocess('--from', '2020-01-01', '--json');
    const report = JSON.parse(out) as Report;
    expect({ status, ...report }).toMatchObject({ status: 0, dryRun: false, changed: 1, applied: 1 });
    expect(report.deliveries).toEqual([
      expect.objectContaining({ deliveryId, eventId, appliedAt: expect.any(Number) }),
    ]);
    const [commission] = await commissions();
    expect(commission?.cents).toBe(200);
    const handle = service.temporal.workflow.getHandle(`reprocess:${report.reprocessRunId}`);
    // The run is finished a moment before its workflow ends.
    await handle.result();
    const workflow = await handle.describe();
    expect(workflow).toMatchObject({ type: 'reprocess', status: { name: 'COMPLETED' } });
    await eventually('the hold timer is set', async () =>
      service.temporal.workflow
        .getHandle(`hold:${commission?.id ?? ''}`)
        .describe()
        .then(
          () => true,
          () => false,
        ),
    );
    expect(
      await founder.ok<{ processingStatus: string }>('GET', `/apps/${founder.app.id}/diagnostics/webhooks`),
    ).toMatchObject({
      items: [{ id: deliveryId, processingStatus: 'processed', lastError: null }],
    });
    const printed = await admin(['deliveries', 'reprocess-report', report.reprocessRunId, '--json']);
    expect(JSON.parse(printed.out)).toEqual(report);
  });

  test('a second deliveries reprocess finds nothing', async () => {
    const { status, out, err } = await reprocess(
      '--from',
      '2020-01-01',
      '--to',
      new Date(Date.now() + 86_400_000).toISOString(),
    );
    expect({ status, out }).toEqual({ status: 0, out: 'None.\n' });
    expect(err).toContain('0.00 USD of commissions');
  });

  test.each([
    ['a call without a selection', [], 2, 'choose the deliveries'],
    ['two selections', ['--delivery', 'x', '--from', '2026-01-01'], 2, 'not both'],
    ['an invalid time', ['--from', 'yesterday'], 2, 'epoch milliseconds'],
    ['a day that does not exist', ['--from', '2026-02-31T00:00:00Z'], 2, 'epoch milliseconds'],
    ['an end before the start', ['--from', '2026-02-01', '--to', '2026-01-01'], 2, 'before --to'],
    ['epoch seconds', ['--from', '1769817600'], 2, 'Looks like seconds'],
    ['an unknown delivery', ['--delivery', 'del_01m7yz51jeexzrkkabs7jjdrv8'], 1, 'accepted delivery'],
    ['an id of another kind', ['--delivery', 'evt_01m7yz51jeexzrkkabs7jjdrv8'], 1, 'accepted delivery'],
  ] as const)('deliveries reprocess rejects %s', async (_title, args, status, message) => {
    const response = await reprocess(...args);
    expect(response).toMatchObject({ status, out: '', err: expect.stringContaining(message) });
  });

  // @promise reprocess-stuck-and-cancelled
  test('a stuck deliveries reprocess prints the error, and can be cancelled', async () => {
    await service.sql`alter table reprocess_runs add constraint test_stuck check (seen = 0) not valid`;
    try {
      let err = '';
      const waiting = admin(['deliveries', 'reprocess', '--app', founder.app.id, '--from', '2020-01-01'], {
        stderr: (text) => void (err += text),
      });
      await eventually('the command prints the error', async () => err.includes('A page failed'));
      const { id } = await service.sql.one<{ id: string }>`
        select id from reprocess_runs where last_error is not null`;
      const cancelled = await admin(['deliveries', 'reprocess-cancel', id]);
      expect(cancelled).toMatchObject({ status: 0, out: expect.stringContaining(`${id} stops`) });
      expect((await waiting).status).toBe(0);
      expect(err).toMatch(
        /A page failed and will be retried: .*test_stuck.* deliveries reprocess-cancel rpr_/,
      );
      expect(err).toContain('was cancelled before its end.');
      expect(await admin(['deliveries', 'reprocess-cancel', 'rpr_01m7yz51jeexzrkkabs7jjdrv8'])).toMatchObject(
        {
          status: 1,
          err: expect.stringContaining('in progress'),
        },
      );
    } finally {
      await service.sql`alter table reprocess_runs drop constraint test_stuck`;
    }
  });

  test('deliveries reprocess without a running service prints what to do and how to read the report later', async () => {
    const idle = await startTestApi();
    try {
      const { appId } = await newApp(idle);
      const response = await admin(['deliveries', 'reprocess', '--app', appId, '--from', '2026-01-01'], {
        url: idle.database.url,
        serviceTimeoutMs: 500,
      });
      expect(response).toMatchObject({ status: 1, out: '' });
      expect(response.err).toMatch(
        /No service on this database has started the reprocess run.* deliveries reprocess-report rpr_/,
      );
    } finally {
      await idle.close();
    }
  });
});
