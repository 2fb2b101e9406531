import { createHash, randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { bodyContext } from '../../src/db/deliveries.ts';
import { newId } from '../../src/db/new-id.ts';
import { requestReprocessing } from '../../src/db/reprocess.ts';
import type { DeliveryId } from '../../src/domain/ids.ts';
import { startErasing } from '../support/erasing.ts';
import type { Erasing } from '../support/erasing.ts';
import { bodyOf, revenuecatEvent } from '../support/provider-fixtures.ts';
import { findInTables } from '../support/search-everywhere.ts';

let erasing: Erasing;

beforeAll(async () => {
  erasing = await startErasing();
});
afterAll(async () => {
  await erasing?.api.close();
});

/** Returns whether the body of an event is stored, and whether in clear. */
async function bodyOfEvent(eventId: string | undefined): Promise<'in clear' | 'encrypted' | 'removed'> {
  const body = await erasing.sql.maybe<{ isEncrypted: boolean }>`
    select b.encryption_key_id is not null as is_encrypted
      from deliveries d join delivery_bodies b on b.delivery_id = d.id where d.event_id = ${eventId ?? ''}`;
  return body === undefined ? 'removed' : body.isEncrypted ? 'encrypted' : 'in clear';
}

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
    const { ciphertext, encryptionKeyId } = erasing.secretBox.encrypt(
      body.toString('base64'),
      bodyContext(id),
    );
    const hash = createHash('sha256').update(body).digest();
    await erasing.sql`
      with bodies as (
        update delivery_bodies set body = ${ciphertext}, encryption_key_id = ${encryptionKeyId} where delivery_id = ${id}
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
});
