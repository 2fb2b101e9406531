import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { projectRoot } from '../../src/config/project-root.ts';
import { PROVIDER_NAMES } from '../../src/providers/index.ts';
import { setUpFounder } from '../support/founder.ts';
import { isPrinted, readBlocks, runBlocks } from '../support/runnable-page.ts';
import type { PageBlock } from '../support/runnable-page.ts';
import { startTestService, TEST_SECRETS_KEY, temporalAddress } from '../support/service.ts';
import type { TestService } from '../support/service.ts';

/**
 * An `npm` whose `npm run -s admin` is the built command line: it starts in a quarter of the time. The commands of
 * docs/start.md run with the real one.
 */
const NPM = `#!/bin/sh
if [ "$1 $2 $3 $4" = 'run -s admin --' ]; then
  shift 4
  exec "${process.execPath}" dist/src/cli/main.js "$@"
fi
PATH="\${PATH#*:}"
exec npm "$@"
`;

let service: TestService;
let folder: string;

beforeAll(async () => {
  service = await startTestService();
  folder = await mkdtemp(path.join(tmpdir(), 'tributary-pages-'));
  await mkdir(path.join(folder, 'bin'));
  await writeFile(path.join(folder, 'bin/npm'), NPM, { mode: 0o755 });
});
afterAll(async () => {
  await service.close();
  await rm(folder, { recursive: true, force: true });
});

const pages = [
  'README.md',
  ...(await readdir(path.join(projectRoot, 'docs'), { recursive: true }))
    .filter((name) => name.endsWith('.md'))
    .toSorted()
    .map((name) => `docs/${name}`),
];
const runnable: (readonly [page: string, blocks: readonly PageBlock[]])[] = [];
for (const page of pages) {
  const blocks = await readBlocks(page);
  if (blocks.length > 0) runnable.push([page, blocks] as const);
}

test('the pages for a first start, founders, operators, engineers and providers have runnable commands', () => {
  expect(runnable.map(([page]) => page)).toEqual(
    expect.arrayContaining([
      'docs/engineers.md',
      'docs/founders.md',
      'docs/operators.md',
      'docs/providers.md',
      'docs/start.md',
      'docs/tasks.md',
      ...PROVIDER_NAMES.map((name) => `docs/providers/${name}.md`),
    ]),
  );
});

test.each(runnable)(
  'the commands of %s run and print the documented output',
  async (page, blocks) => {
    const { key, app } = await setUpFounder(service);
    const { status, stderr, outputs } = await runBlocks(blocks, {
      API: service.url,
      KEY: key,
      APP: app.id,
      DATABASE_URL: service.database.url,
      SECRETS_KEY: TEST_SECRETS_KEY.toString('base64'),
      TEMPORAL_ADDRESS: temporalAddress(),
      OUT: folder,
      ...(page === 'docs/start.md' ? {} : { PATH: `${path.join(folder, 'bin')}:${process.env['PATH']}` }),
    });
    const failed = blocks[outputs.length - 1];
    if (status !== 0) throw new Error(`${page}, line ${failed?.line}: ${stderr}\n${outputs.at(-1)}`);
    for (const [index, { line, printed }] of blocks.entries()) {
      const output = outputs[index] ?? '';
      if (printed !== null && !isPrinted(output, printed)) {
        throw new Error(`${page}, line ${line} says:\n${printed}\nbut prints:\n${output}`);
      }
    }
  },
  180_000,
);
