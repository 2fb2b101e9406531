import { identifierHasher, isErased } from '../db/erased-identifiers.ts';
import type { AppId } from '../domain/ids.ts';
import type { CommandDeps } from './deps.ts';

/** What the SDK for servers puts before the id of a user who signs up without a device, to make the id of one. */
const DEVICE_OF_USER = 'srv_';

/** Whether the id of a device has the id of a user who was erased. Such a device is not stored: nothing is, under that id. */
export async function isDeviceOfErasedUser(
  { sql, secretBox }: Pick<CommandDeps, 'sql' | 'secretBox'>,
  appId: AppId,
  deviceId: string,
): Promise<boolean> {
  if (!deviceId.startsWith(DEVICE_OF_USER)) return false;
  const hash = (await identifierHasher(sql, secretBox))(appId, deviceId.slice(DEVICE_OF_USER.length));
  const { wasErased } = await sql.one<{ wasErased: boolean }>`
    select ${isErased(sql, appId, [hash], ['user'])} as was_erased`;
  return wasErased;
}
