import type { AndroidApp } from '../domain/link-associations.ts';
import type { Sql } from './sql.ts';

/** The mobile apps of one app, and its subdomains. */
export interface AssociationRow {
  readonly iosAppIds: readonly string[];
  readonly androidApps: readonly AndroidApp[];
  /** The current and the former ones. */
  readonly subdomains: readonly string[];
}

/** Returns the mobile apps of the app that holds or held a subdomain. Undefined for an unknown one. */
export async function findAssociations(sql: Sql, subdomain: string): Promise<AssociationRow | undefined> {
  return await sql.maybe<AssociationRow>`
    select app.ios_app_ids, app.android_apps, array[s.subdomain] as subdomains
      from link_subdomains s join apps app on app.id = s.app_id
     where s.subdomain = ${subdomain}`;
}

/** Returns the first `limit` apps that name mobile apps, oldest first. */
export async function listAssociations(sql: Sql, limit: number): Promise<AssociationRow[]> {
  return await sql<AssociationRow>`
    select app.ios_app_ids, app.android_apps,
           array(select s.subdomain from link_subdomains s where s.app_id = app.id order by s.position) as subdomains
      from apps app
     where cardinality(app.ios_app_ids) > 0 or app.android_apps <> '[]'
     order by app.created_at, app.id limit ${limit}`;
}
