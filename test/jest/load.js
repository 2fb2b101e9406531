import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { transform } from '@swc/core';
import { swcOptions } from '../jest.config.js';

const fileHere = (name) => new URL(name, import.meta.url).href;

/** Resolves `@jest/globals` to a copy of `globals.js` for each test file, and to `expect.js` for the modules that they share. */
export async function resolve(specifier, context, next) {
  if (specifier !== '@jest/globals') return await next(specifier, context);
  const { parentURL } = context;
  const isTest = parentURL.endsWith('.test.ts');
  const url = isTest
    ? `${fileHere('globals.js')}?for=${encodeURIComponent(parentURL)}`
    : fileHere('expect.js');
  return { url, shortCircuit: true };
}

/** Compiles TypeScript. */
export async function load(url, context, next) {
  if (!/^file:.*\.ts$/.test(url)) return await next(url, context);
  const filename = fileURLToPath(url);
  const source = await readFile(filename, 'utf8');
  const { code } = await transform(source, { ...swcOptions, filename, sourceMaps: 'inline' });
  return { format: 'module', source: code, shortCircuit: true };
}
