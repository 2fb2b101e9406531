import { expect, test } from '@jest/globals';
import { attributeDevice } from '../../src/db/attributions.ts';
import { createTestDatabase } from '../support/database.ts';
import { newRollupTenant } from '../support/rollup-tenant.ts';

test('an install does not bind a user of the device who was erased after it had read the users', async () => {
  const { sql, drop } = await createTestDatabase();
  const { appId, affiliates, links } = await newRollupTenant(sql, 1, 1);
  const [affiliateId, linkId] = [affiliates[0], links[0]];
  if (affiliateId === undefined || linkId === undefined) throw new Error('there is no link');
  const [deviceId, at] = ['device', Date.now()];
  const users = ['ann', 'ben'].map((customerUserId) => ({ customerUserId, identifiedAt: at }));
  await sql`
    insert into identities (app_id, device_id, customer_user_id, position, identified_at)
    values (${appId}, ${deviceId}, 'ben', 1, now())`;
  await attributeDevice(
    sql,
    { appId, deviceId, firstOpenAt: at, sdk: null, rememberedUsers: users },
    { matchMethod: 'code', affiliateId, linkId, clickId: null, touchedAt: at },
  );
  const bound = await sql`select customer_user_id from bindings where app_id = ${appId}`;
  expect(bound).toEqual([{ customerUserId: 'ben' }]);
  await sql.close();
  await drop();
});
