import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { transform } from '@swc/core';
import { swcOptions } from '../jest.config.js';

const GLOBALS = new URL('./globals.js', import.meta.url);

/** Resolves `@jest/globals` to a copy of `globals.js` for each importing file. */
export async function resolve(specifier, context, next) {
  if (specifier !== '@jest/globals') return await next(specifier, context);
  return { url: `${GLOBALS.href}?for=${encodeURIComponent(context.parentURL)}`, shortCircuit: true };
}

/** Compiles TypeScript. */
export async function load(url, context, next) {
  if (!/^file:.*\.ts$/.test(url)) return await next(url, context);
  const filename = fileURLToPath(url);
  const source = await readFile(filename, 'utf8');
  const { code } = await transform(source, { ...swcOptions, filename, sourceMaps: 'inline' });
  return { format: 'module', source: code, shortCircuit: true };
}
