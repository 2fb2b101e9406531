import type { Logger } from 'pino';
import type { Relay } from '../../temporal/relay.ts';
import type { SecretBox } from '../config/secret-box.ts';
import type { Sql } from '../db/sql.ts';
import { startHousekeeping, startStatistics } from '../housekeeping.ts';
import { startRollupFoldLoop } from '../rollup-fold-loop.ts';

export interface Loops {
  /** Ends the loops after their current round. */
  readonly stop: () => Promise<void>;
}

/** Starts what a process does again and again without a request, beside the `relay`, which runs already. */
export function startLoops(
  { sql, secretBox }: { readonly sql: Sql; readonly secretBox: SecretBox },
  relay: Relay,
  logger: Logger,
): Loops {
  const foldLoop = startRollupFoldLoop(sql, logger);
  const housekeeping = startHousekeeping(sql, secretBox, logger);
  const statistics = startStatistics(sql, logger);
  return {
    stop: async () => {
      await Promise.all([relay, foldLoop, housekeeping, statistics].map(async (loop) => await loop.stop()));
    },
  };
}
