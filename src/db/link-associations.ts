import type { AndroidApp } from '../domain/link-associations.ts';
import type { Sql } from './sql.ts';

/** The mobile apps of one app, and its subdomains. */
export interface AssociationRow {
  readonly accountId: string;
  readonly iosAppIds: readonly string[];
  readonly androidApps: readonly AndroidApp[];
  /** The current and the former ones. */
  readonly subdomains: readonly string[];
}

/** Returns the mobile apps of the app that holds or held a subdomain. Undefined for an unknown one. */
export async function findAssociations(sql: Sql, subdomain: string): Promise<AssociationRow | undefined> {
  return await sql.maybe<AssociationRow>`
    select app.account_id, app.ios_app_ids, app.android_apps, array[s.subdomain] as subdomains
      from link_subdomains s join apps app on app.id = s.app_id
     where s.subdomain = ${subdomain}`;
}

/** An account can fill only a part of the files that all apps share, and an app only a small one, bytes. */
const APPS_OF_AN_ACCOUNT = 20;
const BYTES_OF_AN_APP = 4_096;

/**
 * Returns the first `limit` apps that name mobile apps, oldest first: at most 20 of an account, and none whose mobile apps take
 * more than 4 KiB. The limit of an account counts before the other, so that no account leaves less room to those after it.
 */
export async function listAssociations(sql: Sql, limit: number): Promise<AssociationRow[]> {
  return await sql<AssociationRow>`
    select app.account_id, app.ios_app_ids, app.android_apps,
           array(select s.subdomain from link_subdomains s where s.app_id = app.id order by s.position) as subdomains
      from accounts cross join lateral (
             select * from apps a
              where a.account_id = accounts.id and (cardinality(a.ios_app_ids) > 0 or a.android_apps <> '[]')
                and octet_length(a.ios_app_ids::text) + octet_length(a.android_apps::text) <= ${BYTES_OF_AN_APP}
              order by a.created_at, a.id limit ${APPS_OF_AN_ACCOUNT}) app
     order by app.created_at, app.id limit ${limit}`;
}
