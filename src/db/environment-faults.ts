/**
 * What is sent again after a fault, and when. `resend`: on another connection, a moment later. `reconnect`: the same, after all
 * connections of the pool were closed, because the server that they lead to is the wrong one. `wait`: nothing, because only
 * an operator or time can help.
 */
type Remedy = 'resend' | 'reconnect' | 'wait';

/** A fault that neither the caller nor this program has made. The API responds with 503, and workflows retry. */
export interface EnvironmentFault {
  /** What is wrong and what to do, for the operator. */
  readonly problem: string;
  readonly remedy: Remedy;
}

const fault = (remedy: Remedy, problem: string): EnvironmentFault => ({ remedy, problem });

const OTHER_SCHEMA = fault(
  'wait',
  'the schema of the database is not the one of this version: run the migrations, and look at the search_path of the role',
);
const NO_STATEMENT = fault(
  'resend',
  'a pooler lost a prepared statement: use it in session mode, or one that follows prepared statements',
);

/** The SQLSTATE codes of Postgres that say more than their class. */
const BY_CODE: Readonly<Record<string, EnvironmentFault>> = {
  '08P01': fault(
    'resend',
    'a pooler in front of Postgres refuses connections or has lost them: look into its log (docs/deploy.md)',
  ),
  '25006': fault(
    'reconnect',
    'Postgres refuses writes: it is a standby, or read-only by default_transaction_read_only. DATABASE_URL must lead to the primary',
  ),
  '25P03': fault('resend', 'Postgres ended an idle transaction'),
  '25P04': fault('resend', 'Postgres ended a transaction at its time limit'),
  '26000': NO_STATEMENT,
  '3D000': fault('wait', 'the database of DATABASE_URL does not exist'),
  '3F000': OTHER_SCHEMA,
  '42501': fault(
    'wait',
    'the role of DATABASE_URL lacks a permission: grant it again (docs/operators.md, Two roles)',
  ),
  '42703': OTHER_SCHEMA,
  '42704': OTHER_SCHEMA,
  '42883': OTHER_SCHEMA,
  '42P01': OTHER_SCHEMA,
  '42P05': NO_STATEMENT,
  '42P10': OTHER_SCHEMA,
  '53100': fault('wait', 'the disk of Postgres is full: free space, above all on the volume of its WAL'),
  '53200': fault('resend', 'Postgres is out of memory'),
  '53300': fault(
    'resend',
    'Postgres has no connection left: raise max_connections, or lower DATABASE_CONNECTIONS',
  ),
  '53400': fault('resend', 'a limit of the configuration of Postgres is reached'),
  '55006': fault('resend', 'an object of the database is in use by another session'),
  '55P03': fault('wait', 'another transaction holds a lock: look for the oldest ones in pg_stat_activity'),
  '57014': fault(
    'resend',
    'Postgres cancelled a statement: its time limit ended, or an operator cancelled it',
  ),
  '57P01': fault('resend', 'Postgres is shutting down, or an operator ended the connection'),
  '57P02': fault('resend', 'Postgres restarts after the crash of one of its processes'),
  '57P03': fault('resend', 'Postgres is starting up or shutting down, and accepts no connections yet'),
  '57P04': fault('wait', 'the database was dropped'),
  XX001: fault('wait', 'Postgres found damaged data: stop writing, and restore a backup (docs/backup.md)'),
  XX002: fault('wait', 'Postgres found a damaged index: rebuild it with reindex'),
};

/** The classes of SQLSTATE whose errors do not depend on the statement, by their two letters. */
const BY_CLASS: Readonly<Record<string, EnvironmentFault>> = {
  '08': fault('resend', 'the connection to Postgres failed'),
  '28': fault('wait', 'Postgres refuses the user or the password of DATABASE_URL, or pg_hba.conf the host'),
  '40': fault('resend', 'Postgres ended a transaction because of a concurrent one'),
  '53': fault('resend', 'Postgres lacks a resource'),
  '57': fault('resend', 'an operator intervened in Postgres'),
  '58': fault('resend', 'the system under Postgres failed: look for its disks in the log of Postgres'),
  F0: fault('wait', 'the configuration file of Postgres is damaged'),
  XX: fault('resend', 'Postgres reports an internal error: look into its log'),
};

/** Codes of postgres.js for a connection that failed. */
const DRIVER_CODES = new Set([
  'CONNECTION_CLOSED',
  'CONNECTION_DESTROYED',
  'CONNECTION_ENDED',
  'CONNECT_TIMEOUT',
]);
/** Codes of postgres.js for a login that failed. */
const LOGIN_CODES = new Set(['AUTH_TYPE_NOT_IMPLEMENTED', 'SASL_SIGNATURE_MISMATCH']);
const CERTIFICATE_CODES = /^(?:CERT_|ERR_TLS_|ERR_SSL_|UNABLE_TO_|DEPTH_ZERO_|SELF_SIGNED_|EPROTO$)/;

/** Codes of Node.js for a socket that the other side has ended. Such an error may name no operation. */
const SOCKET_CODES = new Set([
  'ECONNRESET',
  'EPIPE',
  'ETIMEDOUT',
  'ERR_SOCKET_CLOSED',
  'ERR_STREAM_DESTROYED',
  'ERR_STREAM_WRITE_AFTER_END',
]);
/** The operations of Node.js on a connection. Their errors may come without a code of SQL. */
const NETWORK_CALLS = new Set(['connect', 'read', 'write', 'getaddrinfo', 'shutdown']);
/** The process or the machine has used up a resource. */
const MACHINE_CODES = new Set(['EMFILE', 'ENFILE', 'ENOMEM', 'ENOSPC', 'EDQUOT', 'EROFS', 'EIO']);

const textAt = (error: object, name: string): string => {
  const value: unknown = Reflect.get(error, name);
  return typeof value === 'string' ? value : '';
};

/** Whether an error is a message of the database protocol. PgBouncer states the severity only in the language of the server. */
const isFromServer = (error: object): boolean =>
  textAt(error, 'severity') !== '' || textAt(error, 'severity_local') !== '';

/** Returns the fault of the environment that an error of the database driver or of Node.js reports. Null for other errors. */
export function environmentFault(error: unknown): EnvironmentFault | null {
  if (typeof error !== 'object' || error === null) return null;
  const code = textAt(error, 'code');
  if (/^[0-9A-Z]{5}$/.test(code) && isFromServer(error)) {
    return BY_CODE[code] ?? BY_CLASS[code.slice(0, 2)] ?? null;
  }
  if (MACHINE_CODES.has(code)) return fault('wait', `this machine lacks a resource (${code})`);
  if (
    DRIVER_CODES.has(code) ||
    SOCKET_CODES.has(code) ||
    (code !== '' && NETWORK_CALLS.has(textAt(error, 'syscall')))
  ) {
    return fault('resend', `Postgres cannot be reached (${code})`);
  }
  if (LOGIN_CODES.has(code)) return BY_CLASS['28'] ?? null;
  if (CERTIFICATE_CODES.test(code)) return fault('wait', `the certificate of Postgres is refused (${code})`);
  // A host has several addresses, and each of them failed with an error of its own.
  const errors: unknown = Reflect.get(error, 'errors');
  return Array.isArray(errors) && errors.length > 0 ? environmentFault(errors[0]) : null;
}
