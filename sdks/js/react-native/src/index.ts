import { createTributary } from './tributary.ts';

export type { StartOptions, Tributary } from './tributary.ts';
export type { DebugState, Storage } from '../../core/src/index.ts';
export { linkPurchases } from '../../core/src/link-purchases.ts';
export type {
  Adapty,
  BillingSdks,
  LinkOptions,
  LinkResult,
  RevenueCat,
  Superwall,
} from '../../core/src/link-purchases.ts';

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
