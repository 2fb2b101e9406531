import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { brotliCompress, gzipSync } from 'node:zlib';
import react from '@vitejs/plugin-react';
import { build, defineConfig } from 'vite';
import type { BuildOptions, Plugin, Rollup } from 'vite';

type OutputChunk = Rollup.OutputChunk;

const outDir = path.join(import.meta.dirname, '../dist/console');
const brotli = promisify(brotliCompress);

/** Writes compressed copies beside the hashed files, which the service sends as they are. Fonts are compressed already. */
const precompress: Plugin = {
  name: 'precompress',
  apply: 'build',
  async closeBundle() {
    const folder = path.join(outDir, 'assets');
    const compress = async (name: string) => {
      const bytes = readFileSync(path.join(folder, name));
      writeFileSync(path.join(folder, `${name}.gz`), gzipSync(bytes, { level: 9 }));
      // The highest quality, 7 % smaller than that before it, takes seconds for all files.
      writeFileSync(path.join(folder, `${name}.br`), await brotli(bytes));
    };
    await Promise.all(
      readdirSync(folder)
        .filter((file) => !file.endsWith('.woff2'))
        .map(compress),
    );
  },
};

/** Names the script that runs before the others in the pages of founders and creators. It is an entry of its own, with a hash in its name. */
const nameEarlyScript: Plugin = {
  name: 'name-early-script',
  apply: 'build',
  transformIndexHtml: {
    order: 'post',
    handler(html, { bundle = {} }) {
      if (!html.includes('__EARLY__')) return html;
      const script = Object.values(bundle).find((file) => file.type === 'chunk' && file.name === 'early');
      if (script === undefined) throw new Error('there is no early script');
      return html.replace('__EARLY__', `./${script.fileName}`);
    },
  },
};

/** Whether a chunk is the program of a document. */
const isDocument = ({ facadeModuleId }: OutputChunk) => facadeModuleId?.endsWith('.html') === true;
const nameOf = ({ facadeModuleId }: OutputChunk) => path.basename(facadeModuleId ?? '', '.html');

/** Returns the names of a chunk and of all that it imports, directly or not, with those that it imports later if `isLater`. */
function filesOf(
  chunk: OutputChunk,
  chunks: readonly OutputChunk[],
  { isLater = false, found = new Set<string>() } = {},
): ReadonlySet<string> {
  if (found.has(chunk.fileName)) return found;
  found.add(chunk.fileName);
  for (const name of [...chunk.imports, ...(isLater ? chunk.dynamicImports : [])]) {
    const next = chunks.find(({ fileName }) => fileName === name);
    if (next !== undefined) filesOf(next, chunks, { isLater, found });
  }
  return found;
}

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
      if (entry === undefined) throw new Error('there is no program');
      const chunks = Object.values(bundle).filter((file) => file.type === 'chunk') as OutputChunk[];
      const first = filesOf(entry as OutputChunk, chunks);
      const pages = readFileSync(path.join(import.meta.dirname, 'src/pages.tsx'), 'utf8');
      const files: Record<string, readonly string[]> = {};
      const listed = [...pages.matchAll(/path: '([^']+)',\s+\.\.\.lazyPage\([^']*import\('\.(.+)'\)/g)];
      if (listed.length !== pages.split('import(').length - 1)
        throw new Error('a page of pages.tsx is written in another way than the others');
      for (const [, at = '', file = ''] of listed) {
        const id = path.join(import.meta.dirname, 'src', file);
        const page = chunks.find(({ facadeModuleId }) => facadeModuleId === id);
        if (page === undefined) throw new Error(`there is no program of the page ${at}`);
        const ofPage = filesOf(page, chunks);
        const later = chunks.filter(({ fileName }) => ofPage.has(fileName) && !first.has(fileName));
        files[at.replaceAll(/:\w+/g, ':')] = later
          .flatMap(({ fileName, viteMetadata }) => [fileName, ...(viteMetadata?.importedCss ?? [])])
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

/** Puts the styles of lazy parts after those of the page, which are in its body: otherwise these replace them. */
const lazyStylesLast: Plugin = {
  name: 'lazy-styles-last',
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

/**
 * Leaves out the styles of components that no document loads: about half of the library's file, which a page waits for. The others keep
 * their order, on which it depends which of two rules counts.
 */
const stylesOfComponents = (isLoaded: (module: string) => boolean): Plugin => ({
  name: 'styles-of-components',
  load: {
    filter: { id: /@mantine\/core\/styles\.css$/ },
    handler(file) {
      const library = path.dirname(file);
      const components = readdirSync(path.join(library, 'esm'), { recursive: true, encoding: 'utf8' })
        .filter((name) => name.endsWith('.module.mjs'))
        .map((name) => path.join(library, 'esm', name));
      if (!components.some((name) => isLoaded(name))) throw new Error('no component is known to be loaded');
      let styles = readFileSync(file, 'utf8');
      for (const component of components.filter((name) => !isLoaded(name))) {
        const own = readFileSync(
          path.join(library, 'styles', `${path.basename(component, '.module.mjs')}.css`),
          'utf8',
        );
        if (!styles.includes(own)) throw new Error(`the styles of ${component} are not in ${file}`);
        styles = styles.replace(own, '');
      }
      return styles;
    },
  },
});

/** The names of documents by the id of a module that they load. */
type Documents = ReadonlyMap<string, readonly string[]>;

/** Builds the documents as they come, and returns what each loads first, and what it loads at all. */
async function documentsOfModules(): Promise<{ readonly first: Documents; readonly all: Documents }> {
  const { output } = (await build({
    configFile: false,
    root: import.meta.dirname,
    logLevel: 'silent',
    plugins: [react()],
    build: { ...BUILD, write: false },
  })) as Rollup.RollupOutput;
  const chunks = output.filter((file) => file.type === 'chunk');
  const collect = (isLater: boolean): Documents => {
    const documents = new Map<string, string[]>();
    for (const entry of chunks.filter(isDocument)) {
      const files = filesOf(entry, chunks, { isLater });
      for (const id of chunks.filter(({ fileName }) => files.has(fileName)).flatMap((one) => one.moduleIds))
        documents.set(id, [...(documents.get(id) ?? []), nameOf(entry)].toSorted());
    }
    return documents;
  };
  return { first: collect(false), all: collect(true) };
}

/**
 * How modules are put together into files. A browser asks for few files at a time, so a page of many small ones waits for many answers:
 * what several documents load first is one file, and what many pages of founders share, and no other document loads, is another one.
 */
const groupsOf = ({ first, all }: Awaited<ReturnType<typeof documentsOfModules>>) => [
  {
    debugName: 'first',
    // What one document alone loads first has its program, which no other may run.
    name: (id: string) => {
      const names = first.get(id) ?? [];
      return names.length > 1 ? names.join('-') : null;
    },
    priority: 2,
  },
  {
    debugName: 'shared',
    name: (id: string) => (!first.has(id) && all.get(id)?.join('-') === 'index' ? 'shared' : null),
    minShareCount: 5,
    priority: 1,
  },
];

/** Fails if a document loads the module of another one, first or later: it would run. */
const keepDocumentsApart: Plugin = {
  name: 'keep-documents-apart',
  apply: 'build',
  generateBundle(_options, bundle) {
    const chunks = Object.values(bundle).filter((file) => file.type === 'chunk') as OutputChunk[];
    for (const entry of chunks.filter(isDocument)) {
      const files = filesOf(entry, chunks, { isLater: true });
      for (const other of chunks.filter(isDocument))
        if (other !== entry && files.has(other.fileName))
          throw new Error(`the document ${nameOf(entry)} loads the program of ${nameOf(other)}`);
    }
  },
};

const BUILD = {
  outDir,
  emptyOutDir: true,
  target: 'es2022',
  modulePreload: { polyfill: false },
  reportCompressedSize: false,
  chunkSizeWarningLimit: 800,
  rolldownOptions: {
    input: ['index.html', 'creator.html', 'operator.html', 'src/early.ts'].map((name) =>
      path.join(import.meta.dirname, name),
    ),
  },
} as const satisfies BuildOptions;

export default defineConfig(async ({ command }) => {
  const documents = command === 'build' ? await documentsOfModules() : undefined;
  return {
    plugins: [
      react(),
      precompress,
      nameEarlyScript,
      namePageFiles,
      keepDocumentsApart,
      ...paintEarly,
      lazyStylesLast,
      ...(documents === undefined ? [] : [stylesOfComponents((module) => documents.all.has(module))]),
    ],
    // The page states its own base, so that it also works behind the prefix of a proxy.
    base: './',
    build: {
      ...BUILD,
      rolldownOptions: {
        ...BUILD.rolldownOptions,
        output: {
          codeSplitting: {
            includeDependenciesRecursively: false,
            groups: documents === undefined ? [] : groupsOf(documents),
          },
        },
      },
    },
  };
});
