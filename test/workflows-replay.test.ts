import { beforeAll, describe, expect, test } from '@jest/globals';
import { createHash } from 'node:crypto';
import { readFile, readdir } from 'node:fs/promises';
import path from 'node:path';
import { Worker } from '@temporalio/worker';
import { pino } from 'pino';
import { projectRoot } from '../src/config/project-root.ts';
import { ISOLATE } from '../temporal/isolate.ts';
import { installSdkRuntime } from '../temporal/sdk-runtime.ts';
import { workflowFiles } from './support/workflows-table.ts';

// The replays that must fail log their failures.
installSdkRuntime(pino({ level: 'silent' }));

const folder = path.join(projectRoot, 'test/fixtures/histories');
/** The folder of histories that a version between two releases has recorded, and today's code cannot. */
const BETWEEN = 'between';
/**
 * The folders of histories, oldest first: one per release, and `next` for the version that is not released yet. Histories of
 * releases are never changed: workflows of their shape may still be running.
 */
const releases = (await readdir(folder))
  .filter((name) => name !== BETWEEN)
  .toSorted((a, b) => (a === 'next' ? 1 : b === 'next' ? -1 : a.localeCompare(b, 'en', { numeric: true })));
const newest = releases.at(-1) ?? 'next';
const filesOf = async (release: string) =>
  (await readdir(path.join(folder, release))).map((name) => path.join(release, name));
const files = (await Promise.all([...releases, BETWEEN].map(filesOf))).flat();
const workflowBundle = { code: await readFile(path.join(projectRoot, 'dist/workflow-bundle.js'), 'utf8') };

const read = async (name: string) =>
  JSON.parse(await readFile(path.join(folder, name), 'utf8')) as { events: { eventType: string }[] };

/** Replays histories with one worker. Returns the errors of those that the code would now continue differently, by their names. */
async function replay(
  bundle: { readonly code: string },
  histories: readonly { readonly workflowId: string; readonly history: unknown }[],
): Promise<ReadonlyMap<string, Error>> {
  const errors = new Map<string, Error>();
  const results = Worker.runReplayHistories({ workflowBundle: bundle, ...ISOLATE }, histories);
  let count = 0;
  for await (const { workflowId, error } of results) {
    count += 1;
    if (error !== undefined) errors.set(workflowId, error);
  }
  expect(count).toBe(histories.length);
  return errors;
}

/** Replays recorded histories, by the names of their files. */
const replayFiles = async (bundle: { readonly code: string }, names: readonly string[]) =>
  await replay(
    bundle,
    await Promise.all(names.map(async (name) => ({ workflowId: name, history: await read(name) }))),
  );

/** Reads a history of the newest folder by the name of its branch. */
const readNewest = async (branch: string) => await read(path.join(newest, `${branch}.json`));

/** The histories of each release with the SHA-256 of their names and bytes. A release is added here, and never changed. */
const FROZEN: Readonly<Record<string, string>> = {
  '0.1.0': 'a6ce0eda9b1bc28c0e46272db00eb15f1245d6c1eafa7522188da7e86231d3f0',
};

// @promise histories-frozen
test.each(Object.entries(FROZEN))(
  'the recorded histories of release %s are unchanged',
  async (release, sha256) => {
    const hash = createHash('sha256');
    for (const name of (await filesOf(release)).toSorted()) {
      hash.update(`${path.basename(name)}\n`).update(await readFile(path.join(folder, name)));
    }
    expect(hash.digest('hex')).toBe(sha256);
  },
);

test('every folder of histories but the one of the next release is frozen', () => {
  expect(releases.filter((release) => release !== 'next')).toEqual(Object.keys(FROZEN));
});

/** The histories of branches that nothing in the code of a workflow names. */
const BRANCHES = [
  'delivery-happy',
  'delivery-duplicate',
  'delivery-ignored',
  'delivery-fallback',
  // A step had to wait, so the others ran in one local activity.
  'delivery-quick-after-waiting',
  'delivery-without-search-attribute',
  // A delivery whose fast path fails and that ends before the last step.
  'delivery-ends-at-verify',
  'delivery-ends-at-store-raw',
  'delivery-ends-at-normalize',
  'delivery-ends-at-dedupe',
  'hold-matured',
  'hold-fallback',
  'heal',
  'heal-two-pages',
  'payout-one-request',
  'payout-several-requests',
  'sweep',
  'sweep-two-pages',
  'retention',
  'rates-imported',
  'rates-failed',
  'calendar',
  // A step failed, and the one after it was done.
  'calendar-step-fails',
  'convert',
  'convert-two-pages',
  'reprocess',
  'erase',
  'email-sent',
  'email-retried',
  'webhook-delivered',
  'webhook-retried',
];

/**
 * Returns the histories that a workflow needs by its code: one with its name, unless its branches are listed; that of its fallback;
 * the first run that continues as new and the last one.
 */
async function neededHistories(workflow: string): Promise<string[]> {
  const code = await readFile(path.join(projectRoot, `workflows/${workflow}.ts`), 'utf8');
  const isListed = BRANCHES.some((name) => name === workflow || name.startsWith(`${workflow}-`));
  return [
    ...(isListed ? [] : [workflow]),
    ...(code.includes('new Fallback(') ? [`${workflow}-fallback`] : []),
    ...(code.includes('continueAsNew<') ? [`${workflow}-continued`, `${workflow}-continued-last-run`] : []),
  ];
}

/** Changes of workflow code that break running workflows, as texts of the bundle and what replaces them. */
const BREAKING: readonly (readonly [what: string, workflow: string, from: string, to: string])[] = [
  [
    "another activity in a payout's fallback",
    'payout',
    '()=>untilDone.settlePayoutRequest(requestId)',
    'async ()=>{ await untilDone.matureCommission(requestId); return await untilDone.settlePayoutRequest(requestId); }',
  ],
  [
    "one more activity after a heal's first page",
    'heal',
    'if (from === null) return {',
    'if (from !== null && done === 1) await untilDone.matureCommission(bindingId);\n        if (from === null) return {',
  ],
  [
    'one more activity in a delivery that ends early',
    'delivery',
    'fallback.markHealed(step, cause);',
    "{ if (step.name !== 'writeCommission') await steps.storeRaw(deliveryId); fallback.markHealed(step, cause); }",
  ],
  [
    'the fast path after a step that had to wait, for deliveries that began without it',
    'delivery',
    "(0,_temporalio_workflow__WEBPACK_IMPORTED_MODULE_0__.patched)('quickly-after-waiting')",
    'true',
  ],
];

/** Returns the bundle with a change in one place. */
function changed(from: string, to: string): { code: string } {
  expect(workflowBundle.code.split(from)).toHaveLength(2);
  return { code: workflowBundle.code.replace(from, () => to) };
}

/** Returns the recorded branches of a workflow that a bundle does not replay. */
async function brokenBranches(bundle: { code: string }, workflow: string): Promise<string[]> {
  const names = files.filter((file) => path.basename(file).startsWith(workflow));
  return [...(await replayFiles(bundle, names)).keys()].map((name) => path.basename(name, '.json'));
}

describe('recorded histories', () => {
  test('the newest folder has a recorded history of every workflow and branch, and no other', async () => {
    const needed = await Promise.all(workflowFiles().map(async ({ file }) => await neededHistories(file)));
    const names = (await filesOf(newest)).map((name) => path.basename(name, '.json'));
    expect(names.toSorted()).toEqual([...new Set([...BRANCHES, ...needed.flat()])].toSorted());
  });

  describe("today's code", () => {
    let errors: ReadonlyMap<string, Error>;
    beforeAll(async () => {
      errors = await replayFiles(workflowBundle, files);
    });

    test.each(files)('replays the history %s', (name) => {
      expect(errors.get(name)).toBeUndefined();
    });
  });

  test('running workflows replay when tracing is switched on', async () => {
    const code = await readFile(path.join(projectRoot, 'dist/workflow-bundle-tracing.js'), 'utf8');
    expect(await brokenBranches({ code }, 'delivery-fallback')).toEqual([]);
    expect(await brokenBranches({ code }, 'payout-several')).toEqual([]);
  });

  test('a history that does not match the code fails to replay', async () => {
    const history = await readNewest('delivery-fallback');
    const at = history.events.findIndex((event) => event.eventType === 'EVENT_TYPE_ACTIVITY_TASK_SCHEDULED');
    const scheduled = history.events[at] as {
      activityTaskScheduledEventAttributes?: { activityType?: { name: string } };
    };
    scheduled.activityTaskScheduledEventAttributes!.activityType!.name = 'somethingElse';
    const errors = await replay(workflowBundle, [{ workflowId: 'changed', history }]);
    expect([...errors.keys()]).toEqual(['changed']);
  });

  // @promise breaking-changes-noticed
  test.each(BREAKING)('a breaking change turns a history red: %s', async (_, workflow, from, to) => {
    expect(await brokenBranches(changed(from, to), workflow)).not.toEqual([]);
  });

  // @promise breaking-changes-noticed
  test('the same change behind patched() replays every history', async () => {
    const [, workflow, from, to] = BREAKING[2]!;
    const patched = '(0,_temporalio_workflow__WEBPACK_IMPORTED_MODULE_0__.patched)';
    const guarded = to.replace('if (', `if (${patched}('store-again') && `);
    expect(await brokenBranches(changed(from, guarded), workflow)).toEqual([]);
  });

  test('no module of the workflow code has state, since all workflows of a worker share its modules', async () => {
    const [, map = ''] = workflowBundle.code.split(
      '//# sourceMappingURL=data:application/json;charset=utf-8;base64,',
    );
    const { sources } = JSON.parse(Buffer.from(map, 'base64').toString()) as { sources: string[] };
    const own = sources.filter(
      (file) => /\/(workflows|src|activities)\/.*\.ts$/.test(file) && !file.includes('/node_modules/'),
    );
    expect(own.length).toBeGreaterThan(15);
    for (const file of own) {
      const code = await readFile(file, 'utf8');
      expect([file, code.match(/^(export )?(let|var) .*|^(export )?const .*= (new |\[\]|\{\}).*/gm)]).toEqual(
        [file, null],
      );
    }
  });

  test('a hold timer matures its commission in its first workflow task, without a regular activity', async () => {
    const types = (await readNewest('hold-matured')).events.map(({ eventType }) => eventType);
    expect(types.filter((type) => type === 'EVENT_TYPE_WORKFLOW_TASK_COMPLETED')).toHaveLength(1);
    expect(types).not.toContain('EVENT_TYPE_ACTIVITY_TASK_SCHEDULED');
  });

  // @promise sweep-whole-backlog
  test('a sweep runs page by page until no overdue commission is left', async () => {
    const { events } = await readNewest('sweep-two-pages');
    const pages = events.filter(({ eventType }) => eventType === 'EVENT_TYPE_ACTIVITY_TASK_SCHEDULED');
    expect(pages).toHaveLength(2);
  });

  test('histories contain no user ids, bodies or keys', async () => {
    for (const name of files) {
      const text = await readFile(path.join(folder, name), 'utf8');
      const payloads = [...text.matchAll(/"data":\s*"([A-Za-z0-9+/=]+)"/g)].map(([, data]) =>
        Buffer.from(data ?? '', 'base64').toString(),
      );
      expect(payloads.filter((payload) => /user-|Bearer|whsec|pk_live|sk_live|@/.test(payload))).toEqual([]);
    }
  });
});
