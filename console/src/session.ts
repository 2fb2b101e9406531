import { createContext, use } from 'react';
import type { Permission, Session } from './api/client.ts';

export const SessionContext = createContext<Session | null>(null);

/** Returns the session. Pages are shown only with one. */
export function useCurrentSession(): Session {
  const session = use(SessionContext);
  if (session === null) throw new Error('a page is shown without a session');
  return session;
}

/** Returns whether the key of the session has a permission. */
export function usePermission(permission: Permission): boolean {
  return useCurrentSession().permissions.includes(permission);
}

/** Returns whether the session sees all apps of the account. A member can be limited to some. */
export function useSeesAllApps(): boolean {
  return (useCurrentSession().member?.appIds ?? null) === null;
}
