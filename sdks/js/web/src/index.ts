import { createTributary } from './tributary.ts';

export { cookieStorage } from './storage.ts';
export type { CookieOptions } from './storage.ts';
export type { DebugState } from '../../core/src/index.ts';
export type { StartOptions, SyncStorage, Tributary } from './tributary.ts';

export const {
  start,
  identify,
  attribute,
  applyCode,
  attributedAffiliateId,
  deviceId,
  debugState,
  reset,
  setEnabled,
} = createTributary();
