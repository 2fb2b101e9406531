import { createTributary } from './tributary.ts';

export { cookieStorage } from './storage.ts';
export type { CookieOptions } from './storage.ts';
export type { StartOptions, SyncStorage, Tributary } from './tributary.ts';

export const { start, identify, attribute, applyCode, attributedAffiliateId, deviceId, reset, setEnabled } =
  createTributary();
