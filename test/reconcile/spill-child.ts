import { SpillFolder } from '../../src/reconcile/spill.ts';

/** Writes a temporary file, prints the path of its folder, and stays until a signal ends it. */
const folder = await SpillFolder.create();
const file = folder.file();
await file.append('a row');
await file.close();
setInterval(() => {}, 60_000);
process.stdout.write(`${folder.path}\n`);
