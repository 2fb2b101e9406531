import type { LikelyCause } from './likely-causes.ts';

/** Whose key it is: all its payments belong together. */
export const KEY_OWNERS = ['subscription', 'anonymous_customer'] as const;

/** A key of a payment that names no user. A person can attribute it in place of a user. */
export interface AttributableKey {
  /** What a manual attribution takes as `customerUserId`. */
  readonly customerUserId: string;
  /** The provider whose key it is. */
  readonly keySource: string;
  readonly standsFor: (typeof KEY_OWNERS)[number];
}

/** The causes of payments of which no user is known. The codes of an ambiguous one would have bound the same key. */
export const CAUSES_WITHOUT_USER: readonly LikelyCause[] = [
  'missing_user_id',
  'anonymous_user_id',
  'ambiguous_code',
];
