// Writes the Kotlin and Java snippets of the pages into a folder, each in a package of its own: node snippets.mjs FOLDER
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const [folder] = process.argv.slice(2);
const read = (name) => readFileSync(new URL(`../${name}`, import.meta.url), 'utf8');
const text = `${read('README.md')}\n${read('JVM.md')}`;
rmSync(folder, { recursive: true, force: true });
let count = 0;
for (const [, language, snippet] of text.matchAll(/```(kotlin|java)\n([\s\S]*?)```/g)) {
  count += 1;
  const name = `snippet${count}`;
  mkdirSync(join(folder, name), { recursive: true });
  const isJava = language === 'java';
  const file = isJava ? `${/class (\w+)/.exec(snippet)[1]}.java` : 'Snippet.kt';
  writeFileSync(join(folder, name, file), `package ${name}${isJava ? ';' : ''}\n\n${snippet}`);
}
if (count < 5) throw new Error(`The pages have only ${count} snippets.`);
