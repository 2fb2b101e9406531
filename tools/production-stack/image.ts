import { execFile, spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { createHash, randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { cp, mkdir, readFile, rename } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { projectRoot } from '../../src/config/project-root.ts';
import { endWithThisProcess } from '../../src/embedded/processes.ts';
import { mountImage } from '../release/image.ts';
import { say } from '../run-tool.ts';

const run = promisify(execFile);
/** The user of the image. */
const IMAGE_USER = 1000;
/** The folder of the service in the image. */
const IMAGE_FOLDER = '/app';
const AS_THE_USER = `setpriv --reuid=${IMAGE_USER} --regid=${IMAGE_USER} --clear-groups --no-new-privs --bounding-set=-all "$@"`;

/** Makes every file of the machine read-only for a command, then takes all rights from it. */
const WITH_THE_FILES = `mount --make-rprivate / && mount -o remount,bind,ro / && cd "$0" && exec ${AS_THE_USER}`;

/** The same in the root file system of an image, with its own Node and libraries. */
const IN_THE_IMAGE = `mount --make-rprivate / && mount --bind "$0" "$0" && mount -t proc proc "$0/proc" && mount --rbind /dev "$0/dev" &&
  mount -o remount,bind,ro "$0" && cd "$0" && exec chroot . env --chdir=${IMAGE_FOLDER} ${AS_THE_USER}`;

/** Where the commands of the service run: an image, or the files that it would have. */
export interface Image {
  /** What is measured of it, for people. */
  readonly description: string;
  /** The variable PATH of its processes. */
  readonly PATH: string;
  /** Returns the program and arguments that run a command as in a container: its user, read-only files. */
  readonly command: (command: readonly string[]) => [string, string[]];
  readonly close: () => Promise<void>;
}

export interface RunningProcess {
  readonly child: ChildProcess;
  readonly ended: Promise<number | null>;
  readonly errors: () => string;
  /** The end of the log. */
  readonly lastLines: () => string;
}

/** Runs the command of the Dockerfile that installs the packages of the image, once for each lock file. Returns their folder. */
async function productionPackages(): Promise<string> {
  const dockerfile = await readFile(path.join(projectRoot, 'Dockerfile'), 'utf8');
  const [, install = ''] =
    /^RUN (?:--mount=\S+ |\\\n *|[A-Z_]+=\S+ )*(npm ci --omit=dev (?:.*\\\n)*.*)$/m.exec(dockerfile) ?? [];
  if (install === '') throw new Error('the Dockerfile has no "npm ci" without development packages');
  const lock = await readFile(path.join(projectRoot, 'package-lock.json'), 'utf8');
  const name = createHash('sha256').update(install).update(lock).digest('hex').slice(0, 16);
  const folder = path.join(projectRoot, '.cache/production-packages', name);
  if (existsSync(folder)) return folder;
  say('Installing the packages of the image');
  const unfinished = `${folder}-${randomUUID()}`;
  await mkdir(unfinished, { recursive: true });
  for (const file of ['package.json', 'package-lock.json', '.npmrc'])
    await cp(path.join(projectRoot, file), path.join(unfinished, file));
  await run('sh', ['-c', install], { cwd: unfinished });
  await rename(unfinished, folder);
  return folder;
}

/** Lays out the files that the last stage of the Dockerfile copies, readable by everybody. */
async function layOutImage(root: string): Promise<void> {
  const dockerfile = await readFile(path.join(projectRoot, 'Dockerfile'), 'utf8');
  const lastStage = dockerfile.slice(dockerfile.lastIndexOf('\nFROM '));
  const packages = await productionPackages();
  for (const [, stage, names = ''] of lastStage.matchAll(/^COPY (?:--from=(\w+) )?(.*)$/gm)) {
    const paths = names.split(' ');
    const target = paths.pop() ?? '';
    for (const name of paths) {
      const from = stage === 'packages' ? packages : projectRoot;
      const relative = name.replace(/^\/app\//, '');
      const to = target === './' ? path.join(root, path.basename(relative)) : path.join(root, target);
      await cp(path.join(from, relative), to, { recursive: true });
    }
  }
}

/**
 * Lays the files out that the image would have, without building it. Commands run with this machine's Node, and with the
 * rights of the image when this process is root: other users can't take them away.
 */
export async function filesOfTheImage(folder: string): Promise<Image> {
  await layOutImage(folder);
  const { stdout: size } = await run('du', ['-sm', folder]);
  const isRoot = process.getuid?.() === 0;
  return {
    description: `The files of the image have ${size.split('\t')[0]} MB`,
    PATH: process.env['PATH'] ?? '',
    command: (command) =>
      isRoot
        ? ['unshare', ['--mount', 'sh', '-c', WITH_THE_FILES, folder, ...command]]
        : ['env', [`--chdir=${folder}`, ...command]],
    close: async () => {},
  };
}

/** Mounts a built image (root only). Commands run with its own root file system. Throws if buildah does not have it. */
export async function builtImage(name: string): Promise<Image> {
  const { root, size, nodeVersion, unmount } = await mountImage(name);
  return {
    description: `The image ${name} has ${size} MB, with Node ${nodeVersion}`,
    PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
    command: (command) => ['unshare', ['--mount', 'sh', '-c', IN_THE_IMAGE, root, ...command]],
    close: unmount,
  };
}

/** Starts a command of the image in the background. It ends with this process. */
export function start(
  image: Image,
  command: readonly string[],
  environment: Readonly<Record<string, string>>,
): RunningProcess {
  const [program, args] = image.command(command);
  const env = { ...environment, PATH: image.PATH };
  const child = spawn(program, args, { env, stdio: ['ignore', 'pipe', 'pipe'] });
  const stopWatching = endWithThisProcess(child.pid ?? 0, 'TERM');
  let errors = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    errors = (errors + text).slice(-4_000);
  });
  let last = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    last = (last + text).slice(-4_000);
  });
  const ended = new Promise<number | null>((resolve) => {
    child.once('exit', (status) => {
      stopWatching();
      resolve(status);
    });
  });
  return { child, ended, errors: () => errors, lastLines: () => last };
}

/** Runs a command of the image, and returns what it prints. Rejects if it fails. */
export async function output(
  image: Image,
  command: readonly string[],
  environment: Readonly<Record<string, string>>,
): Promise<string> {
  const [program, args] = image.command(command);
  const { stdout } = await run(program, args, { env: { ...environment, PATH: image.PATH } });
  return stdout;
}
