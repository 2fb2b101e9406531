import { listAssociations } from '../db/link-associations.ts';
import type { Sql } from '../db/sql.ts';
import { androidAssociation, appleAssociation } from '../domain/link-associations.ts';
import { MINUTE_MS } from '../domain/time.ts';

/** How many apps share a host. An app beyond it uses a host of its own. */
const MAX_APPS = 500;

/** The files that say which mobile apps open links. Null if no app names one. */
export interface AssociationFiles {
  readonly apple: string | null;
  readonly android: string | null;
}

/** The mobile apps that open links of a host that all apps share: of both systems, of iOS only, or none. */
export type SharedHostApps = 'all' | 'ios' | 'off';

/** Returns the files of a host that all apps share, as they were at most a minute ago. */
export type SharedAssociations = () => Promise<AssociationFiles>;

/**
 * Creates the cache of a process. However many requests arrive, the apps are read once a minute. `apps` limits whom a shared
 * host names: before Android 15, an Android app that it names can claim the links of all the others. `elapsed` returns a time that only
 * advances, ms: a clock that is set back would leave the files as they were.
 */
export function createSharedAssociations(
  sql: Sql,
  apps: SharedHostApps = 'all',
  elapsed: () => number = () => performance.now(),
): SharedAssociations {
  let read: { readonly at: number; readonly files: Promise<AssociationFiles> } | null = null;
  const readFiles = async (): Promise<AssociationFiles> => {
    if (apps === 'off') return { apple: null, android: null };
    const rows = await listAssociations(sql, MAX_APPS);
    const links = rows.map((row) => ({ ...row, paths: row.subdomains.map((name) => `/l/${name}/*`) }));
    return { apple: appleAssociation(links), android: apps === 'all' ? androidAssociation(links) : null };
  };
  return async () => {
    const at = elapsed();
    if (read !== null && at - read.at < MINUTE_MS) return await read.files;
    const current = { at, files: readFiles() };
    read = current;
    try {
      return await current.files;
    } catch (error) {
      // The next request tries again.
      if (read === current) read = null;
      throw error;
    }
  };
}
