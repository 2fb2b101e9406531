import { ConfigError, readConfig } from '../src/config/config.ts';
import { findTemporalAddress } from '../src/embedded/find-service.ts';
import { NoHistoryError, replayCommand } from '../temporal/replay.ts';

const [source] = process.argv.slice(2);
if (source === undefined || source === '--help') {
  process.stderr.write(
    'Usage: npm run replay -- FILE|WORKFLOW_ID\n' +
      'Replays a workflow history with the current code. FILE is a history downloaded from the Temporal UI; WORKFLOW_ID is a workflow of the service in DATA_DIR, or on TEMPORAL_ADDRESS.\n',
  );
  process.exitCode = source === undefined ? 2 : 0;
} else {
  try {
    const { dataDir, temporal } = readConfig(process.env);
    const folder = process.env['INIT_CWD'] ?? '.';
    const findTemporal = async () => temporal.address ?? (await findTemporalAddress(dataDir));
    await replayCommand(source, { folder, dataDir, findTemporal });
    process.stdout.write(`${source} replays: the current code makes the same decisions.\n`);
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    const isUsage = error instanceof NoHistoryError || error instanceof ConfigError;
    process.stderr.write(`${isUsage ? message : `${source} does not replay: ${message}`}\n`);
    process.exitCode = 1;
  }
}
