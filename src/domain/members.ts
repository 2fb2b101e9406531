import type { Permission } from './keys.ts';

/** What a member of an account is, from the one who may do everything to the one who only reads. */
export const MEMBER_ROLES = ['owner', 'admin', 'finance', 'analyst'] as const;
export type MemberRole = (typeof MEMBER_ROLES)[number];

/** The permissions of each role. The database has the same list (`permissions_of_role`). */
export const ROLE_PERMISSIONS: Readonly<Record<MemberRole, readonly Permission[]>> = {
  owner: ['read', 'write', 'setup', 'payout'],
  admin: ['read', 'write', 'setup'],
  finance: ['read', 'payout'],
  analyst: ['read'],
};

/** The most apps to which a member can be limited. */
export const MOST_MEMBER_APPS = 200;
