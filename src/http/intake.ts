import { createSharedAssociations } from '../commands/shared-associations.ts';
import type { SharedAssociations, SharedHostApps } from '../commands/shared-associations.ts';
import type { Sql } from '../db/sql.ts';
import { Admission } from './admission.ts';
import type { AdmissionSettings } from './admission.ts';
import { FileAdmission } from './file-admission.ts';

/**
 * What calls from outside get. Webhooks, clicks, redirects and the SDK have a share of the database connections, so that however
 * many arrive, reads, exports and health checks find a connection.
 */
export interface Intake {
  readonly sql: Sql;
  readonly webhooks: Admission;
  /**
   * Webhooks that are stored, and whose workflows are started and awaited. Others wait for a slot and are answered as pending
   * meanwhile: more workflows at a time would make Temporal slow for payouts, too. The relay starts those that have waited too long.
   */
  readonly deliveries: Admission;
  readonly openCalls: Admission;
  /** Calls of creators' sessions, except for files. Creators share the slots. */
  readonly creatorCalls: Admission;
  /** Statements of creators, their CSVs of payouts and lists as CSV, whose slots creators share. */
  readonly creatorFiles: FileAdmission;
  /** CSVs of payouts and of runs, repeated exports and lists as CSV for account keys and sessions, whose slots accounts share. */
  readonly accountFiles: FileAdmission;
  /** Previews of the payouts of all creators, which have slots of their own: pages show them, however slowly files are read. */
  readonly previews: FileAdmission;
  readonly sharedAssociations: SharedAssociations;
}

/** How many files of each kind of caller a process makes or sends at one time: each may take 15 MiB. */
const FILES = 4;

/** How many calls of creators a process works on at one time, and how many of one creator. Others wait for this long, ms. */
const CREATOR_CALLS = 16;
const CREATOR_RULES = { perHolder: 2, waitMs: 4_000 };

/** Open calls are short: few at a time finish as many a second, and other calls do not wait behind all of them. */
const OPEN_CALL_RULES = { waitingPerCall: 16 };

/** Creates the limits of a process. `sql` is the share of the pool, `elapsed` returns a time that only advances, ms. */
export function createIntake(
  sql: Sql,
  settings: AdmissionSettings,
  sharedHostApps?: SharedHostApps,
  elapsed?: () => number,
): Intake {
  return {
    sql,
    webhooks: new Admission(settings.webhooks, { refusesLate: true }),
    deliveries: new Admission(settings.webhooks, { isAdaptive: true, ...(elapsed && { elapsed }) }),
    openCalls: new Admission(settings.openCalls, OPEN_CALL_RULES),
    creatorCalls: new Admission(CREATOR_CALLS, CREATOR_RULES),
    creatorFiles: new FileAdmission({ slots: FILES, perHolder: 1 }),
    accountFiles: new FileAdmission({ slots: FILES, perHolder: 2 }),
    previews: new FileAdmission({ slots: FILES, perHolder: 2 }),
    sharedAssociations: createSharedAssociations(sql, sharedHostApps, elapsed),
  };
}
