import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';

/** `/proc` counts processor time in hundredths of a second. */
const MS_PER_TICK = 10;

/** Returns the process id of the Postgres of a data folder. */
export function postmasterOf(dataDir: string): number {
  return Number(readFileSync(path.join(dataDir, 'postgres', 'postmaster.pid'), 'utf8').split('\n')[0]);
}

/** Returns the ids of the processes whose command line contains a text. */
export function processesWith(text: string): readonly number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((name) => read(`/proc/${name}/cmdline`).includes(text))
    .map(Number);
}

/** Returns the processor time that a process and all its children have used, those that have ended included, ms. */
export function processorTimeMs(root: number): number {
  let ticks = 0;
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue;
    const stat = read(`/proc/${name}/stat`);
    const fields = fieldsOf(stat);
    const own = usedOf(fields);
    if (Number(name) === root) ticks += own + (fields[13] ?? 0) + (fields[14] ?? 0);
    else if (fields[1] === root) ticks += own;
  }
  return ticks * MS_PER_TICK;
}

/** Returns the processor time that the first thread of this process has used, ms. */
export function mainThreadTimeMs(): number {
  const stat = readFileSync(`/proc/self/task/${process.pid}/stat`, 'utf8');
  return usedOf(fieldsOf(stat)) * MS_PER_TICK;
}

/** Returns the processor time in the fields of a process or a thread, in ticks, without that of children. */
const usedOf = (fields: readonly number[]) => (fields[11] ?? 0) + (fields[12] ?? 0);

/** Returns the fields of a line of `/proc/…/stat` that follow the name of the program, which may contain spaces. */
const fieldsOf = (stat: string) =>
  stat
    .slice(stat.lastIndexOf(')') + 2)
    .split(' ')
    .map(Number);

/** Returns the text of a file, or nothing when its process has ended. */
function read(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}
