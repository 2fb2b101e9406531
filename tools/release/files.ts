import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { projectRoot } from '../../src/config/project-root.ts';

interface LockedPackage {
  readonly version?: string;
  readonly license?: string;
  readonly integrity?: string;
  readonly dev?: boolean;
  readonly hasInstallScript?: boolean;
  /** Whether it is a folder of this repository: a workspace. */
  readonly link?: boolean;
}

export interface ProductionPackage {
  readonly name: string;
  readonly version: string;
  /** An SPDX expression; `unknown` when the package states none. */
  readonly licence: string;
  readonly folder: string;
  readonly integrity: string | undefined;
  readonly hasInstallScript: boolean;
}

const MODULES = 'node_modules/';

/** Licences that permit use in this project and its image. Of an expression with OR, one of them is enough. */
export const ACCEPTED_LICENCES: ReadonlySet<string> = new Set([
  '0BSD',
  'Apache-2.0',
  'BlueOak-1.0.0',
  'BSD-2-Clause',
  'BSD-3-Clause',
  // caniuse-lite: data that the bundler reads at the build.
  'CC-BY-4.0',
  'CC0-1.0',
  'ISC',
  'MIT',
  'MIT-0',
  'Unlicense',
]);

/** Packages whose manifest states no licence, and the licence of the file that they contain. */
const STATED_IN_A_FILE: Readonly<Record<string, string>> = { unionfs: 'Unlicense' };

/** Returns the packages that an installation without development packages can have, from the lock file. */
export function productionPackages(): readonly ProductionPackage[] {
  const { packages } = JSON.parse(readFileSync(path.join(projectRoot, 'package-lock.json'), 'utf8')) as {
    packages: Readonly<Record<string, LockedPackage>>;
  };
  return Object.entries(packages).flatMap(([folder, locked]) => {
    const isOwn = locked.link === true || !folder.includes(MODULES);
    if (isOwn || locked.dev === true) return [];
    const name = folder.slice(folder.lastIndexOf(MODULES) + MODULES.length);
    return [
      {
        name,
        version: locked.version ?? '',
        licence: locked.license ?? STATED_IN_A_FILE[name] ?? 'unknown',
        folder,
        integrity: locked.integrity,
        hasInstallScript: locked.hasInstallScript === true,
      },
    ];
  });
}

/** Whether a licence expression is accepted: every part of an AND, and one part of an OR. */
export function isAccepted(licence: string): boolean {
  const alternatives = licence.replaceAll(/[()]/g, '').split(' OR ');
  return alternatives.some((alternative) =>
    alternative.split(' AND ').every((part) => ACCEPTED_LICENCES.has(part)),
  );
}

/** Returns the page with the licence and its text of every package that is installed. */
export function licencePage(packages: readonly ProductionPackage[]): string {
  const sections = packages.flatMap(({ name, version, licence, folder }) => {
    const installed = path.join(projectRoot, folder);
    if (!existsSync(installed)) return [`${name} ${version}: ${licence} (for another platform)\n`];
    const file = readdirSync(installed).find((entry) => /^(?:licen[cs]e|copying)/i.test(entry));
    const text =
      file === undefined ? 'The package contains no file with its licence.' : readText(installed, file);
    return [`${name} ${version}: ${licence}\n\n${text.trim()}\n`];
  });
  return `Third-party packages of Tributary\n\n${sections.join(`\n${'-'.repeat(80)}\n\n`)}`;
}

const readText = (folder: string, file: string): string => {
  const at = path.join(folder, file);
  return readdirSync(folder, { withFileTypes: true }).some((entry) => entry.name === file && entry.isFile())
    ? readFileSync(at, 'utf8')
    : `See the folder ${file} of the package.`;
};

/** Runs npm, and returns what it prints. */
const npm = (...args: readonly string[]): string =>
  execFileSync('npm', args, {
    cwd: projectRoot,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
    maxBuffer: 64e6,
  });

/** Returns the software bill of materials in CycloneDX, without its time and its random number: equal for equal packages. */
export function billOfMaterials(): string {
  const bill = JSON.parse(npm('sbom', '--omit=dev', '--sbom-format=cyclonedx', '--package-lock-only')) as {
    serialNumber?: string;
    metadata: { timestamp?: string; component: { name: string } };
  };
  delete bill.serialNumber;
  delete bill.metadata.timestamp;
  // npm takes the name from the folder.
  bill.metadata.component.name = 'tributary';
  return `${JSON.stringify(bill, null, 2)}\n`;
}

/** Returns what the registry says about known vulnerabilities, or that it says nothing. Throws when one is high. */
export function audit(): string {
  let report: { metadata?: { vulnerabilities: Readonly<Record<string, number>> } };
  try {
    report = JSON.parse(npm('audit', '--omit=dev', '--json')) as typeof report;
  } catch (error) {
    const { stdout = '' } = error as { stdout?: string };
    report = stdout.startsWith('{') ? (JSON.parse(stdout) as typeof report) : {};
  }
  if (report.metadata === undefined) return 'The registry does not answer npm audit: run it where it does.';
  const { high = 0, critical = 0, total = 0 } = report.metadata.vulnerabilities;
  if (high + critical > 0)
    throw new Error(`npm audit reports ${high} high and ${critical} critical vulnerabilities.`);
  return `npm audit reports ${total} vulnerabilities, none of them high.`;
}
