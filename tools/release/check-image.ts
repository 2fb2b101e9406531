import { lstat, readdir, readlink } from 'node:fs/promises';
import path from 'node:path';
import { say } from '../run-tool.ts';
import { productionPackages } from './files.ts';
import { baseImage, buildImage, mountImage } from './image.ts';
import type { ImageConfig, MountedImage } from './image.ts';

/** The most that the files of the service and those of the whole image may take, in MB (2^20 bytes). */
export const MOST_MB = { service: 180, image: 480 } as const;

/** The user and the group of the processes. */
const USER = 1000;

/** A file of the service, relative to its folder in the image. */
export interface ImageFile {
  readonly path: string;
  readonly bytes: number;
  /** The permission bits of `stat`. */
  readonly mode: number;
  readonly uid: number;
  readonly isLink: boolean;
}

/** Kinds of files that nobody needs at run time, or that tell a secret, and how to know one. */
const UNWANTED: Readonly<Record<string, RegExp>> = {
  'source code, or a source map of it': /^node_modules\/.*\.map$|\.[cm]?ts$/,
  'a test or a tool of development': /^(?:dist\/)?(?:test|tools|console\/test)\//,
  'settings with passwords': /(?:^|\/)(?:\.env(?:\..*)?|\.npmrc|\.netrc)$/,
  'a private key': /\.(?:key|p12|pfx)$|(?:^|\/)id_(?:rsa|ed25519)$/,
  'history of the repository': /(?:^|\/)\.git(?:\/|$)/,
  'a program for another system': /\.(?:exe|dll|dylib)$|-(?:darwin|windows|win32)(?:-|\/)/,
  'state of a build': /\.tsbuildinfo$/,
};

/** Returns what is wrong with the files of the service, a line each. `packages` has the names that `node_modules` may have. */
export function problemsOfFiles(files: readonly ImageFile[], packages: ReadonlySet<string>): string[] {
  const unwanted = files.flatMap(({ path: file }) =>
    Object.entries(UNWANTED).flatMap(([kind, pattern]) => (pattern.test(file) ? [`${file}: ${kind}`] : [])),
  );
  const rights = files.flatMap(({ path: file, mode, uid, isLink }) => {
    if (isLink) return [];
    if ((mode & 0o6000) !== 0) return [`${file}: runs with the rights of its owner`];
    const isWritable = (mode & 0o002) !== 0 || (uid === USER && (mode & 0o200) !== 0);
    return isWritable ? [`${file}: the service can write it`] : [];
  });
  const installed = new Set(
    files.flatMap(({ path: file }) => /^node_modules\/((?:@[^/]+\/)?[^./@][^/]*)\//.exec(file)?.[1] ?? []),
  );
  const further = [...installed].filter((name) => !packages.has(name));
  const megabytes = files.reduce((sum, { bytes }) => sum + bytes, 0) / 2 ** 20;
  return [
    ...unwanted,
    ...rights,
    ...further.map((name) => `node_modules/${name}: no package of production`),
    ...(megabytes > MOST_MB.service
      ? [`the service has ${megabytes.toFixed(0)} MB, more than ${MOST_MB.service}`]
      : []),
  ];
}

/** Returns what is wrong with the settings of the image, a line each. */
export function problemsOfConfig({
  User,
  Env = [],
  Cmd = [],
  ExposedPorts = {},
  Healthcheck,
}: ImageConfig): string[] {
  const secrets = Env.filter((entry) => /KEY|SECRET|PASSWORD|TOKEN/i.test(entry.split('=')[0] ?? ''));
  return [
    ...(User === `${USER}:${USER}` ? [] : [`its user is "${User ?? ''}", not ${USER}:${USER}`]),
    ...(Cmd.join(' ').includes('dist/src/main.js') ? [] : [`it starts "${Cmd.join(' ')}"`]),
    ...('3000/tcp' in ExposedPorts ? [] : ['it does not expose the port 3000']),
    ...(Healthcheck === undefined ? ['it has no health check'] : []),
    ...secrets.map((entry) => `its environment has ${entry.split('=')[0]}`),
  ];
}

/** Lists the files below a folder, except for folders themselves. */
async function listFiles(folder: string): Promise<readonly ImageFile[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => !entry.isDirectory());
  return await Promise.all(
    files.map(async (entry) => {
      const file = path.join(entry.parentPath, entry.name);
      const { size, mode, uid } = await lstat(file);
      return { path: path.relative(folder, file), bytes: size, mode, uid, isLink: entry.isSymbolicLink() };
    }),
  );
}

/** Files outside of the service's folder that a build may leave behind. */
const LEFT_BEHIND = ['root/.npm', 'root/.npmrc', 'run/secrets', 'app/console/node_modules', 'tmp'] as const;

/** Returns what is wrong with a mounted image, a line each: its files, rights, packages, size, settings, and its Node. */
export async function problemsOfImage({ root, size, nodeVersion, config }: MountedImage): Promise<string[]> {
  const files = await listFiles(path.join(root, 'app'));
  const packages = new Set(productionPackages().map(({ name }) => name));
  const left = await Promise.all(
    LEFT_BEHIND.map(async (name) => {
      const found = await readdir(path.join(root, name)).catch((error: NodeJS.ErrnoException) =>
        error.code === 'ENOENT' ? [] : [error.code ?? ''],
      );
      return found.length === 0 ? [] : [`/${name}: the build has left ${found.slice(0, 3).join(', ')}`];
    }),
  );
  const wanted = /:(\d+\.\d+\.\d+)/.exec(await baseImage())?.[1];
  const command = await readlink(path.join(root, 'usr/local/bin/tributary')).catch(() => undefined);
  return [
    ...problemsOfFiles(files, packages),
    ...problemsOfConfig(config),
    ...left.flat(),
    ...(nodeVersion === `v${wanted}` ? [] : [`its Node is ${nodeVersion}, not ${wanted}`]),
    ...(command === '/app/dist/src/cli/main.js' ? [] : ['the command "tributary" is missing']),
    ...(size > MOST_MB.image ? [`it has ${size} MB, more than ${MOST_MB.image}`] : []),
  ];
}

/** Builds an image and checks it. Throws with what is wrong, a line each. */
export async function buildCheckedImage(name: string, ownBase: boolean): Promise<void> {
  await buildImage(name, { ownBase, say });
  const image = await mountImage(name);
  try {
    const problems = await problemsOfImage(image);
    if (problems.length > 0)
      throw new Error(`the image ${name} is not as it should be:\n${problems.join('\n')}`);
    say(
      `The image ${name} has ${image.size} MB, with Node ${image.nodeVersion}, and nothing that it must not contain`,
    );
  } finally {
    await image.unmount();
  }
}
