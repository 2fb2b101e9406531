export { linkPurchases } from '../../core/src/link-purchases.ts';
export type {
  Adapty,
  BillingSdks,
  LinkOptions,
  LinkResult,
  RevenueCat,
  Superwall,
} from '../../core/src/link-purchases.ts';
