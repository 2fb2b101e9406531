import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { transform } from '@swc/core';
import { swcOptions } from '../jest.config.js';

const fileHere = (name) => new URL(name, import.meta.url).href;

/** The file of tests that a module belongs to alone: a test file itself, or what defines its suite. Null for a module that files share. */
function testOf(url) {
  return url.endsWith('.test.ts') ? url : new URL(url).searchParams.get('for');
}

/**
 * Resolves `@jest/globals` to a copy of `globals.js` for each test file, and to `expect.js` for the modules that they share. `suite.ts` defines
 * hooks, so each test file has a copy of it.
 */
export async function resolve(specifier, context, next) {
  const { parentURL } = context;
  if (specifier.endsWith('/suite.ts')) {
    const { url } = await next(specifier, context);
    return { url: `${url}?for=${encodeURIComponent(parentURL)}`, shortCircuit: true };
  }
  if (specifier !== '@jest/globals') return await next(specifier, context);
  const test = testOf(parentURL);
  const url =
    test === null ? fileHere('expect.js') : `${fileHere('globals.js')}?for=${encodeURIComponent(test)}`;
  return { url, shortCircuit: true };
}

/** Compiles TypeScript. */
export async function load(url, context, next) {
  if (!/^file:.*\.ts(\?|$)/.test(url)) return await next(url, context);
  const filename = fileURLToPath(url);
  const source = await readFile(filename, 'utf8');
  const { code } = await transform(source, { ...swcOptions, filename, sourceMaps: 'inline' });
  return { format: 'module', source: code, shortCircuit: true };
}
