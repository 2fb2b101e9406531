// The package contains what it should, and the snippets of its README and the example compile.
const { execFileSync } = require('node:child_process');
const { mkdirSync, readFileSync, rmSync, writeFileSync } = require('node:fs');
const { join } = require('node:path');

const FOLDER = join(__dirname, '..');

test('the package contains its code, its types, its documents and nothing else', () => {
  const [{ files }] = JSON.parse(execFileSync('npm', ['pack', '--dry-run', '--json'], { cwd: FOLDER }));
  const packed = files.map(({ path }) => path);
  expect(packed.sort()).toEqual(
    [
      'CHANGELOG.md',
      'LICENSE',
      'README.md',
      'app.plugin.js',
      'dist/index.d.ts',
      'dist/index.js',
      'package.json',
    ].sort(),
  );
});

test('the package needs React Native and AsyncStorage, and nothing else', () => {
  const { dependencies, peerDependencies } = require('../package.json');
  expect(dependencies).toBeUndefined();
  expect(Object.keys(peerDependencies)).toEqual([
    '@react-native-async-storage/async-storage',
    'react-native',
  ]);
  const code = readFileSync(join(FOLDER, 'dist/index.js'), 'utf8');
  const required = [...code.matchAll(/require\("([^"]+)"\)/g)].map(([, name]) => name);
  expect(required.sort()).toEqual(Object.keys(peerDependencies));
});

test('the snippets of the README and the example compile in strict mode', () => {
  const folder = join(FOLDER, 'dist/snippets');
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const readme = readFileSync(join(FOLDER, 'README.md'), 'utf8');
  const snippets = [...readme.matchAll(/```tsx?\n([\s\S]*?)```/g)];
  expect(snippets.length).toBeGreaterThanOrEqual(3);
  for (const [index, [, snippet]] of snippets.entries())
    writeFileSync(join(folder, `readme-${index}.tsx`), snippet);
  writeFileSync(
    join(folder, 'App.tsx'),
    readFileSync(join(FOLDER, '../../examples/react-native/App.tsx'), 'utf8'),
  );
  const compilerOptions = {
    strict: true,
    noEmit: true,
    target: 'es2022',
    lib: ['es2022'],
    module: 'preserve',
    jsx: 'react-jsx',
    types: ['react-native'],
    skipLibCheck: true,
  };
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, include: ['*.tsx'] }));
  try {
    execFileSync(join(FOLDER, '../node_modules/.bin/tsc'), ['-p', folder]);
  } catch (error) {
    throw new Error(String(error.stdout));
  }
}, 60_000);
