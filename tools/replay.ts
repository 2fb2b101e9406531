import { replayCommand } from '../temporal/replay.ts';

const [source] = process.argv.slice(2);
if (source === undefined || source === '--help') {
  process.stderr.write(
    'Usage: npm run replay -- FILE|WORKFLOW_ID\n' +
      "Replays a history downloaded from the Temporal UI, or of a workflow on TEMPORAL_ADDRESS, against today's code.\n",
  );
  process.exitCode = source === undefined ? 2 : 0;
} else {
  try {
    await replayCommand(source);
    process.stdout.write(`${source} replays: today's code decides the same.\n`);
  } catch (error) {
    process.stderr.write(
      `${source} does not replay: ${error instanceof Error ? error.message : String(error)}\n`,
    );
    process.exitCode = 1;
  }
}
