import { createReadStream } from 'node:fs';
import { readdir } from 'node:fs/promises';
import path from 'node:path';
import { createInterface } from 'node:readline';

/** What the run calls its users and devices, and addresses of e-mail, which some payloads have. */
const PERSONAL = /\b(?:user|device)-(?:s\d+|closing-\d+-\d+|probe|noise|silent)\b|[\w.+-]+@[\w-]+\.[a-z]{2,}/;
const MOST_NAMED = 5;

async function logFiles(folder: string): Promise<string[]> {
  const files = await readdir(folder, { recursive: true });
  return files.filter((file) => file.endsWith('.log')).map((file) => path.join(folder, file));
}

/** Returns the first lines of the logs of all servers and processes that name a person. */
export async function checkLogs(folder: string): Promise<string[]> {
  const problems: string[] = [];
  for (const file of await logFiles(folder)) {
    for await (const line of createInterface({ input: createReadStream(file) })) {
      const found = PERSONAL.exec(line);
      if (found === null || problems.length === MOST_NAMED) continue;
      const around = line.slice(Math.max(0, found.index - 80), found.index + 80);
      problems.push(`${path.basename(file)} names a person (${found[0]}): ${around}`);
    }
  }
  return problems;
}
