import { createHash, randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import pg from 'pg';
import { sealBody } from '../../src/db/deliveries.ts';
import { pseudonymize } from '../../src/db/erased-identifiers.ts';
import { findErasure, findOpenErasure, finishErasure } from '../../src/db/erasures.ts';
import { addSubjectKeys } from '../../src/db/erasure-state.ts';
import { eraseRows } from '../../src/db/erasure-rows.ts';
import { newId } from '../../src/db/new-id.ts';
import { requestReprocessing } from '../../src/db/reprocess.ts';
import { connect } from '../../src/db/sql.ts';
import type { DeliveryId } from '../../src/domain/ids.ts';
import { providers } from '../../src/providers/index.ts';
import { startErasing } from '../support/erasing.ts';
import type { Erasing } from '../support/erasing.ts';
import {
  bodyOf,
  eventOf,
  newProviderId,
  revenuecatEvent,
  stripeEvent,
  stripeInvoicePaid,
  stripeInvoicePaymentPaid,
  stripePaymentIntent,
  stripeSubscription,
} from '../support/provider-fixtures.ts';
import { findInTables } from '../support/search-everywhere.ts';
import { untilWaiting } from '../support/waiting.ts';

let erasing: Erasing;

beforeAll(async () => {
  erasing = await startErasing();
});
afterAll(async () => {
  await erasing?.api.close();
});

interface Named {
  readonly userId?: string | null;
  readonly subscriptionId: string;
  readonly customerId: string;
}

const invoice = async ({ userId = null, ...names }: Named) =>
  await erasing.stripe(stripeInvoicePaid({ userId, ...names, occurredAt: erasing.paidAt }));

const subscription = async ({ userId = null, ...names }: Named) =>
  await erasing.stripe(stripeSubscription({ userId, ...names, occurredAt: erasing.paidAt }));

/** Delivers a webhook without an event, which names a customer and an e-mail address. */
const customerUpdated = async (id: string, email: string) =>
  await erasing.stripe(stripeEvent('customer.updated', { id, object: 'customer', email }));

const newEmail = () => `${randomUUID()}@example.com`;
const newNames = (userId: string | null = null) => ({
  userId,
  subscriptionId: newProviderId('sub'),
  customerId: newProviderId('cus'),
});

/** Returns whether the body of an event is stored, and whether in clear. */
async function bodyOfEvent(eventId: string | undefined): Promise<'in clear' | 'encrypted' | 'removed'> {
  const body = await erasing.sql.maybe<{ isEncrypted: boolean }>`
    select b.encryption_key_id is not null as is_encrypted
      from deliveries d join delivery_bodies b on b.delivery_id = d.id where d.event_id = ${eventId ?? ''}`;
  return body === undefined ? 'removed' : body.isEncrypted ? 'encrypted' : 'in clear';
}

async function expectFound(texts: readonly string[]): Promise<void> {
  const found = (await findInTables(erasing.sql, texts)).join('\n');
  expect(texts.filter((text) => !found.includes(text))).toEqual([]);
}

describe('the keys that an erasure follows', () => {
  // @promise erased-key-chains
  test('keys are followed from payment to payment to the end, and the money stays', async () => {
    const person = await erasing.newPerson();
    const first = newNames();
    const second = { ...newNames(), customerId: first.customerId };
    const third = { ...newNames(), subscriptionId: second.subscriptionId };
    const email = newEmail();
    await customerUpdated(third.customerId, email);
    await subscription({ ...first, userId: person.userId });
    for (const names of [first, second, third]) await invoice(names);
    const keys = [first, second, third].flatMap(({ subscriptionId, customerId }) => [
      subscriptionId,
      customerId,
    ]);
    const erasure = await erasing.open(person.userId);
    const left = await erasing.sql`select from payment_user_keys where user_key = any(${keys}::text[])`;
    expect(left).toEqual([]);
    await erasing.complete(erasure);
    expect(await erasing.totalOf(erasure.pseudonym)).toBe(240);
    await invoice(third);
    await erasing.expectErased([...Object.values(person), ...keys, email]);
  });

  // @promise erased-key-chains
  test('a key that only a body ties to the person leads to the bodies of that key, and from body to body to the end', async () => {
    const { userId } = await erasing.newPerson();
    const first = newNames(userId);
    const second = { ...newNames(), customerId: first.customerId };
    const emails = [newEmail(), newEmail()] as const;
    // In the opposite order, so that each search finds one more key.
    await erasing.stripe(
      stripeEvent('invoice.upcoming', { subscription: second.subscriptionId, customer_email: emails[0] }),
    );
    await subscription(second);
    await customerUpdated(first.customerId, emails[1]);
    await subscription(first);
    await erasing.erase(userId);
    await erasing.expectErased([userId, first.customerId, second.subscriptionId, ...emails]);
  });

  const trial = (userId: string, aliases: readonly string[], email: string) =>
    revenuecatEvent({
      userId,
      aliases,
      usd: 0,
      periodType: 'TRIAL',
      extra: { subscriber_attributes: { $email: { updated_at_ms: 1, value: email } } },
    });
  const newAnonymous = () => `$RCAnonymousID:${randomUUID().replaceAll('-', '')}`;

  // @promise erased-key-chains
  test('an id that the SDK of a provider generated leads to its bodies, also when a webhook names it after the erasure', async () => {
    const { userId } = await erasing.newPerson();
    const [early, late] = [newAnonymous(), newAnonymous()];
    const emails = [newEmail(), newEmail()] as const;
    await erasing.revenuecat(trial(early, [early], emails[0]));
    await erasing.revenuecat(trial(late, [late], emails[1]));
    await erasing.revenuecat(trial(userId, [userId, early], newEmail()));
    const erasure = await erasing.erase(userId);
    await erasing.expectErased([userId, early, emails[0]]);
    await erasing.revenuecat(trial(userId, [userId, late], newEmail()));
    await erasing.complete(erasure);
    await erasing.expectErased([userId, early, late, ...emails]);
  });

  test('a key that an erasure has found twice does not stop it', async () => {
    const { userId } = await erasing.newPerson();
    const { subscriptionId } = newNames();
    const { id } = await erasing.open(userId);
    await erasing.sql`
      insert into user_links (app_id, environment, source, user_key, customer_user_id)
      values (${erasing.appId}, 'production', 'stripe', ${subscriptionId}, ${userId})`;
    const open = async () => {
      const erasure = await findOpenErasure(erasing.deps, id);
      if (erasure === undefined) throw new Error('the erasure is not open');
      return erasure;
    };
    // The process died after it had stored the key, and before it replaced the rows.
    await addSubjectKeys(erasing.deps, await open(), [{ source: 'stripe', userKey: subscriptionId }]);
    await eraseRows(erasing.deps, await open());
    expect(await findInTables(erasing.sql, [subscriptionId])).toEqual([]);
    await erasing.complete({ id });
  });
});

describe('shared ids', () => {
  // @promise erased-shared-ids
  test('a key with a payment of another user stays until that user is erased, and so do the webhooks of that user', async () => {
    const [one, two] = [await erasing.newPerson(), await erasing.newPerson()];
    const own = newNames(one.userId);
    const others = { ...newNames(two.userId), customerId: own.customerId };
    const email = newEmail();
    await customerUpdated(own.customerId, email);
    await invoice(own);
    const { body: paid } = await invoice(others);
    await erasing.erase(one.userId);
    expect(await findInTables(erasing.sql, [one.userId, own.subscriptionId])).toEqual([]);
    await expectFound([two.userId, others.subscriptionId, own.customerId, email]);
    expect(await bodyOfEvent(paid.eventId)).toBe('in clear');
    const { body: renewed } = await invoice(others);
    expect([renewed.commissionId, await bodyOfEvent(renewed.eventId)]).toEqual([
      expect.stringMatching(/^com_/),
      'in clear',
    ]);
    await erasing.erase(two.userId);
    await erasing.expectErased([one.userId, two.userId, own.customerId, others.subscriptionId, email]);
  });

  test('the commission of an invoice whose user only its charge names has the pseudonym, also where others share the customer', async () => {
    const [one, two] = [await erasing.newPerson(), await erasing.newPerson()];
    const customerId = newProviderId('cus');
    const [invoiceId, paymentIntentId] = [newProviderId('in'), newProviderId('pi')];
    await invoice({ ...newNames(two.userId), customerId });
    await erasing.stripe(
      stripePaymentIntent({ userId: one.userId, paymentIntentId, amount: 1_000, occurredAt: erasing.paidAt }),
    );
    await erasing.stripe(
      stripeInvoicePaid({ userId: null, customerId, invoiceId, amount: 1_000, occurredAt: erasing.paidAt }),
    );
    await erasing.stripe(
      stripeInvoicePaymentPaid({ invoiceId, paymentIntentId, amount: 1_000, occurredAt: erasing.paidAt }),
    );
    const earning = async (userId: string) =>
      await erasing.sql`
        select 1 from commissions where app_id = ${erasing.appId} and customer_user_id = ${userId} and kind = 'earning'`;
    expect(await earning(one.userId)).not.toEqual([]);
    const { pseudonym } = await erasing.erase(one.userId);
    expect(await earning(pseudonym)).not.toEqual([]);
    await erasing.expectErased([one.userId]);
  });

  // @promise erased-shared-ids
  test('an event of another user for a payment of the person keeps its body', async () => {
    const [one, two] = [await erasing.newPerson(), await erasing.newPerson()];
    const transactionId = `tx-${randomUUID()}`;
    const { body: own } = await erasing.purchase(one.userId, transactionId);
    const { body: others } = await erasing.purchase(two.userId, transactionId);
    const refunded = `tx-${randomUUID()}`;
    await erasing.purchase(one.userId, refunded);
    const { body: refund } = await erasing.refund(two.userId, refunded);
    await erasing.erase(one.userId);
    const all = [own, others, refund].map(async ({ eventId }) => await bodyOfEvent(eventId));
    expect(await Promise.all(all)).toEqual(['removed', 'in clear', 'in clear']);
    await erasing.expectErased([one.userId]);
  });

  // @promise erased-shared-ids
  test('a webhook that names only another user stays, although it names a customer of the person', async () => {
    const [one, two] = [await erasing.newPerson(), await erasing.newPerson()];
    const own = newNames(one.userId);
    await invoice(own);
    const { body } = await subscription({ ...newNames(two.userId), customerId: own.customerId });
    await erasing.erase(one.userId);
    expect(await bodyOfEvent(body.eventId)).toBe('in clear');
    expect(await findInTables(erasing.sql, [own.subscriptionId, one.userId])).toEqual([]);
  });

  // @promise erased-shared-ids
  test('the erasure of a placeholder such as guest removes no webhook, and no later one begins its search again', async () => {
    const { userId } = await erasing.newPerson();
    const names = newNames(userId);
    const aliased = async () =>
      await erasing.revenuecat(
        revenuecatEvent({ userId, aliases: [userId, 'guest'], occurredAt: erasing.paidAt }),
      );
    const { body: ofGuest } = await erasing.purchase('guest');
    const { body: ofUser } = await aliased();
    await subscription({ ...names, userId: 'guest' });
    const { body: invoiced } = await invoice(names);
    const erasure = await erasing.erase('guest');
    // A placeholder names nobody.
    const others = [ofUser, invoiced, ofGuest];
    const kept = async () => await Promise.all(others.map(async ({ eventId }) => await bodyOfEvent(eventId)));
    expect(await kept()).toEqual(['in clear', 'in clear', 'in clear']);
    await subscription(newNames('guest'));
    await subscription(newNames('guest'));
    others.push((await aliased()).body);
    expect(await findErasure(erasing.sql, erasure.id)).toMatchObject({ reopenedAt: null });
    expect(await kept()).toEqual(['in clear', 'in clear', 'in clear', 'in clear']);
    await erasing.expectErased([]);
  });

  // @promise erased-shared-ids
  test('a short user id in a field of another user’s webhook is not the erased user', async () => {
    const { userId } = await erasing.newPerson();
    await erasing.newPerson('gold');
    const { body: own } = await erasing.purchase('gold');
    const withLevel = async () =>
      await erasing.revenuecat(
        revenuecatEvent({ userId, extra: { subscriber_attributes: { level: { value: 'gold' } } } }),
      );
    const { body: early } = await withLevel();
    await erasing.erase('gold');
    const { body: late } = await withLevel();
    const all = [own, early, late].map(async ({ eventId }) => await bodyOfEvent(eventId));
    expect(await Promise.all(all)).toEqual(['removed', 'in clear', 'in clear']);
  });

  // @promise erased-only-own-bodies
  test('an erasure leaves the webhooks of users whose ids contain the erased one', async () => {
    const id = `customer-${randomUUID().slice(0, 4)}1`;
    const address = `ann${randomUUID().slice(0, 4)}@example.com`;
    const unreadable = (userId: string) => revenuecatEvent({ userId, extra: { price: 'unknown' } });
    for (const userId of [id, address]) {
      await erasing.newPerson(userId);
      const others = [`${userId}0`, `${userId}é`, `jo${userId}`, `${userId}.au`, `x-${userId}`];
      const sold = await Promise.all(others.map(async (other) => await erasing.purchase(other)));
      const failed = await Promise.all(
        others.map(async (other) => await erasing.revenuecat(unreadable(other))),
      );
      const own = [await erasing.purchase(userId), await erasing.revenuecat(unreadable(userId))];
      await erasing.erase(userId);
      for (const { body } of [...sold, ...failed]) expect(await bodyOfEvent(body.eventId)).toBe('in clear');
      for (const { body } of own) expect(await bodyOfEvent(body.eventId)).toBe('removed');
    }
  });

  // @promise erased-shared-ids
  test('an event that names another user beside the erased one ties no key to the erased one', async () => {
    const [one, two] = [`user-${randomUUID()}`, `user-${randomUUID()}`];
    const names = newNames();
    await erasing.open(one);
    const event = eventOf(providers.stripe.parse(bodyOf(stripeInvoicePaid(names))));
    const stored = await pseudonymize(erasing.sql, erasing.secretBox, {
      appId: erasing.appId,
      source: 'stripe',
      event: { ...event, userIds: [one, two] },
    });
    expect(stored).toMatchObject({
      userIds: [expect.stringMatching(/^erased:/), two],
      userKeys: [names.subscriptionId, names.customerId],
    });
  });

  // @promise erased-search-ends
  test('an id with very many keys begins the search again only until it has as many as a person may have', async () => {
    const { userId } = await erasing.newPerson();
    const erasure = await erasing.erase(userId);
    await subscription(newNames(userId));
    expect(await findOpenErasure(erasing.deps, erasure.id)).toBeDefined();
    await erasing.complete(erasure);
    await erasing.sql`update erasures set followed_keys = 1000 where id = ${erasure.id}`;
    await subscription(newNames(userId));
    expect(await findOpenErasure(erasing.deps, erasure.id)).toBeUndefined();
  });

  // @promise erased-search-ends
  test('keys that are tied while a search is in progress let it go on, and have it run once more', async () => {
    const { userId } = await erasing.newPerson();
    const { id } = await erasing.open(userId);
    await erasing.searchOnce({ id });
    const before = await findOpenErasure(erasing.deps, id);
    const [first, second] = [newNames(), newNames()];
    const early = await invoice(first);
    for (const names of [first, second]) await subscription({ ...names, userId });
    const after = await findOpenErasure(erasing.deps, id);
    expect(after).toMatchObject({ revision: before?.revision, settlesAt: before?.settlesAt });
    await erasing.sql`update erasures set settles_at = now() where id = ${id}`;
    await erasing.complete({ id });
    expect(await bodyOfEvent(early.body.eventId)).toBe('removed');
    await erasing.expectErased([userId, first.subscriptionId, first.customerId]);
  });
});

describe('a repeated request', () => {
  // @promise erased-request-counts
  test('a request that arrives while the last step completes the erasure begins the search again', async () => {
    const { userId } = await erasing.newPerson();
    const { id } = await erasing.open(userId);
    const other = new pg.Client(erasing.api.database.url);
    await other.connect();
    try {
      await other.query('begin');
      await other.query(
        `with done as (update erasures set finished_at = now(), by_hash = false where id = $1 returning id)
         delete from erasure_subjects s using done where s.erasure_id = done.id`,
        [id],
      );
      const repeated = erasing.open(userId);
      await untilWaiting(erasing.sql);
      await other.query('commit');
      expect(await repeated).toMatchObject({ id, finishedAt: null });
    } finally {
      await other.end();
    }
    expect(await findOpenErasure(erasing.deps, id)).toMatchObject({
      byHash: true,
      subject: { customerUserId: userId },
    });
    await erasing.complete({ id });
  });

  // @promise erased-request-counts
  test('a request during a search has it run once more, for what was stored where it has searched already', async () => {
    const { userId } = await erasing.newPerson();
    const { body } = await erasing.purchase(`user-${randomUUID()}`);
    await erasing.sql`update deliveries set received_at = received_at - interval '1 day' where event_id = ${body.eventId ?? ''}`;
    const { id } = await erasing.open(userId);
    await erasing.searchOnce({ id });
    // A process of an older version stores a body in clear.
    await erasing.sql`
      update delivery_bodies set body = ${Buffer.from(JSON.stringify({ note: userId }))}
       where delivery_id = (select id from deliveries where event_id = ${body.eventId ?? ''})`;
    const last = await findOpenErasure(erasing.deps, id);
    await erasing.open(userId);
    // The step that completes the erasure had looked before the request.
    expect(last === undefined || (await finishErasure(erasing.sql, last))).toBe(false);
    await erasing.sql`update erasures set settles_at = now() where id = ${id}`;
    await erasing.complete({ id });
    await erasing.expectErased([userId]);
  });

  test('a page of the search reads the row of its erasure once', async () => {
    const { userId } = await erasing.newPerson();
    await erasing.purchase(userId);
    const { id } = await erasing.open(userId);
    const sent: string[] = [];
    const sql = connect({ url: erasing.api.database.url, onStatement: ({ text }) => void sent.push(text) });
    try {
      await erasing.searchOnce({ id }, sql);
    } finally {
      await sql.close();
    }
    const pages = sent.filter((text) => text.includes('with listed as materialized'));
    const reads = sent.filter((text) => text.includes('from erasures e where'));
    expect([pages.length > 1, reads.length]).toEqual([true, pages.length]);
  });
});

describe('reprocessing and erasures', () => {
  const sha256 = (text: string) => createHash('sha256').update(text).digest('base64url');
  const namesOfRun = async (id: string) =>
    (
      await erasing.sql<{ name: string }>`select name from reprocess_names where reprocess_run_id = ${id}`
    ).map(({ name }) => name);

  /** Stores a failed, encrypted delivery of an erased user that this version can read. Returns its id. */
  async function failedDelivery(userId: string, transactionId: string): Promise<DeliveryId> {
    await erasing.revenuecat({ event: { app_user_id: userId } });
    const { id } = await erasing.sql.one<{ id: DeliveryId }>`
      select d.id from deliveries d join delivery_bodies b on b.delivery_id = d.id
       where d.processing_status = 'failed' and b.encryption_key_id is not null`;
    const body = bodyOf(revenuecatEvent({ userId, transactionId, usd: 10, occurredAt: erasing.paidAt }));
    const sealed = sealBody(erasing.secretBox, id, body);
    const hash = createHash('sha256').update(body).digest();
    await erasing.sql`
      with bodies as (
        update delivery_bodies set body = ${sealed.body}, encryption_key_id = ${sealed.bodyKeyId} where delivery_id = ${id}
      )
      update deliveries set body_sha256 = ${hash} where id = ${id}`;
    return id;
  }

  const reprocess = async (deliveryId: DeliveryId, dryRun: boolean) => {
    const id = newId('reprocessRun');
    const { appId } = erasing;
    await requestReprocessing(erasing.sql, { id, appId, dryRun, deliveryId, from: null, to: null });
    while (!(await erasing.processing.reprocessPage(id)).done);
    return id;
  };

  // @promise erased-reprocessed
  test('a failed webhook of an erased person is reprocessed under the pseudonym, and so are its later refunds', async () => {
    const person = await erasing.newPerson();
    const { userId } = person;
    await erasing.purchase(userId);
    const { pseudonym } = await erasing.erase(userId);
    const transactionId = `tx-${randomUUID()}`;
    const deliveryId = await failedDelivery(userId, transactionId);
    for (const dryRun of [true, false]) {
      const names = await namesOfRun(await reprocess(deliveryId, dryRun));
      expect(names).toContain(sha256(`user ${pseudonym}`));
      expect(names).not.toContain(sha256(`user ${userId}`));
    }
    expect(await erasing.totalOf(pseudonym)).toBe(400);
    // A provider that does not know the user any more names the payment only.
    const { body } = await erasing.refund('$RCAnonymousID:0000000000000000', transactionId);
    expect([body.commissionId, await bodyOfEvent(body.eventId)]).toEqual([
      expect.stringMatching(/^com_/),
      'removed',
    ]);
    expect(await erasing.totalOf(pseudonym)).toBe(200);
    await erasing.expectErased(Object.values(person));
  });

  // @promise erased-reprocessed
  test('a webhook that was stored in clear after the erasure is reprocessed under the pseudonym', async () => {
    const { userId } = await erasing.newPerson();
    const { body } = await erasing.purchase(`user-${randomUUID()}`);
    const { pseudonym } = await erasing.erase(userId);
    // A process of an older version stored it, and could not read it.
    const clear = bodyOf(revenuecatEvent({ userId, usd: 10, occurredAt: erasing.paidAt }));
    const hash = createHash('sha256').update(clear).digest();
    const { id } = await erasing.sql.one<{ id: DeliveryId }>`
      insert into deliveries (id, app_id, provider, received_at, signature_valid, processing_status, secret_id, proof, body_sha256,
                              event_id, completed_at)
      select ${newId('delivery')}, app_id, provider, now(), true, 'failed', secret_id, proof, ${hash}, ${newId('event')}, now()
        from deliveries where event_id = ${body.eventId ?? ''}
      returning id`;
    await erasing.sql`insert into delivery_bodies (delivery_id, body) values (${id}, ${clear})`;
    const run = await reprocess(id, false);
    expect(await namesOfRun(run)).not.toContain(sha256(`user ${userId}`));
    expect(await erasing.totalOf(pseudonym)).toBe(200);
    const left = await findInTables(erasing.sql, [userId]);
    expect(left).toEqual([`delivery_bodies: ${userId}`]);
    await erasing.erase(userId);
    await erasing.expectErased([userId]);
  });

  // @promise erased-reprocessed
  test('a plan that was stored beside the first search is found by the second one, also without later webhooks', async () => {
    const other = await startErasing();
    try {
      const { userId } = await other.newPerson();
      await other.purchase(userId);
      await other.sql`update deliveries set received_at = received_at - interval '1 day'`;
      const { id } = await other.open(userId);
      const run = newId('reprocessRun');
      const all = { dryRun: true, deliveryId: null, from: null, to: null };
      await requestReprocessing(other.sql, { id: run, appId: other.appId, ...all });
      await other.searchOnce({ id });
      await other.sql`
        with planned as (
          insert into reprocess_changes (app_id, reprocess_run_id, delivery_id, received_at, changes, appends)
          select app_id, ${run}, id, received_at, '[{}]', true from deliveries
          returning delivery_id
        )
        insert into reprocess_names (reprocess_run_id, delivery_id, name, provides)
        select ${run}, delivery_id, ${sha256(`user ${userId}`)}, true from planned`;
      await other.sql`update erasures set settles_at = now()`;
      await other.complete({ id });
      const { pseudonym } = await other.open(userId);
      expect(await other.sql`select name from reprocess_names`).toEqual([
        { name: sha256(`user ${pseudonym}`) },
      ]);
    } finally {
      await other.api.close();
    }
  });
});
