import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';
import react from '@vitejs/plugin-react';
import { defineConfig } from 'vite';
import type { Plugin, Rollup } from 'vite';

type OutputChunk = Rollup.OutputChunk;

const outDir = path.join(import.meta.dirname, '../dist/console');

/** Writes compressed copies beside the hashed files, which the service sends as they are. Fonts are compressed already. */
const precompress: Plugin = {
  name: 'precompress',
  apply: 'build',
  closeBundle() {
    const folder = path.join(outDir, 'assets');
    for (const name of readdirSync(folder).filter((file) => !file.endsWith('.woff2'))) {
      const bytes = readFileSync(path.join(folder, name));
      writeFileSync(path.join(folder, `${name}.gz`), gzipSync(bytes, { level: 9 }));
      writeFileSync(
        path.join(folder, `${name}.br`),
        brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 9 } }),
      );
    }
  },
};

/** Names the script that runs before the others in the page of founders. It is an entry of its own, with a hash in its name. */
const nameEarlyScript: Plugin = {
  name: 'name-early-script',
  apply: 'build',
  transformIndexHtml: {
    order: 'post',
    handler(html, { bundle = {} }) {
      const script = Object.values(bundle).find((file) => file.type === 'chunk' && file.name === 'early');
      if (script === undefined) throw new Error('there is no early script');
      return html.replace('__EARLY__', `./${script.fileName}`);
    },
  },
};

/**
 * Names the files of each page of an app in the page of founders, so that the early script asks for those of the address at once: the
 * program would ask for them only when it runs. A path has `:` for each id.
 */
const namePageFiles: Plugin = {
  name: 'name-page-files',
  apply: 'build',
  transformIndexHtml: {
    order: 'post',
    handler(html, { bundle = {}, chunk: entry }) {
      if (!html.includes('__PAGE_FILES__')) return html;
      const filesOf = (chunk: OutputChunk, found = new Set<string>()): Set<string> => {
        if (found.has(chunk.fileName)) return found;
        found.add(chunk.fileName);
        for (const name of chunk.imports) {
          const next = bundle[name];
          if (next?.type === 'chunk') filesOf(next, found);
        }
        return found;
      };
      if (entry === undefined) throw new Error('there is no program');
      const first = filesOf(entry as OutputChunk);
      const chunks = Object.values(bundle).filter((file) => file.type === 'chunk');
      const pages = readFileSync(path.join(import.meta.dirname, 'src/pages.tsx'), 'utf8');
      const files: Record<string, readonly string[]> = {};
      for (const [, at = '', file = ''] of pages.matchAll(
        /path: '([^']+)',\s+Page: lazy\(.*import\('\.(.+)'\)/g,
      )) {
        const page = chunks.find(
          ({ facadeModuleId }) => facadeModuleId?.endsWith(`console/src${file}`) === true,
        );
        if (page === undefined) throw new Error(`there is no program of the page ${at}`);
        files[at.replaceAll(/:\w+/g, ':')] = [...filesOf(page as OutputChunk)]
          .filter((name) => !first.has(name))
          .map((name) => path.basename(name));
      }
      return html.replace('__PAGE_FILES__', JSON.stringify(files));
    },
  },
};

/**
 * Draws the places of a page at once: what outline.html has is in every page, and the styles of the program come after it, so
 * that a browser paints before it has them. Scripts wait for them as before.
 */
const paintEarly: Plugin[] = [
  {
    name: 'insert-outline',
    transformIndexHtml: {
      order: 'pre',
      handler: (html, { path: page }) => {
        const outline = readFileSync(path.join(import.meta.dirname, 'outline.html'), 'utf8');
        const [styles, places] = outline.split('<!-- places -->\n') as [string, string];
        // Only the page of founders has a navigation at its left.
        const shown = page.endsWith('index.html')
          ? places
          : places.replace(/ *<div class="sk-nav">.*<\/div>\n/, '');
        return html.replace('  </head>', `${styles}  </head>`).replace('<!-- outline -->', shown);
      },
    },
  },
  {
    name: 'styles-after-outline',
    apply: 'build',
    transformIndexHtml: {
      order: 'post',
      handler: (html) => {
        const styles = html.match(/ *<link rel="stylesheet"[^>]*>\n/g) ?? [];
        const head = styles.reduce((text, link) => text.replace(link, ''), html);
        // Before what React adds: the styles of the theme replace those of the components.
        return head.replace('    <div id="root">', `${styles.join('')}    <div id="root">`);
      },
    },
  },
];

/** Puts the styles of what is loaded later after those of the page, which are in its body: otherwise these replace them. */
const lateStylesLast: Plugin = {
  name: 'late-styles-last',
  apply: 'build',
  transform: {
    filter: { id: /vite\/preload-helper/ },
    handler(code) {
      const last = code.replace('document.head.appendChild(link)', 'document.body.appendChild(link)');
      if (last === code) throw new Error('Vite adds styles in another way');
      return last;
    },
  },
};

export default defineConfig({
  plugins: [react(), precompress, nameEarlyScript, namePageFiles, ...paintEarly, lateStylesLast],
  // The page states its own base, so that it also works behind the prefix of a proxy.
  base: './',
  build: {
    outDir,
    emptyOutDir: true,
    target: 'es2022',
    modulePreload: { polyfill: false },
    rollupOptions: {
      input: ['index.html', 'creator.html', 'operator.html', 'src/early.ts'].map((name) =>
        path.join(import.meta.dirname, name),
      ),
    },
    reportCompressedSize: false,
    chunkSizeWarningLimit: 800,
  },
});
