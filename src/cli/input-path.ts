import { resolve } from 'node:path';

/** Returns the path of a file that the operator named. A relative name starts at the folder in which npm was started. */
export function inputPath(name: string): string {
  return resolve(process.env['INIT_CWD'] ?? '.', name);
}
