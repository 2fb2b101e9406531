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

/** What a member may do, and for which apps; null for all. */
export interface MemberAccess {
  readonly role: MemberRole;
  readonly appIds: readonly string[] | null;
}

/** Whether a member may pay after a change where they could not before: at all, or for an app more. `before` is null for a new member. */
export function givesPayout(before: MemberAccess | null, after: MemberAccess): boolean {
  const pays = ({ role }: MemberAccess) => ROLE_PERMISSIONS[role].includes('payout');
  if (!pays(after)) return false;
  if (before === null || !pays(before)) return true;
  const { appIds: seen } = before;
  return seen !== null && (after.appIds === null || !after.appIds.every((appId) => seen.includes(appId)));
}

/** The most apps to which a member can be limited. */
export const MOST_MEMBER_APPS = 200;
