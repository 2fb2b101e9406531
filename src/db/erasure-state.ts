import type { SecretBox } from '../config/secret-box.ts';
import type { ErasureSubject, SubjectKey } from '../domain/erasure.ts';
import type { AppId, DeliveryId, ErasureId } from '../domain/ids.ts';
import { identifierHasher, sealSubject } from './erased-identifiers.ts';
import type { Fragment, Sql } from './sql.ts';

/** What the statements of an erasure need. */
export interface ErasureDeps {
  readonly sql: Sql;
  readonly secretBox: SecretBox;
}

/** What an erasure did, by kind of row. */
export const ERASED_KINDS = [
  'bindings',
  'commissions',
  'events',
  'payments',
  'transfers',
  'providerKeys',
  'devices',
  'clicks',
  'identities',
  'testReports',
  'reprocessNames',
  'bodies',
  'histories',
] as const;

export type ErasedKind = (typeof ERASED_KINDS)[number];

export interface Erasure {
  readonly id: ErasureId;
  readonly appId: AppId;
  readonly pseudonym: string;
  readonly requestedAt: number;
  /** When the search began again after the first one. Null if it did not. */
  readonly reopenedAt: number | null;
  readonly finishedAt: number | null;
  readonly counts: Readonly<Partial<Record<ErasedKind, number>>>;
  /** Deliveries that name the person and have no outcome yet. */
  readonly waiting: readonly DeliveryId[];
}

/** An erasure in progress, with the identifiers that it searches for. */
export interface OpenErasure extends Erasure {
  readonly subject: ErasureSubject;
  /** The keyed hash of the user id, in hexadecimal: `subject` may lack the id. */
  readonly userHash: string;
  /** Whether bodies are compared with the keyed hashes of all erased keys. */
  readonly byHash: boolean;
  /** Of this search. A step of an earlier one does not move it on. */
  readonly revision: number;
  readonly scannedAt: number | null;
  readonly scannedId: DeliveryId | null;
  /** When the second search begins, epoch ms. Null before the first one has ended. */
  readonly settlesAt: number | null;
  /** How long it is until then by the clock of the database, ms; not above 0 when that is over. */
  readonly settlesInMs: number | null;
}

/** Adds keys to those that an erasure in progress searches for. */
export async function addSubjectKeys(
  { sql, secretBox }: ErasureDeps,
  { id, appId }: Pick<OpenErasure, 'id' | 'appId'>,
  keys: readonly SubjectKey[],
): Promise<void> {
  if (keys.length === 0) return;
  const hash = await identifierHasher(sql, secretBox);
  const rows = keys.map(({ source, userKey }) => ({
    ...sealSubject(secretBox, appId, userKey),
    source,
    hash: hash(appId, userKey).toString('hex'),
  }));
  await sql`
    insert into erasure_subjects (erasure_id, source, hash, ciphertext, encryption_key_id)
    select e.id, r.source, decode(r.hash, 'hex'), decode(r.ciphertext, 'hex'), r."encryptionKeyId"
      from (select id from erasures where id = ${id} and finished_at is null for update) e,
           jsonb_to_recordset(${sql.json(rows)}) r (source text, hash text, ciphertext text, "encryptionKeyId" text)
    on conflict do nothing`;
}

/** Returns the texts that stand for the person in rows: the user id, if it is known, and the pseudonym. */
export const usersOf = (user: string | null, pseudonym: string) =>
  user === null ? [pseudonym] : [user, pseudonym];

/** Returns the counts of the erasure `s` with the numbers of rows of `added`. */
export function addedCounts(sql: Sql, added: readonly (readonly [ErasedKind, Fragment])[]): Fragment {
  const numbers = added.reduce(
    (before, [kind, rows]) =>
      sql.fragment`${before} || jsonb_build_object(${kind}::text, coalesce((s.counts->>${kind}::text)::bigint, 0) + (select count(*) from ${rows}))`,
    sql.fragment`s.counts`,
  );
  return sql.fragment`(${numbers})`;
}
