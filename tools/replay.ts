import { replayCommand } from '../temporal/replay.ts';

const [source] = process.argv.slice(2);
if (source === undefined || source === '--help') {
  process.stderr.write(
    'Usage: npm run replay -- FILE|WORKFLOW_ID\n' +
      'Replays a workflow history with the current code. FILE is a history downloaded from the Temporal UI; WORKFLOW_ID is a workflow on TEMPORAL_ADDRESS.\n',
  );
  process.exitCode = source === undefined ? 2 : 0;
} else {
  try {
    await replayCommand(source);
    process.stdout.write(`${source} replays: the current code makes the same decisions.\n`);
  } catch (error) {
    process.stderr.write(
      `${source} does not replay: ${error instanceof Error ? error.message : String(error)}\n`,
    );
    process.exitCode = 1;
  }
}
