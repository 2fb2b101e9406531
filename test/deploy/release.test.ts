import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { parse } from 'yaml';
import { projectRoot } from '../../src/config/project-root.ts';
import { isNewer, notesOf, withRelease } from '../../tools/release/changelog.ts';
import { problemsOfConfig, problemsOfFiles } from '../../tools/release/check-image.ts';
import type { ImageFile } from '../../tools/release/check-image.ts';
import { pinnedCompose, pinnedKustomization } from '../../tools/release/deployment.ts';
import { textOf } from '../support/text-of.ts';

describe('the changelog', () => {
  const changelog = '# Changelog\n\n## Unreleased\n\n- New.\n\n## 0.2.0, 2026-11-01\n\n- Old.\n';

  test('has the notes of the version of the package, and a heading for what is not released', () => {
    const { version } = JSON.parse(textOf('package.json')) as { version: string };
    expect(notesOf(textOf('CHANGELOG.md'), version)).not.toBe('');
    expect(textOf('CHANGELOG.md')).toContain('\n## Unreleased\n');
  });

  test('a release moves what is not released below its version and date', () => {
    const released = withRelease(changelog, '0.10.0', '2026-11-27');
    expect(released).toBe(
      '# Changelog\n\n## Unreleased\n\n## 0.10.0, 2026-11-27\n\n- New.\n\n## 0.2.0, 2026-11-01\n\n- Old.\n',
    );
    expect(notesOf(released, '0.10.0')).toBe('- New.\n');
    expect(notesOf(released, '0.2.0')).toBe('- Old.\n');
  });

  test('a release without notes is refused, and so is one that is not newer than the last', () => {
    const released = withRelease(changelog, '0.3.0', '2026-11-27');
    expect(() => withRelease(released, '0.4.0', '2026-11-28')).toThrow('lists nothing');
    expect(() => withRelease(changelog, '0.2.0', '2026-11-27')).toThrow('not newer than 0.2.0');
    expect(() => notesOf(changelog, '0.3.0')).toThrow('no heading "## 0.3.0');
    expect([isNewer('0.10.0', '0.9.9'), isNewer('1.0.0', '1.0.0'), isNewer('0.9.9', '1.0.0')]).toEqual([
      true,
      false,
      false,
    ]);
  });
});

describe('the files of a deployment that a release contains', () => {
  const image = 'registry.example.com/tributary:0.2.0';

  test('Compose starts the image of the release, and builds nothing', () => {
    const compose = pinnedCompose(textOf('docker-compose.yml'), image);
    expect(compose.match(/\$\{TRIBUTARY_IMAGE:-[^}]+\}/g)).toEqual(
      Array.from({ length: 2 }, () => `\${TRIBUTARY_IMAGE:-${image}}`),
    );
    expect(compose).not.toMatch(/^ +build:/m);
  });

  test('Kubernetes runs the image of the release, also from a registry with a port', () => {
    const text = textOf('deploy/kubernetes/kustomization.yaml');
    expect(pinnedKustomization(text, image)).toContain(
      'newName: registry.example.com/tributary\n    newTag: 0.2.0\n',
    );
    expect(pinnedKustomization(text, 'localhost:5000/tributary:1.0.0')).toContain(
      'newName: localhost:5000/tributary\n    newTag: 1.0.0\n',
    );
  });
});

describe('the image', () => {
  const imageFile = (name: string, over: Partial<ImageFile> = {}): ImageFile => ({
    path: name,
    bytes: 1_000,
    mode: 0o644,
    uid: 0,
    isLink: false,
    ...over,
  });
  const good = [
    imageFile('dist/src/main.js'),
    imageFile('src/db/migrations/0001_tracking.sql'),
    imageFile('node_modules/koa/index.js'),
    imageFile('node_modules/@temporalio/worker/lib/index.js'),
    imageFile('node_modules/.bin/pino', { isLink: true, mode: 0o777 }),
  ];
  const packages = new Set(['koa', '@temporalio/worker']);

  test('with what the service needs is as it should be', () => {
    expect(problemsOfFiles(good, packages)).toEqual([]);
  });

  test.each<[string, Partial<ImageFile> & { readonly path: string }]>([
    ['source code', { path: 'src/main.ts' }],
    ['source code', { path: 'node_modules/koa/index.d.ts' }],
    ['a source map', { path: 'node_modules/koa/index.js.map' }],
    ['a test or a tool', { path: 'dist/test/support/service.js' }],
    ['settings with passwords', { path: '.env' }],
    ['settings with passwords', { path: 'console/.npmrc' }],
    ['a private key', { path: 'deploy/server.key' }],
    ['history', { path: '.git/HEAD' }],
    ['another system', { path: 'node_modules/koa/bin/tool.exe' }],
    ['rights of its owner', { path: 'dist/src/main.js', mode: 0o4755 }],
    ['can write it', { path: 'dist/src/main.js', mode: 0o646 }],
    ['can write it', { path: 'dist/src/main.js', uid: 1000 }],
    ['no package of production', { path: 'node_modules/jest/index.js' }],
    ['no package of production', { path: 'node_modules/@jest/globals/index.js' }],
    ['more than', { path: 'dist/src/data.js', bytes: 2 ** 30 }],
  ])('is refused with %s', (problem, { path: name, ...over }) => {
    expect(problemsOfFiles([...good, imageFile(name, over)], packages)).toEqual([
      expect.stringContaining(problem),
    ]);
  });

  test('is built of what the Dockerfile copies', () => {
    const copied = [...textOf('Dockerfile').matchAll(/^COPY (\w+) \.\/\1$/gm)].map(([, name]) => name ?? '');
    const { include } = JSON.parse(textOf('tools/tsconfig.service.json')) as { include: string[] };
    const args = ['--listFilesOnly', '--project', path.join(projectRoot, 'tools/tsconfig.service.json')];
    const compiled = execFileSync(path.join(projectRoot, 'node_modules/.bin/tsc'), args, { encoding: 'utf8' })
      .trim()
      .split('\n')
      .map((file) => path.relative(projectRoot, file));
    const own = compiled.filter((file) => !file.startsWith('node_modules/'));
    expect(include.every((folder) => copied.includes(path.basename(folder)))).toBe(true);
    expect(own.length).toBeGreaterThan(300);
    expect(own.filter((file) => !copied.includes(file.split('/')[0] ?? ''))).toEqual([]);
  });

  test('is refused when it runs as root, starts something else, or has a password among its settings', () => {
    const config = {
      User: '1000:1000',
      Cmd: ['node', '--enable-source-maps', 'dist/src/main.js'],
      ExposedPorts: { '3000/tcp': {} },
      Healthcheck: { Test: ['CMD', 'node', 'deploy/health-check.mjs'] },
      Env: ['PATH=/bin', 'NODE_ENV=production'],
    };
    expect(problemsOfConfig(config)).toEqual([]);
    expect(problemsOfConfig({ ...config, User: '' })).toEqual(['its user is "", not 1000:1000']);
    expect(problemsOfConfig({ ...config, Cmd: ['sh'] })).toEqual(['it starts "sh"']);
    expect(problemsOfConfig({ ...config, Env: ['SECRETS_KEY=x'] })).toEqual([
      'its environment has SECRETS_KEY',
    ]);
    expect(problemsOfConfig({})).toHaveLength(4);
  });
});

const WORKFLOWS = '.github/workflows';

describe.each(readdirSync(path.join(projectRoot, WORKFLOWS)))('the workflow %s of the hosted CI', (name) => {
  interface Job {
    readonly 'timeout-minutes'?: number;
    readonly steps: readonly { readonly run?: string; readonly uses?: string }[];
  }
  const { jobs, permissions } = parse(textOf(`${WORKFLOWS}/${name}`)) as {
    jobs: Readonly<Record<string, Job>>;
    permissions: object;
  };
  const steps = Object.values(jobs).flatMap((job) => job.steps);
  const commands = steps.flatMap(({ run }) => run ?? []);

  test('runs scripts of the repository that exist', () => {
    const { scripts } = JSON.parse(textOf('package.json')) as { scripts: Readonly<Record<string, string>> };
    const called = commands.flatMap((command) =>
      [...command.matchAll(/npm run (\S+)/g)].map(([, script]) => script),
    );
    expect(called.filter((script) => script === undefined || !(script in scripts))).toEqual([]);
    const files = commands.flatMap((command) =>
      [...command.matchAll(/(?<=\s)\.ci\/\S+/g)].map(([file]) => file),
    );
    expect(files.filter((file) => !existsSync(path.join(projectRoot, file)))).toEqual([]);
    expect(
      called.length + files.length + commands.filter((command) => command === 'npm cit').length,
    ).toBeGreaterThan(1);
  });

  test('states its rights, and ends jobs that hang', () => {
    expect(permissions).toBeDefined();
    expect(Object.values(jobs).filter((job) => job['timeout-minutes'] === undefined)).toEqual([]);
  });
});
