import { execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { projectRoot } from '../../src/config/project-root.ts';

const run = promisify(execFile);

/** What an installation with containers needs beside the image. */
const FILES = ['docker-compose.yml', '.env.example', 'deploy', 'LICENSE', 'docs/deploy.md'] as const;

/** Replaces a text that must be there once. */
function replaced(text: string, from: string, to: string): string {
  if (text.split(from).length !== 2) throw new Error(`"${from}" is not there once`);
  return text.replace(from, to);
}

/** Returns docker-compose.yml with the image of a release as the default, and without the build of the checkout. */
export function pinnedCompose(text: string, image: string): string {
  const pinned = text.replaceAll('${TRIBUTARY_IMAGE:-tributary:local}', `\${TRIBUTARY_IMAGE:-${image}}`);
  if (pinned === text) throw new Error('docker-compose.yml has no image of the service');
  return pinned.replaceAll(/^ +build: \.\n/gm, '');
}

/** Returns the kustomization with the image of a release, such as `registry.example.com/tributary:0.2.0`. */
export function pinnedKustomization(text: string, image: string): string {
  const [, name = '', tag = ''] = /^(.+):([^:/]+)$/.exec(image) ?? [];
  const named = replaced(text, 'newName: registry.example.com/tributary', `newName: ${name}`);
  return named.replace(/newTag: \S+/, `newTag: ${tag}`);
}

/** Writes the archive of the files of Compose and Kubernetes, which name the image of a release. `name` is the folder in it. */
export async function writeDeployment(file: string, name: string, image: string): Promise<void> {
  const folder = await mkdtemp(path.join(tmpdir(), 'tributary-deployment-'));
  try {
    const root = path.join(folder, name);
    await mkdir(root);
    for (const part of FILES)
      await cp(path.join(projectRoot, part), path.join(root, part), { recursive: true });
    const edit = async (part: string, change: (text: string, image: string) => string) => {
      const at = path.join(root, part);
      await writeFile(at, change(await readFile(at, 'utf8'), image));
    };
    await edit('docker-compose.yml', pinnedCompose);
    await edit('deploy/kubernetes/kustomization.yaml', pinnedKustomization);
    // Equal files give an equal archive.
    const options = [
      '--sort=name',
      '--owner=0',
      '--group=0',
      '--numeric-owner',
      '--mtime=@0',
      '--mode=u=rwX,go=rX',
    ];
    await run('tar', ['-C', folder, ...options, '-czf', file, name], { env: { ...process.env, GZIP: '-n' } });
  } finally {
    await rm(folder, { recursive: true });
  }
}
