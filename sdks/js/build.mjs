// Builds packages with their type declarations, and prints the sizes: `node build.mjs [NAME...]`. The default is every package of
// this workspace. `react-native` needs the packages of its own lock file.
import { copyFileSync, existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { gzipSync } from 'node:zlib';
import { build } from 'esbuild';
import { rollup } from 'rollup';
import { dts } from 'rollup-plugin-dts';
import { minify } from 'terser';

process.chdir(import.meta.dirname);
const version = readFileSync('../VERSION', 'utf8').trim();
const host = readFileSync('../HOST', 'utf8').trim();
const define = { VERSION: JSON.stringify(version), HOST: JSON.stringify(host) };
const browser = { platform: 'browser', target: 'es2022' };
const withDebug = { external: ['./tributary-debug.js'] };
/** Names of the source that are neither stored nor sent nor logged nor part of an API: they are shortened. */
const INTERNAL =
  /^(newId|after|isReported|retryMs|refer|retry|current|inspect|clockErrorMs|afterMs|isMisconfigured|meaning)$/;
/** What makes the files smaller after gzip. No read that may be left out or moved has an effect. */
const COMPRESS = { passes: 5, inline: 1, pure_getters: true, unsafe_methods: true, conditionals: false };

/**
 * The files of each package: its source, esbuild's options, and the limit in bytes after gzip. An ES module `index.js` also becomes
 * `index.cjs`, for `require`. Each file has its types in one file beside it, unless only another file loads it (`isLoaded`).
 */
const PACKAGES = {
  node: [
    { source: 'index.ts', file: 'index.js', options: { platform: 'node', format: 'esm', target: 'node20' } },
  ],
  web: [
    {
      source: 'index.ts',
      file: 'index.js',
      options: { ...browser, ...withDebug, format: 'esm' },
      limit: 5050,
    },
    {
      source: 'script-tag.ts',
      file: 'tributary.js',
      options: { ...browser, ...withDebug, format: 'iife' },
      limit: 5050,
    },
    // The other two load it when the debug state is asked for.
    {
      source: 'tributary-debug.ts',
      file: 'tributary-debug.js',
      options: { ...browser, format: 'esm' },
      limit: 1000,
      isLoaded: true,
    },
    { source: 'billing.ts', file: 'billing.js', options: { ...browser, format: 'esm' }, limit: 700 },
    {
      source: 'react.ts',
      file: 'react.js',
      // It shares the SDK of the page. It is not minified, because Terser removes the directive 'use client'.
      options: { ...browser, format: 'esm', external: ['@tributary/web', 'react'] },
    },
  ],
  // CommonJS, because the jest of an app does not transform this package. Metro takes both.
  'react-native': [
    {
      source: 'index.ts',
      file: 'index.js',
      options: {
        platform: 'neutral',
        format: 'cjs',
        target: 'es2020',
        external: ['react-native', '@react-native-async-storage/async-storage'],
      },
      limit: 6450,
    },
  ],
};

/** Builds one file. Small ones are minified: those with a limit. */
async function buildFile(name, { source, options, limit }, file) {
  const outfile = `${name}/dist/${file}`;
  // Terser makes a module smaller than a function, so a script becomes one only at the end.
  const isScript = options.format === 'iife';
  await build({
    absWorkingDir: import.meta.dirname,
    ...{ entryPoints: [`./${name}/src/${source}`], outfile, bundle: true, legalComments: 'none', ...options },
    ...(isScript && { format: 'esm' }),
    define: { ...define, IS_SHARED: String(name === 'web') },
    ...(limit !== undefined && { mangleProps: INTERNAL, minifySyntax: true }),
  });
  if (limit === undefined) return;
  const { code } = await minify(readFileSync(outfile, 'utf8'), {
    ...{ ecma: 2020, module: isScript || options.format === 'esm', toplevel: true, compress: COMPRESS },
  });
  writeFileSync(outfile, isScript ? `(()=>{${code}})();` : code);
  const size = gzipSync(readFileSync(outfile), { level: 9 }).length;
  // The length of a release's own host is not ours, and no page loads what `require` loads.
  const isLimited = host === '' && !file.endsWith('.cjs');
  console.log(`${outfile}: ${size} bytes gzip${isLimited ? ` (limit ${limit})` : ''}`);
  if (isLimited && size > limit) process.exitCode = 1;
}

/** Writes the types of one file as one file, which TypeScript 4.9 reads: it has no import of another file, and no newer syntax. */
async function buildTypes(name, { source, file, options }) {
  const tsconfig = name === 'react-native' ? 'react-native/tsconfig.json' : 'tsconfig.json';
  const bundle = await rollup({
    input: `${name}/src/${source}`,
    external: options.external ?? [],
    plugins: [dts({ tsconfig })],
    // The types of a script are empty.
    onwarn: ({ code, message }) => {
      if (code !== 'EMPTY_BUNDLE') throw new Error(message);
    },
  });
  const { output } = await bundle.generate({ format: 'es' });
  const text = output[0].code;
  const path = `${name}/dist/${file}`;
  writeFileSync(path.replace(/js$/, 'd.ts'), text);
  if (options.format === 'esm') writeFileSync(path.replace(/js$/, 'd.cts'), text);
}

const given = process.argv.slice(2);
for (const name of given.length > 0 ? given : ['node', 'web']) {
  rmSync(`${name}/dist`, { recursive: true, force: true });
  const stated = JSON.parse(readFileSync(`${name}/package.json`, 'utf8')).version;
  if (stated !== version)
    throw new Error(`${name}/package.json says ${stated}, and VERSION says ${version}.`);
  // A release is built in a copy of sdks/, which has the licence itself.
  copyFileSync(existsSync('../LICENSE') ? '../LICENSE' : '../../LICENSE', `${name}/LICENSE`);
  copyFileSync('../CHANGELOG.md', `${name}/CHANGELOG.md`);
  for (const entry of PACKAGES[name]) {
    const { file, options, isLoaded } = entry;
    await buildFile(name, entry, file);
    if (isLoaded) continue;
    if (options.format === 'esm')
      await buildFile(name, { ...entry, options: { ...options, format: 'cjs' } }, file.replace(/js$/, 'cjs'));
    await buildTypes(name, entry);
  }
}
