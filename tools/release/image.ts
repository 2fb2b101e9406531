import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { projectRoot } from '../../src/config/project-root.ts';

const run = promisify(execFile);
const MAX_BUFFER = 64e6;
const INSTALL = 'apt-get install buildah netavark debootstrap';
/** How much of the output of a program that failed is shown. */
const OUTPUT_LINES = 30;

/** Runs a program in the root of the project, and returns what it prints. Throws with the end of its output if it fails. */
async function outputOf(program: string, ...args: readonly string[]): Promise<string> {
  const { stdout } = await run(program, args, { cwd: projectRoot, maxBuffer: MAX_BUFFER }).catch(
    (error: Error & { code?: unknown; stdout?: string; stderr?: string }) => {
      if (error.code === 'ENOENT') throw new Error(`${program} is missing: ${INSTALL}`);
      const output = `${error.stdout ?? ''}${error.stderr ?? ''}`.trim().split('\n').slice(-OUTPUT_LINES);
      throw new Error(`${program} ${args[0] ?? ''} failed:\n${output.join('\n')}`);
    },
  );
  return stdout.trim();
}

const buildah = async (...args: readonly string[]) => await outputOf('buildah', ...args);

/** Returns the base image that the Dockerfile names. */
export async function baseImage(): Promise<string> {
  const dockerfile = await readFile(path.join(projectRoot, 'Dockerfile'), 'utf8');
  const [, name] = /^FROM (\S+)/m.exec(dockerfile) ?? [];
  if (name === undefined) throw new Error('the Dockerfile has no FROM');
  return name;
}

const hasImage = async (name: string) =>
  await buildah('inspect', '--type', 'image', name).then(
    () => true,
    () => false,
  );

/**
 * Builds the image `name` from the Dockerfile with buildah, as root, without a daemon. With `ownBase`, its base is made of packages
 * where buildah does not have it; otherwise it comes from the registry of images.
 */
export async function buildImage(
  name: string,
  { ownBase, say }: { readonly ownBase: boolean; readonly say: (line: string) => void },
): Promise<void> {
  const base = await baseImage();
  if (ownBase && !(await hasImage(`localhost/${base}`))) {
    say(`Making the base image ${base} from packages`);
    await outputOf('tools/release/node-image.sh', base);
  }
  say(`Building ${name}`);
  const folder = await mkdtemp(path.join(tmpdir(), 'tributary-image-'));
  try {
    const secrets = await npmSecrets(folder);
    await buildah(
      'build',
      '--isolation=chroot',
      '--format=docker',
      '--layers=false',
      ...(ownBase ? ['--pull=never'] : []),
      ...secrets.map(({ id, file }) => `--secret=id=${id},src=${file}`),
      `--tag=${name}`,
      '.',
    );
  } finally {
    await rm(folder, { recursive: true });
  }
}

const npmSetting = async (name: string) => await outputOf('npm', 'config', 'get', name);

/** Returns the secrets of the Dockerfile that npm needs here: the registry and the certificates of this machine. */
async function npmSecrets(
  folder: string,
): Promise<readonly { readonly id: string; readonly file: string }[]> {
  const registry = await npmSetting('registry');
  const cafile = await npmSetting('cafile');
  // npm says "null" for what is not set.
  const certificates = cafile === 'null' ? process.env['NODE_EXTRA_CA_CERTS'] : cafile;
  const npmrc = path.join(folder, 'npmrc');
  const trusted = certificates === undefined ? '' : 'cafile=/run/secrets/ca\n';
  await writeFile(npmrc, `registry=${registry}\n${trusted}`);
  const ca = certificates === undefined ? [] : [{ id: 'ca', file: certificates }];
  return [{ id: 'npmrc', file: npmrc }, ...ca];
}

/** The settings of an image that a container starts with. */
export interface ImageConfig {
  readonly User?: string;
  readonly Env?: readonly string[];
  readonly Cmd?: readonly string[];
  readonly ExposedPorts?: Readonly<Record<string, object>>;
  readonly Healthcheck?: { readonly Test: readonly string[] };
}

export interface MountedImage {
  /** The folder of its root file system. */
  readonly root: string;
  /** The space that its files take, in MB (2^20 bytes). */
  readonly size: number;
  readonly nodeVersion: string;
  readonly config: ImageConfig;
  readonly unmount: () => Promise<void>;
}

/** Mounts the root file system of an image that buildah has, as root. */
export async function mountImage(name: string): Promise<MountedImage> {
  const inspected = await buildah('inspect', '--type', 'image', name).catch((error: unknown) => {
    throw new Error(`buildah has no image ${name}: build it with "npm run image"`, { cause: error });
  });
  const { Docker } = JSON.parse(inspected) as { Docker: { config: ImageConfig } };
  const container = await buildah('from', '--pull=never', name);
  const unmount = async () => void (await buildah('rm', container));
  try {
    const root = await buildah('mount', container);
    const size = await outputOf('du', '-sm', root);
    const nodeVersion = await outputOf('chroot', root, '/usr/local/bin/node', '--version');
    return {
      root,
      size: Number(size.split('\t')[0]),
      nodeVersion,
      config: Docker.config,
      unmount,
    };
  } catch (error) {
    await unmount();
    throw error;
  }
}

/** Writes an image as an archive that `docker load` and `podman load` read. */
export async function saveImage(name: string, file: string): Promise<void> {
  await buildah('push', '--quiet', name, `docker-archive:${file}:${name}`);
}
