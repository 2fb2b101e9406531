import type { Logger } from 'pino';
import { SecretUnreadable } from './config/secret-box.ts';
import type { SecretBox } from './config/secret-box.ts';
import { prepareErasureKey } from './db/erased-identifiers.ts';
import { faultOf } from './db/errors.ts';
import type { Sql } from './db/sql.ts';
import { countSecretsByKey } from './db/webhook-secrets.ts';

const CHECK_PAUSE_MS = 30_000;

export interface SecretsCheckDeps {
  readonly sql: Sql;
  readonly secretBox: SecretBox;
  readonly logger: Logger;
}

/** Whether SECRETS_KEY has the key with which something is stored. */
const opens = ({ keyIds }: SecretBox, { encryptionKeyId }: { readonly encryptionKeyId: string }): boolean =>
  keyIds.includes(encryptionKeyId);

/**
 * Returns a check of whether SECRETS_KEY opens every stored secret that the service needs. The check returns what is missing, for the
 * operator, or null, and queries the database at most every 30 s. While the database does not say, the last result stays. It
 * throws if there is none.
 */
export function createSecretsCheck({
  sql,
  secretBox,
  logger,
}: SecretsCheckDeps): () => Promise<string | null> {
  let last: { readonly at: number; readonly problem: string | null } | null = null;

  return async () => {
    if (last !== null && performance.now() - last.at < CHECK_PAUSE_MS) return last.problem;
    let stored;
    try {
      stored = await countSecretsByKey(sql);
    } catch (error) {
      if (last === null) throw error;
      return last.problem;
    }
    const lost = stored.filter((key) => !opens(secretBox, key));
    const keys = lost.map(({ encryptionKeyId, secrets, erasures, payees, payoutFiles, openRuns }) => {
      const what = [
        ...(secrets > 0 ? [`${secrets} webhook secrets`] : []),
        ...(payees ? ['payees of creators'] : []),
        ...(payoutFiles ? ['files of payout runs'] : []),
        ...(openRuns ? ['open payout runs'] : []),
        ...(erasures > 0 ? ['the erasure of persons'] : []),
      ];
      return `the key ${encryptionKeyId} of ${what.join(' and of ')}`;
    });
    // New webhook secrets and payees replace lost ones. Nothing replaces a file, the payee that a run pays, or the key that erased
    // persons are recognised by.
    const advice = lost.some(({ erasures, payoutFiles, openRuns }) => erasures > 0 || payoutFiles || openRuns)
      ? 'restore it'
      : `restore it, or set those ${lost.some(({ payees }) => payees) ? 'webhook secrets and payees' : 'webhook secrets'} again`;
    const problem = keys.length === 0 ? null : `SECRETS_KEY lacks ${keys.join(', ')}: ${advice}`;
    if (problem !== null && last?.problem !== problem) logger.error({ msg: problem });
    last = { at: performance.now(), problem };
    return problem;
  };
}

/**
 * Stores the key that erased persons are recognised by, if the database has none: in an empty one, the process that comes first decides which
 * key is needed. A process that lacks a key of what is stored already stores none.
 */
export async function prepareKeys(sql: Sql, secretBox: SecretBox): Promise<void> {
  const stored = await countSecretsByKey(sql);
  const hasAll = stored.every((key) => opens(secretBox, key));
  if (hasAll || secretBox.acceptsLostKeys) await prepareErasureKey(sql, secretBox);
}

/** Returns the problem that it is not known whether the encryption keys open what is stored. */
export const neverChecked = (why: string) =>
  `it was never checked whether SECRETS_KEY opens the stored secrets: ${why}`;

/** Returns what the encryption keys lack, or that this is not known. Null if nothing. */
export async function secretsProblem(check: () => Promise<string | null>): Promise<string | null> {
  try {
    return await check();
  } catch (error) {
    return neverChecked(faultOf(error)?.problem ?? 'Postgres refuses the question which keys are needed');
  }
}

/** Whether a process may take work, and encrypt what other processes read. */
export interface KeyGate {
  /** Whether this process has had all keys, or the operator accepts that keys are lost. */
  readonly isOpen: () => boolean;
  /** Looks again. Returns why the process must not take work yet; null if it may. */
  readonly check: () => Promise<string | null>;
}

/**
 * Creates the gate of a process that has never had all keys: it would do permanently without what it cannot read, and encrypt what it stores
 * with a key that no other process has. It opens once the process had them, and at once if the operator accepts that keys are lost.
 */
export function createKeyGate(check: () => Promise<string | null>, acceptsLostKeys: boolean): KeyGate {
  let isOpen = acceptsLostKeys;
  return {
    isOpen: () => isOpen,
    check: async () => {
      if (isOpen) return null;
      const problem = await secretsProblem(check);
      isOpen = problem === null;
      return problem;
    },
  };
}

/** Returns the box for a process that encrypts nothing before its gate is open: it then throws `SecretUnreadable`. */
export function createGuardedBox(secretBox: SecretBox, gate: KeyGate): SecretBox {
  const requireKeys = () => {
    if (gate.isOpen()) return;
    // The next call may find what was missing.
    void gate.check();
    throw new SecretUnreadable(
      'this process has never had all keys of stored data, and encrypts nothing with its own',
      {
        isLost: false,
      },
    );
  };
  return {
    ...secretBox,
    encrypt: (plain, context) => {
      requireKeys();
      return secretBox.encrypt(plain, context);
    },
    tokenHash: (token) => {
      requireKeys();
      return secretBox.tokenHash(token);
    },
  };
}
