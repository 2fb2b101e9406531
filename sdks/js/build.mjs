// Builds every package: one ES module each, the script tag's file, and the type declarations. Prints the sizes.
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { gzipSync } from 'node:zlib';
import { build } from 'esbuild';

process.chdir(import.meta.dirname);
const version = readFileSync('../VERSION', 'utf8').trim();
const define = {
  VERSION: JSON.stringify(version),
  HOST: JSON.stringify(readFileSync('../HOST', 'utf8').trim()),
};

/** Bytes of the minified file after gzip. */
const LIMITS = { 'web/dist/index.js': 4800, 'web/dist/tributary.js': 4900 };

async function bundle(entry, outfile, options) {
  await build({ entryPoints: [entry], outfile, bundle: true, define, legalComments: 'none', ...options });
}

for (const name of ['node', 'web']) {
  rmSync(`${name}/dist`, { recursive: true, force: true });
  const stated = JSON.parse(readFileSync(`${name}/package.json`, 'utf8')).version;
  if (stated !== version)
    throw new Error(`${name}/package.json says ${stated}, and VERSION says ${version}.`);
}
await bundle('node/src/index.ts', 'node/dist/index.js', {
  platform: 'node',
  format: 'esm',
  target: 'node20',
});
if (existsSync('web/src/index.ts')) {
  const web = { platform: 'browser', target: 'es2022', minify: true };
  await bundle('web/src/index.ts', 'web/dist/index.js', { ...web, format: 'esm' });
  await bundle('web/src/script-tag.ts', 'web/dist/tributary.js', { ...web, format: 'iife' });
}
for (const name of ['node', 'web']) {
  if (!existsSync(`${name}/src/index.ts`)) continue;
  execFileSync(
    'node_modules/.bin/tsc',
    [
      ...['--rootDir', '.', '--outDir', `${name}/dist/types`, '--declaration', '--emitDeclarationOnly'],
      ...['-p', `tsconfig.${name}.json`],
    ],
    { stdio: 'inherit' },
  );
}
for (const [file, limit] of Object.entries(LIMITS)) {
  if (!existsSync(file)) continue;
  const size = gzipSync(readFileSync(file), { level: 9 }).length;
  console.log(`${file}: ${size} bytes gzip (limit ${limit})`);
  if (size > limit) process.exitCode = 1;
}
