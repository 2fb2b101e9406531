import { createHash } from 'node:crypto';
import type { RequestListener } from 'node:http';
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { Parser } from '@json2csv/plainjs';
import { readPayoutCsv, recordsOf } from '../../src/db/payout-csv.ts';
import { quoteWhereNeeded } from '../../src/domain/csv-cells.ts';
import type { AppId, PayoutId } from '../../src/domain/ids.ts';
import { DAY_MS } from '../../src/domain/time.ts';
import { startHttpServer, SERVER_LIMITS } from '../../src/http-server.ts';
import type { HttpServer } from '../../src/http-server.ts';
import { Admission } from '../../src/http/admission.ts';
import { FileAdmission } from '../../src/http/file-admission.ts';
import type { FileLimits } from '../../src/http/file-admission.ts';
import { newAffiliate, newApp, startTestApi } from '../support/api.ts';
import type { TestApi, TestApp } from '../support/api.ts';
import { eventually } from '../support/eventually.ts';
import { insertEarning, insertReversal, payOut } from '../support/ledger.ts';
import { headOf, openConnection, received } from '../support/raw-http.ts';
import { signInCreator } from '../support/sessions.ts';

describe('payouts of creators', () => {
  let api: TestApi;
  let app: TestApp;

  beforeAll(async () => {
    api = await startTestApi();
    app = await newApp(api);
  });
  afterAll(async () => {
    await api.close();
  });

  /** Pays a new creator for three sales, one of which was refunded in part. */
  async function payCreator(name: string): Promise<{ headers: Record<string, string>; path: string }> {
    const affiliateId = await newAffiliate(api, app, { name });
    const occurredAt = Date.now() - 40 * DAY_MS;
    let earning = '';
    for (const amountCents of [1, 700, 99]) {
      const row = {
        affiliateId,
        amountCents,
        occurredAt: occurredAt + amountCents,
        dueAt: occurredAt + DAY_MS,
      };
      earning = await insertEarning(api, app, row);
    }
    await insertReversal(api, earning, { amountCents: 40, occurredAt: occurredAt + DAY_MS });
    const payoutId = await payOut(api, app, affiliateId);
    return { headers: await signInCreator(api, app, affiliateId), path: `/creator/payouts/${payoutId}` };
  }

  // @promise get-creator-csv
  test.each(['Ada', 'Zoë, "Zo"'])('a statement has the bytes that it always had (%j)', async (name) => {
    const { headers, path } = await payCreator(name);
    const payoutId = path.split('/').at(-1) as PayoutId;
    const stored = await readPayoutCsv(api.sql, app.appId as AppId, payoutId);
    const rows = [...recordsOf(stored?.bytes.toString() ?? '')].map((record) => ({
      payout_id: payoutId as string,
      commission_id: record['commission_id'],
      occurred_at: new Date(Number(record['occurred_at'])).toISOString(),
      amount_usd: record['amount_usd'],
      currency: 'USD',
    }));
    const total = { commission_id: 'total', occurred_at: '', amount_usd: '7.60', currency: 'USD' };
    const formatters = { header: (header: string) => header, string: quoteWhereNeeded };
    const text = new Parser({ eol: '\r\n', formatters }).parse([...rows, { payout_id: payoutId, ...total }]);
    const csv = await api.call('GET', `${path}/csv`, { headers });
    expect(csv.text).toBe(`${text}\r\n`);
    expect(csv.headers.get('x-payout-sha256')).toBe(createHash('sha256').update(csv.text).digest('hex'));
    const at = rows.map((row) => Date.parse(row.occurred_at));
    expect((await api.call('GET', `${path}/statement`, { headers })).body).toMatchObject({
      earnedCents: 800,
      earnedCount: 3,
      takenBackCents: -40,
      takenBackCount: 1,
      from: Math.min(...at),
      to: Math.max(...at),
    });
  });

  // @promise creator-files-limited
  test.each(['statement', 'csv'])(
    'a creator who calls for a %s sixty times at once has one at a time, and takes no place of another creator',
    async (part) => {
      const [noisy, quiet] = [await payCreator('Noisy'), await payCreator('Quiet')];
      let release = () => {};
      const locked = new Promise<void>((resolve) => {
        const gate = new Promise<void>((open) => (release = open));
        void api.sql.transaction(async (sql) => {
          await sql`lock table payouts in access exclusive mode`;
          resolve();
          await gate;
        });
      });
      await locked;
      const get = async ({ headers, path }: typeof noisy) =>
        await api.call('GET', `${path}/${part}`, { headers });
      let refused = 0;
      const flood = Array.from({ length: 60 }, async () => {
        const response = await get(noisy);
        if (response.status === 503) refused += 1;
        return response;
      });
      await eventually(
        'those beyond the slots of the queue are refused',
        async () => await Promise.resolve(refused >= 43),
      );
      const other = get(quiet);
      release();
      expect((await other).status).toBe(200);
      const responses = await Promise.all(flood);
      const late = responses.filter(({ status }) => status === 503);
      expect(late.map(({ headers }) => headers.get('retry-after'))).toEqual(late.map(() => '5'));
      expect(
        responses.map(({ status }) => status).filter((status) => status !== 503 && status !== 200),
      ).toEqual([]);
      // The slots are free again.
      expect((await get(noisy)).status).toBe(200);
    },
  );
});

test('an app has at most its own slots, and its waiting calls leave free slots to others', async () => {
  const admission = new Admission(3, { perHolder: 1 });
  const working: string[] = [];
  const ends: (() => void)[] = [];
  const call = (app: string) => {
    void admission.run(app, async () => {
      working.push(app);
      await new Promise<void>((resolve) => void ends.push(resolve));
    });
  };
  const settled = async () => await new Promise((resolve) => setImmediate(resolve));
  for (const app of ['a', 'a', 'a', 'b']) call(app);
  await settled();
  expect(working).toEqual(['a', 'b']);
  ends[0]?.();
  await settled();
  expect(working).toEqual(['a', 'b', 'a']);
  ends[1]?.();
  await settled();
  expect(working).toEqual(['a', 'b', 'a']);
  for (let nth = 0; nth < 4; nth += 1) {
    ends[nth]?.();
    await settled();
  }
  expect(working).toEqual(['a', 'b', 'a', 'a']);
});

describe('a response that its client reads slowly', () => {
  const FILE = Buffer.alloc(20_000_000);
  let server: HttpServer | undefined;
  const ends: (() => void)[] = [];

  afterEach(async () => {
    for (const end of ends.splice(0)) end();
    await server?.stop(0);
  });

  /** Starts a server whose responses are files of the sharer in the path. */
  async function start(limits: Partial<FileLimits>): Promise<void> {
    const files = new FileAdmission({ slots: 2, perHolder: 1, waitMs: 50, ...limits });
    const handle = (): RequestListener => (request, response) => {
      files
        .run(request.url ?? '', response, async () => {
          await Promise.resolve();
          response.end(request.url === '/small' ? 'done' : FILE);
        })
        .catch(() => response.writeHead(503).end());
    };
    server = await startHttpServer('127.0.0.1', 0, handle, SERVER_LIMITS);
  }
  const open = async (path: string) => {
    const socket = await openConnection(server?.url ?? '', headOf('GET', path, { connection: 'close' }));
    ends.push(() => socket.destroy());
    return socket;
  };
  const statusOf = async (path: string) => (await received(await open(path))).slice(9, 12);

  // @promise creator-files-limited
  test('keeps its place until it is read or its connection ends', async () => {
    await start({});
    const slow = await open('/slow');
    await eventually('the place is taken', async () => (await statusOf('/slow')) === '503');
    expect(await statusOf('/small')).toBe('200');
    slow.destroy();
    await eventually('the place is free', async () => (await statusOf('/slow')) === '200');
    await Promise.all(['/a', '/b'].map(open));
    await eventually('all slots are taken', async () => (await statusOf('/small')) === '503');
  });

  // @promise creator-files-limited
  test('loses its connection when another call needs its place and it has taken too long', async () => {
    await start({ readingMs: 0, slots: 1 });
    const slow = await open('/slow');
    await eventually('the slow one is sent', async () => await Promise.resolve(slow.bytesRead > 0));
    expect(await statusOf('/small')).toBe('200');
    await received(slow.resume());
    expect(slow.closed).toBe(true);
  });

  test('is not ended for a call of somebody who has a place', async () => {
    await start({ readingMs: 0 });
    const others = await open('/others');
    await eventually('it is sent', async () => await Promise.resolve(others.bytesRead > 0));
    const own = await open('/own');
    await eventually('it is sent', async () => await Promise.resolve(own.bytesRead > 0));
    const next = await open('/own');
    await received(own.resume());
    const rest = received(others.resume());
    next.destroy();
    expect((await rest).length).toBeGreaterThan(FILE.length);
  });

  test('a client that ends its connection before the file is made leaves its place', async () => {
    let make = () => {};
    const files = new FileAdmission({ slots: 1, perHolder: 1, waitMs: 50 });
    let begun = 0;
    server = await startHttpServer(
      '127.0.0.1',
      0,
      () => (_request, response) => {
        void files
          .run('x', response, async () => {
            begun += 1;
            if (begun === 1) await new Promise<void>((resolve) => (make = resolve));
            response.end('done');
          })
          .catch(() => response.writeHead(503).end());
      },
      SERVER_LIMITS,
    );
    const socket = await open('/');
    await eventually('it has begun', async () => await Promise.resolve(begun === 1));
    socket.destroy();
    await new Promise((resolve) => setTimeout(resolve, 50));
    make();
    await eventually('the place is free', async () => (await statusOf('/')) === '200');
  });
});
