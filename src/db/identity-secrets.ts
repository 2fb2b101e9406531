import type { AppId, Id } from '../domain/ids.ts';
import type { SecretBox } from '../config/secret-box.ts';
import { acting } from './audit.ts';
import { isLostKey } from './reencryption.ts';
import { shareStatements } from './shared-statements.ts';
import { instant } from './sql.ts';
import type { Fragment, Sql } from './sql.ts';

/** Returns the encryption context of an identity secret, which binds the ciphertext to its app. */
export function identitySecretContext(appId: AppId): string {
  return `${appId}:identity`;
}

/** A stored secret with which an app's server signs user ids. */
export interface EncryptedSecret {
  readonly ciphertext: Buffer;
  readonly encryptionKeyId: string;
}

interface SecretRow extends EncryptedSecret {
  readonly previousCiphertext: Buffer | null;
  readonly previousEncryptionKeyId: string | null;
  readonly previousExpiresAt: number | null;
}

/** The secrets of an app. */
export interface IdentitySecrets {
  readonly current: EncryptedSecret;
  /** The secret before it and when it expires, epoch ms. Null if there was none. */
  readonly previous: (EncryptedSecret & { readonly expiresAt: number }) | null;
}

function secretsOf(row: SecretRow): IdentitySecrets {
  const { ciphertext, encryptionKeyId, previousCiphertext, previousEncryptionKeyId, previousExpiresAt } = row;
  return {
    current: { ciphertext, encryptionKeyId },
    previous:
      previousCiphertext === null || previousEncryptionKeyId === null || previousExpiresAt === null
        ? null
        : {
            ciphertext: previousCiphertext,
            encryptionKeyId: previousEncryptionKeyId,
            expiresAt: previousExpiresAt,
          },
  };
}

const columns = (sql: Sql) => sql.fragment`
  s.ciphertext, s.encryption_key_id, s.previous_ciphertext, s.previous_encryption_key_id, s.previous_expires_at`;

/** Returns the secrets of an app, or undefined if it has none. */
export async function findIdentitySecrets(sql: Sql, appId: AppId): Promise<IdentitySecrets | undefined> {
  const row = await sql.maybe<SecretRow>`
    select ${columns(sql)} from identity_secrets s where s.app_id = ${appId}`;
  return row === undefined ? undefined : secretsOf(row);
}

/** Returns the secrets of each app that verifies user ids: undefined for another one, null for one without a secret. */
async function findSecretsOfVerifying(
  sql: Sql,
  appIds: readonly AppId[],
): Promise<(IdentitySecrets | null | undefined)[]> {
  const found = await sql<{ appId: AppId } & (SecretRow | { readonly ciphertext: null })>`
    select a.id as app_id, ${columns(sql)}
      from unnest(${appIds}::text[]) i
     cross join lateral (select id, identity_verification from apps x where x.id = i offset 0) a
      left join lateral (select * from identity_secrets x where x.app_id = i offset 0) s on true
     where a.identity_verification`;
  const secrets = new Map(
    found.map((row) => [row.appId, row.ciphertext === null ? null : secretsOf(row)] as const),
  );
  return appIds.map((appId) => secrets.get(appId));
}

const findSecretsIfVerifying = shareStatements(findSecretsOfVerifying, {
  keyOf: (appId) => appId,
  repeated: 'share',
});

/**
 * Returns the secrets that a signature of a user id may have, or null if the app does not verify user ids. An app that
 * verifies them and has no secret accepts no signature.
 */
export async function findVerifyingSecrets(
  sql: Sql,
  appId: AppId,
  now: number,
): Promise<readonly EncryptedSecret[] | null> {
  const secrets = await findSecretsIfVerifying(sql, appId);
  if (secrets === undefined) return null;
  if (secrets === null) return [];
  const { current, previous } = secrets;
  return previous !== null && previous.expiresAt > now ? [current, previous] : [current];
}

/** How many ids of former secrets are kept. */
const FORMER_IDS = 100;

/** Adds the id of a secret to those of former ones. */
export const withFormer = (sql: Sql, ids: Fragment, id: Fragment): Fragment =>
  sql.fragment`(${ids} || ${id}::text)[greatest(1, cardinality(${ids}) + 2 - ${FORMER_IDS}::int):]`;

export interface NewIdentitySecret extends EncryptedSecret {
  readonly id: Id<'secret'>;
  readonly appId: AppId;
  /** When the current secret expires, epoch ms. The one before it ends at once. */
  readonly previousEndsAt: number;
}

/**
 * Makes a secret the current one. The one before it ends at once if its key is lost. A secret that was the current one before changes nothing:
 * the call is sent again. Returns when the one before the current one expires, or null if there was none or it has ended.
 */
export async function rotateIdentitySecret(
  sql: Sql,
  secret: NewIdentitySecret,
  secretBox: Pick<SecretBox, 'keyIds' | 'acceptsLostKeys'>,
): Promise<number | null> {
  const { id, appId, ciphertext, encryptionKeyId, previousEndsAt } = secret;
  const isKept = sql.fragment`not ${isLostKey(sql, secretBox, sql.fragment`s.encryption_key_id`)}`;
  await sql`
    insert into identity_secrets as s (app_id, secret_id, ciphertext, encryption_key_id)
    select ${appId}::text, ${id}::text, ${ciphertext}::bytea, ${encryptionKeyId}::text where ${acting(sql)}
    on conflict (app_id) do update set
      secret_id = excluded.secret_id, ciphertext = excluded.ciphertext, encryption_key_id = excluded.encryption_key_id,
      created_at = excluded.created_at, previous_ciphertext = case when ${isKept} then s.ciphertext end,
      previous_encryption_key_id = case when ${isKept} then s.encryption_key_id end,
      previous_expires_at = case when ${isKept} then ${instant(previousEndsAt)}::timestamptz end,
      former_secret_ids = ${withFormer(sql, sql.fragment`s.former_secret_ids`, sql.fragment`s.secret_id`)}
     where s.secret_id <> excluded.secret_id and excluded.secret_id <> all (s.former_secret_ids)`;
  return (await findIdentitySecrets(sql, appId))?.previous?.expiresAt ?? null;
}
