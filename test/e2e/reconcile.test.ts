import { createHash, randomUUID } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { runAdmin } from '../../src/cli/admin.ts';
import { createSecretBox } from '../../src/config/secret-box.ts';
import { newId } from '../../src/db/new-id.ts';
import {
  acceptReconciled,
  findReconciledOutcomes,
  findReconciliationSecret,
} from '../../src/db/reconciliation.ts';
import type { AppId } from '../../src/domain/ids.ts';
import { DAY_MS } from '../../src/domain/time.ts';
import { PROVIDER_NAMES } from '../../src/providers/index.ts';
import type { ProviderName } from '../../src/providers/index.ts';
import { reconciliationProof } from '../../src/providers/proof.ts';
import { expectConsistentLedger } from '../support/consistent-ledger.ts';
import { eventually } from '../support/eventually.ts';
import { setUpFounder } from '../support/founder.ts';
import type { Founder } from '../support/founder.ts';
import {
  adaptyRows,
  csvOf,
  paddleAdjustments,
  paddleTransactions,
  purchaseOf,
  refundOf,
  revenuecatRows,
  stripeInvoices,
  stripeRefunds,
  stripeRows,
  superwallRows,
} from '../support/provider-exports.ts';
import type { ListedSale } from '../support/provider-exports.ts';
import {
  bodyOf,
  fakeSecret,
  PROOFS,
  revenuecatEvent,
  stripeCharge,
  stripeCheckoutSession,
  stripeDispute,
  stripeInvoicePaid,
  stripeInvoicePaymentPaid,
  stripePaymentIntent,
} from '../support/provider-fixtures.ts';
import type { Payload } from '../support/provider-fixtures.ts';
import { startTestService, TEST_SECRETS_KEY } from '../support/service.ts';
import type { TestService } from '../support/service.ts';

let service: TestService;
let folder: string;

beforeAll(async () => {
  service = await startTestService({ settings: { relay: { overdueMs: 1_000, pauseMs: 200 } } });
  folder = await mkdtemp(join(tmpdir(), 'reconcile-test-'));
});
afterAll(async () => {
  await expectConsistentLedger(service.sql);
  await service.close();
  await rm(folder, { recursive: true });
});

async function admin(...args: string[]) {
  let [out, err] = ['', ''];
  const status = await runAdmin(args, {
    openDatabase: async () => ({
      url: service.database.url,
      ownerUrl: service.database.url,
      close: async () => {},
    }),
    secretsKeys: { read: async () => [TEST_SECRETS_KEY], require: async () => {} },
    findService: async () => null,
    stdout: (text) => void (out += text),
    stderr: (text) => void (err += text),
  });
  return { status, out, err };
}

/** An app that receives the webhooks of one provider. */
async function setUp(provider: ProviderName) {
  const founder = await setUpFounder(service, { commissionRateBps: 1_000, holdPeriodDays: 30 });
  const given = fakeSecret(provider);
  const { secret = given ?? '' } = await founder.ok<{ secret?: string }>(
    'PUT',
    `/apps/${founder.app.id}/webhooks/${provider}/secret`,
    { environment: 'production', ...(given === null ? {} : { secret: given }) },
  );
  const deliver = async (payload: Payload) => {
    const body = bodyOf(payload);
    const response = await founder.webhook(provider, body, PROOFS[provider](body, secret));
    expect(response).toMatchObject({ status: 200 });
    return response.body;
  };
  return { founder, deliver };
}

/** Returns what the ledger of an app contains, without ids and without times of writing. */
async function ledgerOf(founder: Founder) {
  return await service.sql`
    select c.kind, c.amount_cents, c.base_cents, c.rate_bps, c.occurred_at, c.due_at, c.status, c.source, p.store, p.ref,
           c.customer_user_id
      from commissions c join payments p on p.id = c.payment_id
     where c.app_id = ${founder.app.id} order by p.ref, c.kind, c.amount_cents`;
}

async function amountsOf(founder: Founder): Promise<readonly number[]> {
  const rows = await service.sql<{ amountCents: number }>`
    select amount_cents from commissions where app_id = ${founder.app.id} order by amount_cents`;
  return rows.map(({ amountCents }) => amountCents);
}

async function revenueOf(founder: Founder) {
  return await service.sql`
    select p.ref, r.amount_cents, r.occurred_at from revenue_entries r join payments p on p.id = r.payment_id
     where p.app_id = ${founder.app.id} order by p.ref, r.amount_cents`;
}

/** Writes the exports of a provider. RevenueCat's are packed; Superwall's have a byte order mark. */
async function writeExports(provider: ProviderName, sales: readonly ListedSale[]): Promise<string[]> {
  const save = async (content: string | Buffer) => {
    const path = join(folder, randomUUID());
    await writeFile(path, content);
    return path;
  };
  switch (provider) {
    case 'revenuecat':
      return [await save(gzipSync(csvOf(revenuecatRows(sales))))];
    case 'adapty':
      return [await save(csvOf(adaptyRows(sales), '\n'))];
    case 'superwall':
      return [await save(`\uFEFF${csvOf(superwallRows(sales))}`)];
    case 'stripe':
      return [await save(stripeInvoices(sales)), await save(stripeRefunds(sales))];
    case 'paddle':
      return [await save(paddleTransactions(sales)), await save(paddleAdjustments(sales))];
  }
}

interface Report {
  readonly differences: number;
  readonly earnedNothing: readonly { cause: string; payments: number }[];
  readonly findings: readonly {
    kind: string;
    paymentRef: string;
    refundRef: string | null;
    exportedMinor: number | null;
    recordedMinor: number | null;
    cause: string | null;
    feedBack: string | null;
  }[];
}

describe.each(PROVIDER_NAMES)('%s', (provider) => {
  const prefix = { stripe: 'in_', paddle: 'txn_' }[provider as string] ?? '';

  // @promise reconcile-finds, reconcile-feeds-back, reconcile-late-webhook
  test('reconcile names exactly what an export and the ledger differ in, and feeds back what is missing once', async () => {
    const lossy = await setUp(provider);
    // What all webhooks give is compared for one provider; for the others it is computed.
    const complete = provider === 'stripe' ? await setUp(provider) : null;
    const second = Math.floor(Date.now() / 1000) * 1000;
    const sale = (name: string, userId: string, daysAgo: number, cents = 1_200): ListedSale => ({
      userId,
      cents,
      ref: `${name}-${randomUUID().slice(0, 8)}`,
      occurredAt: second - daysAgo * DAY_MS,
      refundedAt: null,
    });
    const [one, two] = [await lossy.founder.customer(), await lossy.founder.customer()];
    // The same users are known to both apps.
    for (const userId of complete === null ? [] : [one, two]) {
      const { founder } = complete ?? lossy;
      await founder.identify(await founder.install(founder.slug, Date.now() - 60 * DAY_MS), userId);
    }
    const kept = sale('kept', one, 9);
    const lost = sale('lost', two, 8, 1_999);
    const wrong = sale('wrong', one, 7);
    const refunded = { ...sale('refunded', two, 6), refundedAt: second - 2 * DAY_MS };
    const unlisted = sale('unlisted', one, 4);
    const stranger = sale('stranger', `stranger-${randomUUID()}`, 1);
    const sales = [kept, lost, wrong, refunded, unlisted, stranger];
    for (const each of complete === null ? [] : sales) await complete?.deliver(purchaseOf(provider, each));
    await complete?.deliver(refundOf(provider, refunded, refunded.refundedAt));
    for (const each of sales) if (each !== lost) await lossy.deliver(purchaseOf(provider, each));

    const app = ['--app', lossy.founder.app.id, '--provider', provider];
    const compare = async (listed: readonly ListedSale[], ...args: string[]) => {
      const reports: Report[] = [];
      let worst = 0;
      for (const path of await writeExports(provider, listed)) {
        const { status, out, err } = await admin('reconcile', path, ...app, '--format', 'json', ...args);
        if (![0, 3].includes(status)) throw new Error(err);
        worst = Math.max(worst, status);
        reports.push(JSON.parse(out) as Report);
      }
      const findings = reports.flatMap((report) => report.findings);
      return { status: worst, findings, earnedNothing: reports.flatMap((r) => r.earnedNothing) };
    };
    const listed = [kept, lost, { ...wrong, cents: 1_500 }, refunded, stranger];
    const found = await compare(listed, '--unattributed');
    expect(found.status).toBe(3);
    const named = found.findings.map(
      ({ kind, paymentRef, exportedMinor, recordedMinor, cause, feedBack }) => ({
        kind,
        paymentRef,
        exportedMinor,
        recordedMinor,
        cause,
        feedBack,
      }),
    );
    const finding = (kind: string, { ref }: ListedSale, over: object) => ({
      kind,
      paymentRef: prefix + ref,
      exportedMinor: null,
      recordedMinor: null,
      cause: null,
      feedBack: null,
      ...over,
    });
    expect(named).toHaveLength(5);
    expect(named).toEqual(
      expect.arrayContaining([
        finding('missing_payment', lost, { exportedMinor: 1_999, feedBack: 'yes' }),
        finding('wrong_amount', wrong, { exportedMinor: 1_500, recordedMinor: 1_200 }),
        {
          ...finding('missing_refund', refunded, { exportedMinor: 1_200, feedBack: 'yes' }),
          paymentRef: expect.stringContaining(refunded.ref),
        },
        finding('earned_nothing', stranger, {
          exportedMinor: 1_200,
          recordedMinor: 1_200,
          cause: 'user_never_identified',
        }),
        finding('payment_not_in_export', unlisted, { recordedMinor: 1_200 }),
      ]),
    );

    const corrected = sales;
    expect(await amountsOf(lossy.founder)).toEqual([120, 120, 120, 120]);
    const fed = await compare(corrected, '--feed-back');
    expect(fed.status).toBe(0);
    const expectComplete = async () => {
      expect(await amountsOf(lossy.founder)).toEqual([-120, 120, 120, 120, 120, 200]);
      if (complete === null) return;
      expect(await ledgerOf(lossy.founder)).toEqual(await ledgerOf(complete.founder));
      expect(await revenueOf(lossy.founder)).toEqual(await revenueOf(complete.founder));
    };
    await expectComplete();
    const again = await compare(corrected, '--feed-back');
    expect(again).toEqual({
      status: 0,
      findings: [],
      earnedNothing: [expect.objectContaining({ cause: 'user_never_identified', payments: 1 })],
    });

    await lossy.deliver(purchaseOf(provider, lost));
    await lossy.deliver(refundOf(provider, refunded, refunded.refundedAt));
    await expectComplete();
  });
});

describe('tributary reconcile', () => {
  const lostSale = (): ListedSale => ({
    userId: `stranger-${randomUUID()}`,
    cents: 1_200,
    ref: randomUUID().slice(0, 8),
    occurredAt: Math.floor(Date.now() / 1000) * 1000 - DAY_MS,
    refundedAt: null,
  });

  /** Writes an object of Stripe's API, as a list of it returns it. */
  const saveObjects = async (...events: readonly Payload[]): Promise<string> => {
    const path = join(folder, randomUUID());
    await writeFile(
      path,
      events.map((event) => `${JSON.stringify((event['data'] as Payload)['object'])}\n`).join(''),
    );
    return path;
  };

  // @promise reconcile-marked
  test('an event that was fed back is explained as added by the operator, and does not count as a delivery of the provider', async () => {
    const { founder } = await setUp('stripe');
    const app = ['--app', founder.app.id, '--provider', 'stripe'];
    const [path = ''] = await writeExports('stripe', [lostSale()]);

    const refused = await admin('reconcile', path, ...app, '--feed-back');
    expect(refused).toMatchObject({ status: 1, out: '' });
    expect(refused.err).toContain('no payment of this file is in the ledger');
    const stored = await service.sql`select 1 from deliveries where app_id = ${founder.app.id}`;
    expect(stored).toEqual([]);

    const fed = await admin('reconcile', path, ...app, '--feed-back', '--without-match');
    expect(fed).toMatchObject({
      status: 0,
      out: expect.stringContaining('1 events added: 0 changed commissions'),
    });
    const { id, sourceEventId } = await service.sql.one<{ id: string; sourceEventId: string }>`
      select id, source_event_id from events where app_id = ${founder.app.id}`;
    expect(sourceEventId).toMatch(/^reconciliation:invoice\.paid:in_/);
    const { steps } = await founder.ok<{ steps: { decision: string }[] }>(
      'GET',
      `/apps/${founder.app.id}/events/${id}/explanation`,
    );
    expect(steps.map(({ decision }) => decision)).toEqual(expect.arrayContaining(['reconciled', 'purchase']));
    const { items } = await founder.ok<{ items: { lastDelivery: unknown }[] }>(
      'GET',
      `/apps/${founder.app.id}/webhooks`,
    );
    expect(items.map(({ lastDelivery }) => lastDelivery)).toEqual(PROVIDER_NAMES.map(() => null));
  });

  // @promise reconcile-as-in-time
  test('a lost payment from before its user came to a creator earns nothing when it is fed back, one after it earns', async () => {
    const { founder } = await setUp('stripe');
    const app = ['--app', founder.app.id, '--provider', 'stripe'];
    const cameAt = Math.floor(Date.now() / 1000) * 1000 - 5 * DAY_MS;
    const userId = await founder.customer(founder.slug, cameAt);
    const before = { ...lostSale(), userId, occurredAt: cameAt - DAY_MS };
    const after = { ...lostSale(), userId, occurredAt: cameAt + DAY_MS };
    const [path = ''] = await writeExports('stripe', [before, after]);
    expect(await admin('reconcile', path, ...app, '--feed-back', '--without-match')).toMatchObject({
      status: 0,
    });
    const payments = await service.sql`
      select ref, earned_cents, likely_cause from payments where app_id = ${founder.app.id} order by occurred_at`;
    expect(payments).toEqual([
      { ref: `in_${before.ref}`, earnedCents: 0, likelyCause: 'outside_attribution_window' },
      { ref: `in_${after.ref}`, earnedCents: 120, likelyCause: null },
    ]);
    // Reprocessing follows the same rule.
    const reprocessed = await admin(
      'deliveries',
      'reprocess',
      '--app',
      founder.app.id,
      '--from',
      '2020-01-01',
      '--json',
    );
    expect(JSON.parse(reprocessed.out)).toMatchObject({ seen: 2, changed: 0 });
  });

  test('a payment of an erased person is fed back under the pseudonym, and its body is not kept', async () => {
    const { founder } = await setUp('stripe');
    const lost = { ...lostSale(), userId: await founder.customer() };
    await founder.ok('DELETE', `/apps/${founder.app.id}/users/${lost.userId}`);
    const [path = ''] = await writeExports('stripe', [lost]);
    const app = ['--app', founder.app.id, '--provider', 'stripe'];
    await admin('reconcile', path, ...app, '--feed-back', '--without-match');
    const events = await service.sql<{ customerUserId: string }>`
      select customer_user_id from events where app_id = ${founder.app.id}`;
    expect(events).toEqual([{ customerUserId: expect.stringMatching(/^erased:/) }]);
    const bodies = await service.sql`
      select 1 from delivery_bodies b join deliveries d on d.id = b.delivery_id where d.app_id = ${founder.app.id}`;
    expect(bodies).toEqual([]);
  });

  // @promise reconcile-refuses, reconcile-output
  test('invoices of Stripe that name no user are compared, and fed back only once a webhook has named the user', async () => {
    const { founder, deliver } = await setUp('stripe');
    const app = ['--app', founder.app.id, '--provider', 'stripe'];
    const lost = lostSale();
    const known = { ...lostSale(), userId: await founder.customer() };
    const subscriptionOf = ({ ref }: ListedSale) => `sub_${ref}`;
    const path = await saveObjects(
      ...[lost, known].map((sale) =>
        stripeInvoicePaid({
          userId: null,
          invoiceId: `in_${sale.ref}`,
          subscriptionId: subscriptionOf(sale),
          amount: sale.cents,
          occurredAt: sale.occurredAt,
          extra: { payments: { data: [], has_more: false } },
        }),
      ),
    );
    await deliver(
      stripeCheckoutSession({
        mode: 'subscription',
        userId: known.userId,
        subscriptionId: subscriptionOf(known),
        customerId: null,
      }),
    );
    const csv = await admin('reconcile', path, ...app, '--format', 'csv', '--without-match');
    expect(csv.status).toBe(3);
    const [header, ...lines] = csv.out.split('\r\n');
    expect(header).toBe(
      'finding,occurred_at,line,store,payment_ref,refund_ref,customer_user_id,currency,exported_amount,recorded_amount,event_id,cause,detail,feed_back',
    );
    const at = new Date(lost.occurredAt).toISOString();
    const row = ({ ref }: ListedSale, line: number, toFeedBack: string) =>
      `missing_payment,${at},${line},stripe,in_${ref},,,USD,12.00,,,,No webhook has reported this payment.,${toFeedBack}`;
    expect(lines).toEqual([
      expect.stringContaining(row(lost, 1, '"The object names no user')),
      row({ ...known, occurredAt: lost.occurredAt }, 2, 'yes'),
      '',
    ]);

    const fed = await admin('reconcile', path, ...app, '--feed-back', '--without-match');
    // The payment that names nobody is left.
    expect(fed).toMatchObject({
      status: 3,
      out: expect.stringContaining('1 events added: 1 changed commissions'),
    });
    expect(await amountsOf(founder)).toEqual([120]);
    const table = await admin('reconcile', path, ...app);
    expect(table.out).toMatch(/missing_payment .* in_/);
    expect(table.out).toContain('2 payments, 1 of them in the ledger.');
  });

  test('a lost invoice of Stripe of a customer whom a promotion code has bound is fed back, and earns for its creator', async () => {
    const { founder, deliver } = await setUp('stripe');
    const { affiliateId } = founder;
    await founder.ok('PATCH', `/apps/${founder.app.id}/settings`, { purchaseCodes: 'when_unattributed' });
    await founder.ok('POST', `/apps/${founder.app.id}/affiliates/${affiliateId}/codes`, {
      namespace: 'stripe',
      value: 'SPRING20',
      externalId: 'promo_spring',
    });
    // As if the code had been there, and had counted, when the sale was made.
    await service.sql.transaction(async (tx) => {
      await tx`set local session_replication_role = replica`;
      await tx`update apps set purchase_codes_from = purchase_codes_from - interval '60 days' where id = ${founder.app.id}`;
      await tx`update codes set created_at = created_at - interval '60 days' where app_id = ${founder.app.id}`;
    });
    const lost = lostSale();
    const invoice = (n: number, extra: object) =>
      stripeInvoicePaid({
        userId: null,
        invoiceId: `in_${lost.ref}_${n}`,
        subscriptionId: `sub_${lost.ref}`,
        amount: lost.cents,
        occurredAt: lost.occurredAt + n,
        extra: { payments: { data: [], has_more: false }, ...extra },
      });
    await deliver(
      invoice(1, { discounts: [{ id: 'di_1', object: 'discount', promotion_code: 'promo_spring' }] }),
    );
    expect(await amountsOf(founder)).toEqual([120]);
    const path = await saveObjects(invoice(1, {}), invoice(2, {}));
    const fed = await admin(
      'reconcile',
      path,
      '--app',
      founder.app.id,
      '--provider',
      'stripe',
      '--feed-back',
    );
    expect(fed).toMatchObject({
      status: 0,
      out: expect.stringContaining('1 events added: 1 changed commissions'),
    });
    expect(await amountsOf(founder)).toEqual([120, 120]);
  });

  // @promise reconcile-refuses
  test('a charge of Stripe of an invoice, which may not be paid in full yet, and one that may still fail are reported and not fed back', async () => {
    const { founder } = await setUp('stripe');
    const app = ['--app', founder.app.id, '--provider', 'stripe', '--without-match', '--feed-back'];
    const userId = await founder.customer();
    const sales = [1, 2, 3, 4].map(() => ({ ...lostSale(), userId }));
    const [card = '', debit = '', invoice = '', parts = ''] = sales.map(({ ref }) => ref);
    const [byCard = {}, byDebit = {}, ofInvoice = {}, part = {}] = stripeRows(sales);
    const path = join(folder, randomUUID());
    const rows = [
      { ...byCard, invoice_id: '' },
      { ...byDebit, invoice_id: '', payment_method_type: 'sepa_debit' },
      ofInvoice,
      part,
      { ...part, charge_id: 'ch_second', source_id: 'ch_second', payment_intent_id: 'pi_second' },
    ];
    await writeFile(path, csvOf(rows));
    const { status, out } = await admin('reconcile', path, ...app, '--format', 'json');
    expect(status).toBe(3);
    const { findings } = JSON.parse(out) as Report;
    const refused = expect.stringContaining('Export the invoices as JSON');
    expect(
      findings.map(({ paymentRef, exportedMinor, feedBack }) => [paymentRef, exportedMinor, feedBack]),
    ).toEqual(
      expect.arrayContaining([
        [`pi_${card}`, 1_200, 'yes'],
        [`pi_${debit}`, 1_200, expect.stringContaining('send the webhook again')],
        [`in_${invoice}`, 1_200, refused],
        [`in_${parts}`, 2_400, refused],
      ]),
    );
    const stored = await service.sql`select ref from payments where app_id = ${founder.app.id}`;
    expect(stored).toEqual([{ ref: `pi_${card}` }]);
    expect(await amountsOf(founder)).toEqual([120]);
  });

  // @promise reconcile-refuses
  test('a payment intent of Stripe that names no user is compared and never fed back, also of a customer whose user is known', async () => {
    const { founder, deliver } = await setUp('stripe');
    const userId = await founder.customer();
    const sale = () => ({ ...lostSale(), userId });
    const [unnamed, ofSession, named] = [sale(), sale(), sale()];
    await deliver(stripeCheckoutSession({ mode: 'subscription', userId, customerId: `cus_${unnamed.ref}` }));
    // What the company charges the customer for besides: its webhook does not count.
    await deliver(
      stripePaymentIntent({
        userId: null,
        paymentIntentId: `pi_${unnamed.ref}`,
        chargeId: `ch_${unnamed.ref}`,
        amount: unnamed.cents,
        occurredAt: unnamed.occurredAt,
      }),
    );
    await deliver(
      stripeCheckoutSession({
        userId,
        customerId: null,
        paymentIntentId: `pi_${ofSession.ref}`,
        amount: ofSession.cents,
        occurredAt: ofSession.occurredAt,
      }),
    );
    expect(await amountsOf(founder)).toEqual([120]);

    const rows = stripeRows([unnamed, ofSession, named]).map((row) => ({
      ...row,
      invoice_id: '',
      'payment_metadata[app_user_id]': row['payment_intent_id'] === `pi_${named.ref}` ? userId : '',
    }));
    const path = join(folder, randomUUID());
    await writeFile(path, csvOf(rows));
    const app = ['--app', founder.app.id, '--provider', 'stripe', '--without-match', '--format', 'json'];
    const { status, out } = await admin('reconcile', path, ...app, '--feed-back');
    expect(status).toBe(3);
    const { findings } = JSON.parse(out) as Report;
    expect(findings).toHaveLength(2);
    expect(findings.map(({ kind, paymentRef, feedBack }) => [kind, paymentRef, feedBack])).toEqual(
      expect.arrayContaining([
        ['missing_payment', `pi_${unnamed.ref}`, expect.stringContaining('names no user')],
        ['missing_payment', `pi_${named.ref}`, 'yes'],
      ]),
    );
    const stored = await service.sql<{ ref: string }>`
      select ref from payments where app_id = ${founder.app.id}`;
    expect(stored.map(({ ref }) => ref).toSorted()).toEqual(
      [`pi_${ofSession.ref}`, `pi_${named.ref}`].toSorted(),
    );
    expect(await amountsOf(founder)).toEqual([120, 120]);
  });

  // @promise reconcile-refuses
  test('a partial refund of Stripe is fed back only once a webhook has reported a single refund of a charge', async () => {
    const { founder, deliver } = await setUp('stripe');
    const app = ['--app', founder.app.id, '--provider', 'stripe', '--format', 'json'];
    const [whole, part] = [lostSale(), lostSale()].map((sale) => ({ ...sale, refundedAt: sale.occurredAt }));
    if (whole === undefined || part === undefined) throw new Error('there are two sales');
    const rows = [
      ...stripeRows([whole]),
      ...stripeRows([part]).map((row) =>
        row['reporting_category'] === 'refund' ? { ...row, customer_facing_amount: '-4.00' } : row,
      ),
    ];
    const path = join(folder, randomUUID());
    await writeFile(path, csvOf(rows));
    for (const sale of [whole, part]) await deliver(purchaseOf('stripe', sale));
    const toldOf = async (...args: string[]) => {
      const { findings } = JSON.parse((await admin('reconcile', path, ...app, ...args)).out) as Report;
      return findings.map(({ refundRef, feedBack }) => [refundRef, feedBack]);
    };
    const refused = [`re_${part.ref}`, expect.stringContaining('single refunds')];
    expect(await toldOf('--feed-back')).toEqual(
      expect.arrayContaining([[`re_${whole.ref}`, 'yes'], refused]),
    );
    // The refund that was fed back shows nothing about the endpoint.
    expect(await toldOf()).toEqual([refused]);

    const other = lostSale();
    await deliver(purchaseOf('stripe', other));
    await deliver(refundOf('stripe', other, other.occurredAt));
    expect(await toldOf('--one-way')).toEqual([[`re_${part.ref}`, 'yes']]);
  });

  // @promise reconcile-compares-again
  test.each<[string, (at: number) => readonly object[]]>([
    [
      'by the balance',
      (at) => [
        { amount: -1_200, created: at + 9 },
        { amount: 1_200, created: at + 9 * 86_400 },
      ],
    ],
    ['by the time of the export, where the balance does not state it', () => []],
  ])(
    'a won dispute that no webhook reported is given back permanently, dated %s',
    async (_, transactions) => {
      const { founder, deliver } = await setUp('stripe');
      const app = ['--app', founder.app.id, '--provider', 'stripe', '--feed-back'];
      const sale = {
        ...lostSale(),
        userId: await founder.customer(),
        occurredAt: lostSale().occurredAt - 20 * DAY_MS,
      };
      const opened = sale.occurredAt + DAY_MS;
      const dispute = (type: string, status: string, at: number, extra: Payload = {}) =>
        stripeDispute({
          type: `charge.dispute.${type}`,
          status,
          id: `du_${sale.ref}`,
          paymentIntentId: `pi_${sale.ref}`,
          chargeId: `ch_${sale.ref}`,
          amount: 1_200,
          occurredAt: at,
          extra: { created: opened / 1000, ...extra },
        });
      await deliver(purchaseOf('stripe', sale));
      await deliver(
        stripeCharge({
          chargeId: `ch_${sale.ref}`,
          paymentIntentId: `pi_${sale.ref}`,
          invoiceId: `in_${sale.ref}`,
        }),
      );
      await deliver(dispute('created', 'needs_response', opened));
      await deliver(dispute('updated', 'under_review', opened + DAY_MS));
      expect(await amountsOf(founder)).toEqual([-120, 120]);
      const path = await saveObjects(
        dispute('closed', 'won', opened, { balance_transactions: transactions(opened / 1000) }),
      );
      expect(await admin('reconcile', path, ...app)).toMatchObject({ status: 0 });
      expect(await amountsOf(founder)).toEqual([-120, 120, 120]);
      // A webhook of the time before arrives late.
      await deliver(dispute('funds_withdrawn', 'under_review', opened + 2 * DAY_MS));
      expect(await amountsOf(founder)).toEqual([-120, 120, 120]);
      expect(await admin('reconcile', path, ...app)).toMatchObject({ status: 0, err: '' });
    },
  );

  // @promise reconcile-compares-again
  test('a difference that stays after feeding back is reported with the status 3 and a sentence', async () => {
    const { founder, deliver } = await setUp('stripe');
    const sale = { ...lostSale(), userId: await founder.customer() };
    const names = { id: `du_${sale.ref}`, paymentIntentId: `in_${sale.ref}`, chargeId: null, amount: 1_200 };
    await deliver(purchaseOf('stripe', sale));
    const opened = { ...names, occurredAt: sale.occurredAt + 3_600_000 };
    await deliver(stripeDispute(opened));
    // The export is older than the webhook.
    const older = [{ amount: 1_200, created: (sale.occurredAt + 60_000) / 1000 }];
    const path = await saveObjects(
      stripeDispute({ ...opened, status: 'won', extra: { balance_transactions: older } }),
    );
    const { status, err } = await admin(
      'reconcile',
      path,
      '--app',
      founder.app.id,
      '--provider',
      'stripe',
      '--feed-back',
    );
    expect({ status, err }).toEqual({ status: 3, err: expect.stringContaining('1 differences are left') });
    expect(err).toContain('1 of the added events changed nothing');
    expect(await amountsOf(founder)).toEqual([-120, 120]);
  });

  // @promise reconcile-out-of-band
  test('an invoice is fed back only with its payments, and what was paid outside Stripe does not earn', async () => {
    const { founder, deliver } = await setUp('stripe');
    const app = ['--app', founder.app.id, '--provider', 'stripe', '--feed-back', '--without-match'];
    const userId = await founder.customer();
    const sale = { ...lostSale(), userId };
    const record = stripeInvoicePaymentPaid({
      id: `inpay_${sale.ref}`,
      invoiceId: `in_${sale.ref}`,
      paymentRecordId: `pr_${sale.ref}`,
      amount: 500,
      occurredAt: sale.occurredAt,
    });
    const payment = (record['data'] as Payload)['object'];
    const invoiceOf = (extra: Payload, amount = 1_200) =>
      stripeInvoicePaid({ userId, invoiceId: `in_${sale.ref}`, amount, occurredAt: sale.occurredAt, extra });
    const without = await admin('reconcile', await saveObjects(invoiceOf({})), ...app);
    expect(without).toMatchObject({
      status: 1,
      out: '',
      err: expect.stringContaining('expand[]=data.payments'),
    });
    const partly = await admin(
      'reconcile',
      await saveObjects(invoiceOf({ payments: { data: [payment], has_more: true } })),
      ...app,
    );
    expect(partly).toMatchObject({ status: 3, out: expect.stringContaining('more payments than') });
    expect(await amountsOf(founder)).toEqual([]);

    const path = await saveObjects(invoiceOf({ payments: { data: [payment], has_more: false } }));
    expect(await admin('reconcile', path, ...app)).toMatchObject({ status: 0 });
    expect(await amountsOf(founder)).toEqual([-50, 120]);
    expect(await admin('reconcile', path, ...app)).toMatchObject({ status: 0, err: '' });
    await deliver(record);
    expect(await amountsOf(founder)).toEqual([-50, 120]);
  });

  // @promise reconcile-out-of-band
  test('an invoice of an export ties its payment intents to it, so that it does not earn beside them', async () => {
    const { founder, deliver } = await setUp('stripe');
    const sale = { ...lostSale(), userId: await founder.customer() };
    await deliver({
      ...stripeCharge({ chargeId: `ch_${sale.ref}`, paymentIntentId: `pi_${sale.ref}` }),
    });
    await deliver(
      stripeCheckoutSession({
        userId: sale.userId,
        paymentIntentId: `pi_${sale.ref}`,
        amount: 1_200,
        invoiceId: null,
      }),
    );
    expect(await amountsOf(founder)).toEqual([120]);
    const payment = {
      id: 'inpay_1',
      status: 'paid',
      payment: { type: 'payment_intent', payment_intent: `pi_${sale.ref}` },
    };
    const path = await saveObjects(
      stripeInvoicePaid({
        userId: sale.userId,
        invoiceId: `in_${sale.ref}`,
        amount: 1_200,
        occurredAt: sale.occurredAt,
        extra: { payments: { data: [payment], has_more: false } },
      }),
    );
    const app = ['--app', founder.app.id, '--provider', 'stripe'];
    expect(await admin('reconcile', path, ...app, '--one-way')).toMatchObject({ status: 0 });
  });

  // @promise reconcile-finds
  test('an invoice is compared with what was paid in all, also where a part was reported before it', async () => {
    const { founder, deliver } = await setUp('stripe');
    const ref = randomUUID().slice(0, 8);
    const ids = { userId: `stranger-${ref}`, invoiceId: `in_${ref}`, paymentIntentId: `pi_${ref}` };
    const seconds = Math.floor(Date.now() / 1000) - 86_400;
    const part = { ...ids, amount: 4_000, currency: 'usd', occurredAt: seconds * 1000 };
    await deliver(stripePaymentIntent(part));
    await deliver(stripeInvoicePaymentPaid(part));
    await deliver(stripeInvoicePaid({ ...part, amount: 10_000 }));
    const path = join(folder, randomUUID());
    const paid = {
      id: ids.invoiceId,
      object: 'invoice',
      status: 'paid',
      currency: 'usd',
      amount_paid: 10_000,
      created: seconds,
      payments: { data: [] },
    };
    await writeFile(path, JSON.stringify(paid));
    const compared = await admin(
      'reconcile',
      path,
      '--app',
      founder.app.id,
      '--provider',
      'stripe',
      '--format',
      'json',
    );
    expect(JSON.parse(compared.out)).toMatchObject({
      differences: 0,
      earnedNothing: [{ cause: 'user_never_identified', payments: 1 }],
    });
  });

  // @promise reconcile-refuses
  test('payments of a store are fed back only if a payment of that store is in the ledger, and none that the ledger has under another id', async () => {
    const { founder, deliver } = await setUp('revenuecat');
    const app = ['--app', founder.app.id, '--provider', 'revenuecat', '--format', 'json'];
    const userId = await founder.customer();
    const sales = [1, 2, 3, 4].map((n) => ({
      ...lostSale(),
      userId,
      occurredAt: lostSale().occurredAt - n * 3_600_000,
    }));
    const [apple, ...play] = sales;
    if (apple === undefined) throw new Error('there is a sale');
    await deliver(purchaseOf('revenuecat', apple));
    for (const { ref, occurredAt, cents } of play) {
      const transactionId = `GPA.${ref}..0`;
      await deliver(
        revenuecatEvent({
          userId,
          transactionId,
          usd: cents / 100,
          occurredAt,
          extra: { store: 'PLAY_STORE' },
        }),
      );
    }
    expect(await amountsOf(founder)).toEqual([120, 120, 120, 120]);
    const listed = revenuecatRows([apple, ...play.map((sale) => ({ ...sale, ref: `GPA.${sale.ref}` }))]).map(
      (row, n) => (n === 0 ? row : { ...row, store: 'play_store' }),
    );
    const save = async (rows: typeof listed) => {
      const path = join(folder, randomUUID());
      await writeFile(path, csvOf(rows));
      return path;
    };
    const run = async (rows: typeof listed, ...args: string[]) => {
      const { status, out } = await admin('reconcile', await save(rows), ...app, ...args);
      const { findings } = JSON.parse(out) as Report;
      const missing = findings.filter(({ kind }) => kind === 'missing_payment');
      return { status, feedBack: missing.map(({ feedBack }) => feedBack) };
    };
    const unmatched = expect.stringContaining('no payment of play_store');
    for (const args of [['--feed-back'], ['--feed-back', '--one-way']]) {
      expect(await run(listed, ...args)).toEqual({ status: 3, feedBack: [unmatched, unmatched, unmatched] });
    }
    // One of the store is matched, and the others are in the ledger under other ids.
    const [first = {}, second = {}, ...others] = listed;
    const matched = { ...second, store_transaction_id: `${second['store_transaction_id'] ?? ''}..0` };
    const twin = expect.stringContaining('the same amount and time');
    for (const args of [['--feed-back'], ['--feed-back', '--one-way']]) {
      expect(await run([first, matched, ...others], ...args)).toEqual({ status: 3, feedBack: [twin, twin] });
    }
    expect(await amountsOf(founder)).toEqual([120, 120, 120, 120]);
    // A payment that the ledger lacks is another one.
    const lost = { ...matched, store_transaction_id: 'GPA.lost', start_time: '2026-11-01 10:00:00' };
    expect(await run([first, matched, lost], '--one-way')).toMatchObject({ feedBack: ['yes'] });
  });

  // @promise reconcile-same-rules
  test('a payment just before --from that the file and the ledger have does not keep one like it from being fed back', async () => {
    const { founder, deliver } = await setUp('revenuecat');
    const userId = await founder.customer();
    const from = lostSale().occurredAt;
    const saleAt = (occurredAt: number) => ({ ...lostSale(), userId, occurredAt });
    const [before, lost, matched] = [saleAt(from - 20_000), saleAt(from + 20_000), saleAt(from + 3_600_000)];
    for (const sale of [before, matched]) await deliver(purchaseOf('revenuecat', sale));
    const path = join(folder, randomUUID());
    await writeFile(path, csvOf(revenuecatRows([before, lost, matched])));
    const app = ['--app', founder.app.id, '--provider', 'revenuecat', '--format', 'json'];
    const { out } = await admin('reconcile', path, ...app, '--from', String(from));
    const { findings } = JSON.parse(out) as Report;
    expect(findings.filter(({ kind }) => kind === 'missing_payment').map(({ feedBack }) => feedBack)).toEqual(
      ['yes'],
    );
  });

  // @promise reconcile-same-rules
  test('a payment of several rows is compared as a whole where --from and --to divide its rows, by the time of the payment', async () => {
    const { founder } = await setUp('stripe');
    const sale = lostSale();
    const [row = {}] = stripeRows([sale]);
    const later = new Date(sale.occurredAt + 60_000).toISOString();
    const second = { charge_id: 'ch_second', source_id: 'ch_second', created_utc: later };
    const path = join(folder, randomUUID());
    await writeFile(path, csvOf([row, { ...row, ...second }]));
    const between = String(sale.occurredAt + 30_000);
    const compare = async (...args: string[]) => {
      const app = ['--app', founder.app.id, '--provider', 'stripe', '--format', 'json', '--without-match'];
      const { out } = await admin('reconcile', path, ...app, ...args);
      return JSON.parse(out) as Report & { payments: number; skipped: readonly object[] };
    };
    expect(await compare('--from', between)).toMatchObject({
      payments: 1,
      skipped: [],
      findings: [
        {
          paymentRef: `in_${sale.ref}`,
          exportedMinor: 2_400,
          feedBack: expect.stringContaining('Export the invoices as JSON'),
        },
      ],
    });
    expect(await compare('--to', between)).toMatchObject({
      payments: 0,
      skipped: [{ reason: 'a time outside of --from and --to', rows: 2 }],
      findings: [],
    });
  });

  // @promise reconcile-output
  test.each<[string, readonly string[], number, string]>([
    ['an unknown provider', ['--provider', 'paypal'], 2, 'Allowed choices are revenuecat'],
    [
      'an end before the start',
      ['--provider', 'stripe', '--from', '2026-02-01', '--to', '2026-01-01'],
      2,
      'before --to',
    ],
    [
      'an unknown format',
      ['--provider', 'stripe', '--format', 'xml'],
      2,
      'Allowed choices are table, csv, json',
    ],
    ['a file of another provider', ['--provider', 'revenuecat'], 1, 'use --provider stripe'],
    ['a range that has nothing', ['--provider', 'stripe', '--to', '2020-01-01'], 0, ''],
  ])('reconcile with %s ends with its status and a sentence', async (_, options, status, words) => {
    const { founder } = await setUp('stripe');
    const [path = ''] = await writeExports('stripe', [lostSale()]);
    const result = await admin('reconcile', path, '--app', founder.app.id, ...options);
    expect({ status: result.status, err: result.err }).toEqual({
      status,
      err: expect.stringContaining(words),
    });
  });

  // @promise reconcile-proof
  test('a delivery that claims to come from an export is refused without the proof of the operator for its app, provider and body', async () => {
    const { founder } = await setUp('stripe');
    const other = await setUp('stripe');
    const appId = founder.app.id as AppId;
    const secret = await findReconciliationSecret(service.sql, appId, 'stripe');
    const body = bodyOf(purchaseOf('stripe', lostSale()));
    const bodySha256 = createHash('sha256').update(body).digest();
    const own = createSecretBox([TEST_SECRETS_KEY]);
    const right = { appId, provider: 'stripe', bodySha256 };
    const proofs = [
      reconciliationProof({ ...right, appId: other.founder.app.id }, own),
      reconciliationProof({ ...right, provider: 'paddle' }, own),
      reconciliationProof({ ...right, bodySha256: Buffer.alloc(32) }, own),
      reconciliationProof(right, createSecretBox([Buffer.alloc(32, 1)])),
      reconciliationProof(right, own),
    ];
    const deliveries = proofs.map((proof) => ({
      deliveryId: newId('delivery'),
      eventId: newId('event'),
      proof,
      bodySha256,
      body,
      bodyKeyId: null,
    }));
    if (secret === undefined) throw new Error('the app has no secret');
    await acceptReconciled(service.sql, { appId, provider: 'stripe', secretId: secret.id }, deliveries);
    const ids = deliveries.map(({ deliveryId }) => deliveryId);
    await eventually('all deliveries are processed', async () =>
      (await findReconciledOutcomes(service.sql, ids)).every(({ isDone }) => isDone),
    );
    const outcomes = await findReconciledOutcomes(service.sql, ids);
    const statuses = ids.map((id) => outcomes.find(({ deliveryId }) => deliveryId === id)?.status);
    expect(statuses).toEqual(['failed', 'failed', 'failed', 'failed', 'processed']);
  });
});
