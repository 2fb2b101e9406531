import { execFile, execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { createReadStream, createWriteStream } from 'node:fs';
import { mkdir, readFile, readdir, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { pipeline } from 'node:stream/promises';
import { parseArgs, promisify } from 'node:util';
import { createGzip } from 'node:zlib';
import { projectRoot } from '../../src/config/project-root.ts';
import { say } from '../run-tool.ts';
import { notesOf } from './changelog.ts';
import { buildCheckedImage } from './check-image.ts';
import { writeDeployment } from './deployment.ts';
import { audit, billOfMaterials, isAccepted, licencePage, productionPackages } from './files.ts';
import { saveImage } from './image.ts';

/*
 * `npm run release -- [--registry NAME] [--own-base] [--without-image] [--sdks NAME,NAME] [--tag]`: makes everything that a user installs
 * of the last commit, in dist/release: source, image, files of Compose and Kubernetes, packages of the SDKs, bill of materials, licences,
 * notes, and the checksums of all. `--tag` also makes the git tag. Nothing is published. CONTRIBUTING.md has the steps around it.
 */

const run = promisify(execFile);
const { values: flags } = parseArgs({
  options: {
    registry: { type: 'string', default: 'registry.example.com' },
    'own-base': { type: 'boolean', default: false },
    'without-image': { type: 'boolean', default: false },
    sdks: { type: 'string' },
    tag: { type: 'boolean', default: false },
  },
});
const folder = path.join(projectRoot, 'dist/release');

const git = (...args: readonly string[]): string =>
  execFileSync('git', args, { cwd: projectRoot, encoding: 'utf8', maxBuffer: 256e6 }).trim();

const text = async (name: string) => await readFile(path.join(projectRoot, name), 'utf8');

/** Returns the version of the package, and what CHANGELOG.md says about it. Throws if the checkout is not that version. */
async function checkedVersion(): Promise<{ readonly version: string; readonly notes: string }> {
  const { version } = JSON.parse(await text('package.json')) as { version: string };
  const notes = notesOf(await text('CHANGELOG.md'), version);
  if (!(await text('deploy/kubernetes/kustomization.yaml')).includes(`newTag: ${version}\n`))
    throw new Error(
      `deploy/kubernetes/kustomization.yaml does not name ${version}: run "npm run release:prepare"`,
    );
  const histories = await readdir(path.join(projectRoot, 'test/fixtures/histories'));
  if (histories.includes('next'))
    throw new Error('test/fixtures/histories/next belongs to no release: run "npm run release:prepare"');
  if (git('status', '--porcelain') !== '') throw new Error('the checkout has changes that are not committed');
  const tagged = git('tag', '--list', `v${version}`);
  if (tagged !== '' && git('rev-parse', `v${version}^{commit}`) !== git('rev-parse', 'HEAD'))
    throw new Error(`the tag v${version} exists at another commit: a released version never changes`);
  return { version, notes };
}

/** Writes the packages of the SDKs, without the address of a service: an app gives it, or builds them again with its own. */
async function writeSdks(file: string, name: string): Promise<void> {
  const packages = path.join(folder, name);
  await rm(packages, { recursive: true, force: true });
  const names = flags.sdks?.split(',') ?? [];
  const { stdout } = await run('sdks/release.sh', ['none', packages, ...names], {
    cwd: projectRoot,
    maxBuffer: 64e6,
  });
  say(stdout.trim());
  await run('tar', ['-C', folder, '--owner=0', '--group=0', '-czf', file, name]);
  await rm(packages, { recursive: true });
}

/** Writes the image of a release as an archive that `docker load` reads, compressed. */
async function writeImage(image: string, file: string): Promise<void> {
  await buildCheckedImage(image, flags['own-base']);
  const plain = `${file}.tar`;
  await rm(plain, { force: true });
  await saveImage(image, plain);
  await pipeline(createReadStream(plain), createGzip({ level: 6 }), createWriteStream(`${plain}.gz`));
  await rm(plain);
}

async function sha256Of(file: string): Promise<string> {
  const hash = createHash('sha256');
  for await (const part of createReadStream(file)) hash.update(part as Buffer);
  return hash.digest('hex');
}

const { version, notes } = await checkedVersion();
const packages = productionPackages();
const refused = packages.filter(({ licence }) => !isAccepted(licence));
if (refused.length > 0) throw new Error(`licences that are not accepted: ${JSON.stringify(refused)}`);
say(audit());
await rm(folder, { recursive: true, force: true });
await mkdir(folder, { recursive: true });
const name = `tributary-${version}`;
const at = (suffix: string) => path.join(folder, `${name}${suffix}`);
const image = `${flags.registry}/tributary:${version}`;

say('Writing source, bill of materials and licences');
await writeFile(
  at('.tar.gz'),
  execFileSync('git', ['archive', '--format=tar.gz', `--prefix=${name}/`, 'HEAD'], {
    cwd: projectRoot,
    maxBuffer: 256e6,
  }),
);
await writeFile(at('.cdx.json'), billOfMaterials());
await writeFile(at('-licences.txt'), licencePage(packages));
await writeFile(at('-notes.md'), notes);
say('Writing the files of Compose and Kubernetes');
await writeDeployment(at('-deploy.tar.gz'), `${name}-deploy`, image);
say('Writing the packages of the SDKs');
await writeSdks(at('-sdks.tar.gz'), `${name}-sdks`);
if (!flags['without-image']) await writeImage(image, at(`-image-linux-${process.arch}`));

const sums: string[] = [];
for (const file of (await readdir(folder)).toSorted())
  sums.push(`${await sha256Of(path.join(folder, file))}  ${file}\n`);
await writeFile(path.join(folder, 'SHA256SUMS'), sums.join(''));
if (flags.tag && git('tag', '--list', `v${version}`) === '')
  git('tag', '--annotate', `v${version}`, '--message', `Tributary ${version}\n\n${notes}`);
say(
  `${path.relative(projectRoot, folder)}:\n${sums.join('')}Next: publish these files${flags.tag ? ' and the tag' : ''}, and push the image ${image}.`,
);
