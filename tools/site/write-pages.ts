import { copyFile, cp, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { projectRoot } from '../../src/config/project-root.ts';
import { routeGroups } from '../../src/http/routes.ts';
import { conformancePage } from '../../test/support/conformance-page.ts';
import { readTaggedTests } from '../../test/support/tagged-tests.ts';
import { apiPages } from './api-reference.ts';
import { CONFORMANCE, PARTS } from './parts.ts';

/** The folder that VitePress reads: the files of the repository, unchanged, and the generated pages. */
export const SITE_PAGES = path.join(projectRoot, 'site/.generated');

const headingOf = (text: string): string => /^# (.+)$/m.exec(text)?.[1]?.replaceAll('`', '') ?? '';

async function write(file: string, text: string): Promise<void> {
  const target = path.join(SITE_PAGES, file);
  await mkdir(path.dirname(target), { recursive: true });
  await writeFile(target, text);
}

/** A promise or a title may contain what Markdown would take for HTML. */
const withoutHtml = (text: string): string =>
  text.replaceAll(/<(?!br>)/g, '&lt;').replaceAll('{{', '&#123;&#123;');

/** Writes all pages of the site, with `site.json`, from which its configuration makes the sidebar and the links. */
export async function writePages(): Promise<void> {
  await rm(SITE_PAGES, { recursive: true, force: true });
  await cp(path.join(projectRoot, 'docs'), SITE_PAGES, { recursive: true });
  await copyFile(path.join(projectRoot, 'site/index.md'), path.join(SITE_PAGES, 'index.md'));

  const operations = apiPages(routeGroups);
  for (const { file, text } of operations) await write(file, text);
  const conformance = conformancePage(readTaggedTests().tests);
  await write(CONFORMANCE.to, `---\nsearch: false\n---\n\n${withoutHtml(conformance)}`);

  const sources: Record<string, string> = {};
  const parts: { text: string; items: { text: string; link: string }[] }[] = [];
  for (const { title, pages } of PARTS) {
    const items: { text: string; link: string }[] = [];
    for (const { from, to, title: own } of pages) {
      sources[to] = from;
      if (!from.startsWith('docs/')) await write(to, await readFile(path.join(projectRoot, from), 'utf8'));
      const text = own ?? headingOf(await readFile(path.join(SITE_PAGES, to), 'utf8'));
      items.push({ text, link: `/${to}` });
    }
    if (title === 'API') {
      for (const { file, title: text } of operations) {
        sources[file] = `docs/${file}`;
        items.push({ text, link: `/${file}` });
      }
    }
    parts.push({ text: title, items });
  }
  await write('site.json', `${JSON.stringify({ parts, sources }, null, 2)}\n`);
}
