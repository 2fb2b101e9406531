import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { slugOf } from '../../tools/site/slug.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const { parts, sources } = JSON.parse(readFileSync(path.join(root, 'site/.generated/site.json'), 'utf8'));
const placeOf = new Map(Object.entries(sources).map(([place, source]) => [source, place]));
placeOf.set('README.md', 'index.md');

/** The favicon of the console. */
const ICON =
  "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 24 24'%3E%3Crect width='24' height='24' rx='6' fill='%230b7285'/%3E%3Cpath d='M7 5v4c0 4 5 3 5 7v3M17 5v4c0 4-5 3-5 7' fill='none' stroke='white' stroke-width='2.2' stroke-linecap='round'/%3E%3C/svg%3E";

/** Returns where a link of a page leads: an address on the site, or, for a file that is no page, its path in the repository. */
function targetOf(source, href) {
  if (/^([a-z][a-z\d+.-]*:|#|\/)/i.test(href)) return { address: href };
  const [, target, hash] = /^([^#]*)(.*)$/.exec(href);
  const file = path.posix.join(path.posix.dirname(source), decodeURIComponent(target));
  const place = placeOf.get(file);
  if (place !== undefined) return { address: `/${place}${hash}` };
  if (!existsSync(path.join(root, file))) throw new Error(`${source}: ${href} leads to no file`);
  return { file };
}

/**
 * Makes the relative links of a page lead to pages of the site. In the files they stay as GitHub needs them: a link to a file that
 * is no page becomes the path of the file in the repository, as code. A link to a file that does not exist fails the build.
 */
function repositoryLinks(md) {
  md.core.ruler.push('repository-links', ({ tokens, env, Token }) => {
    const source = sources[env.relativePath];
    if (source === undefined) return;
    const text = (content) => Object.assign(new Token('text', '', 0), { content });
    const code = (content) => Object.assign(new Token('code_inline', 'code', 0), { content });
    for (const inline of tokens) {
      const opened = [];
      const kept = [];
      for (const token of inline.children ?? []) {
        kept.push(token);
        if (token.type === 'link_open') opened.push(token);
        if (token.type !== 'link_close') continue;
        const open = opened.pop();
        const { address, file } = targetOf(source, open.attrGet('href'));
        if (address !== undefined) {
          open.attrSet('href', address);
          continue;
        }
        kept.splice(kept.indexOf(open), 1);
        kept.splice(-1, 1, text(' ('), code(file), text(')'));
      }
      if (inline.type === 'inline') inline.children = kept;
    }
  });
}

export default {
  lang: 'en',
  title: 'Tributary',
  description: 'Self-hosted affiliate attribution and commissions for app businesses',
  srcDir: '.generated',
  outDir: 'dist',
  // A page may name an address of this machine.
  ignoreDeadLinks: 'localhostLinks',
  head: [['link', { rel: 'icon', href: ICON }]],
  markdown: {
    // Braces in a sentence are braces.
    attrs: { disable: true },
    anchor: { slugify: slugOf },
    config: (md) => {
      md.core.ruler.disable('emoji');
      repositoryLinks(md);
    },
  },
  themeConfig: {
    logo: { src: ICON, alt: '' },
    nav: parts.map(({ text, items }) => ({
      text,
      link: items[0].link,
      activeMatch: `^(${items.map(({ link }) => link.replace(/(index)?\.md$/, '').replaceAll('/', '\\/')).join('|')})(\\.html)?$`,
    })),
    // A part of one page is a link to it.
    sidebar: parts.map(({ text, items }) =>
      items.length === 1 ? { text, link: items[0].link } : { text, items, collapsed: true },
    ),
    outline: [2, 3],
    search: { provider: 'local' },
  },
};
