import { existsSync, readdirSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from '@jest/globals';
import { projectRoot } from '../../src/config/project-root.ts';
import { CONFORMANCE, PARTS } from '../../tools/site/parts.ts';
import { slugOf } from '../../tools/site/slug.ts';
import { textOf } from '../support/text-of.ts';

const inDocs = readdirSync(path.join(projectRoot, 'docs'), { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.md'))
  .map((name) => `docs/${name}`);
const onSite = PARTS.flatMap(({ pages }) => pages.map(({ from }) => from)).filter(
  (file) => file !== CONFORMANCE.from,
);
const pages = [...new Set(['README.md', ...inDocs, ...onSite])].toSorted();

/** Returns the text of a page without its code. */
const prose = (page: string): string =>
  textOf(page)
    .replaceAll(/^( *)(`{3,})[^`]*\n[\s\S]*?^\1\2 *$/gm, '')
    .replaceAll(/`[^`\n]*`/g, (code) => code.replaceAll(/[[\]()]/g, ''));

/** Returns the anchors of a page: its headings, and the ids that it states. */
function anchorsOf(page: string): Set<string> {
  const text = prose(page);
  const anchors = new Set([...text.matchAll(/<a id="([^"]+)"/g)].map(([, id = '']) => id));
  const seen = new Map<string, number>();
  for (const [, heading = ''] of text.matchAll(/^#{1,6} (.+)$/gm)) {
    const slug = slugOf(heading.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1'));
    const count = seen.get(slug) ?? 0;
    seen.set(slug, count + 1);
    anchors.add(count === 0 ? slug : `${slug}-${count}`);
  }
  return anchors;
}

test('every page of docs is in the sidebar of the site, once', () => {
  expect(onSite.filter((file, index) => onSite.indexOf(file) !== index)).toEqual([]);
  expect(inDocs.filter((file) => !onSite.includes(file))).toEqual([]);
});

test.each(pages)('the links of %s lead to files and headings that exist', (page) => {
  const dead = [...prose(page).matchAll(/\]\(<?([^)\s>]+)>?\)/g)]
    .map(([, href = '']) => href)
    .filter((href) => !/^[a-z]+:/.test(href))
    .filter((href) => {
      const [target = '', anchor] = decodeURIComponent(href).split('#');
      const file = target === '' ? page : path.posix.join(path.posix.dirname(page), target);
      if (!existsSync(path.join(projectRoot, file))) return true;
      return anchor !== undefined && file.endsWith('.md') && !anchorsOf(file).has(anchor);
    });
  expect(dead).toEqual([]);
});
