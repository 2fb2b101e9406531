// Builds packages with their type declarations, and prints the sizes: `node build.mjs [NAME...]`. The default is every package of
// this workspace. `react-native` needs the packages of its own lock file.
import { execFileSync } from 'node:child_process';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { gzipSync } from 'node:zlib';
import { build } from 'esbuild';
import { minify } from 'terser';

process.chdir(import.meta.dirname);
const version = readFileSync('../VERSION', 'utf8').trim();
const host = readFileSync('../HOST', 'utf8').trim();
const define = { VERSION: JSON.stringify(version), HOST: JSON.stringify(host) };
const browser = { platform: 'browser', target: 'es2022' };
/** Names of the source that are neither stored nor sent nor logged nor part of an API: they are shortened. */
const INTERNAL = /^(newId|after|refer|retry|outcome|clockErrorMs|afterMs|isMisconfigured)$/;

/** The files of each package: its source, esbuild's options, and the limit in bytes after gzip. */
const PACKAGES = {
  node: [
    { source: 'index.ts', file: 'index.js', options: { platform: 'node', format: 'esm', target: 'node20' } },
  ],
  web: [
    { source: 'index.ts', file: 'index.js', options: { ...browser, format: 'esm' }, limit: 4430 },
    { source: 'script-tag.ts', file: 'tributary.js', options: { ...browser, format: 'iife' }, limit: 4490 },
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
      limit: 4740,
    },
  ],
};

const given = process.argv.slice(2);
for (const name of given.length > 0 ? given : ['node', 'web']) {
  rmSync(`${name}/dist`, { recursive: true, force: true });
  const stated = JSON.parse(readFileSync(`${name}/package.json`, 'utf8')).version;
  if (stated !== version)
    throw new Error(`${name}/package.json says ${stated}, and VERSION says ${version}.`);
  for (const { source, file, options, limit } of PACKAGES[name]) {
    const outfile = `${name}/dist/${file}`;
    const entryPoints = [`./${name}/src/${source}`];
    await build({
      absWorkingDir: import.meta.dirname,
      ...{ entryPoints, outfile, bundle: true, legalComments: 'none', ...options },
      define: { ...define, IS_SHARED: String(name === 'web') },
      ...(limit !== undefined && { mangleProps: INTERNAL, minifySyntax: true }),
    });
    if (limit === undefined) continue;
    const { code } = await minify(readFileSync(outfile, 'utf8'), {
      ...{ ecma: 2020, module: options.format === 'esm', toplevel: true, compress: { passes: 3 } },
    });
    writeFileSync(outfile, code);
    const size = gzipSync(readFileSync(outfile), { level: 9 }).length;
    // The length of a release's own host is not ours.
    const isLimited = host === '';
    console.log(`${outfile}: ${size} bytes gzip${isLimited ? ` (limit ${limit})` : ''}`);
    if (isLimited && size > limit) process.exitCode = 1;
  }
  const project = name === 'react-native' ? 'react-native/tsconfig.json' : `tsconfig.${name}.json`;
  execFileSync(
    'node_modules/.bin/tsc',
    [
      ...['--rootDir', '.', '--outDir', `${name}/dist/types`, '--declaration', '--emitDeclarationOnly'],
      ...['-p', project],
    ],
    { stdio: 'inherit' },
  );
}
