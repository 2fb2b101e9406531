import { existsSync, readFileSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { bundleWorkflowCode } from '@temporalio/worker';
import type { WorkflowBundle } from '@temporalio/worker';
import { projectRoot } from '../src/config/project-root.ts';

/** The bundle that `npm run build` writes. */
const BUILT_BUNDLE = path.join(projectRoot, 'dist/workflow-bundle.js');

/** Bundles the workflows from source. Takes seconds: call it at most once per process. */
export async function bundleWorkflows(): Promise<WorkflowBundle> {
  const quiet = { trace() {}, debug() {}, info() {}, warn: console.warn, error: console.error, log() {} };
  return await bundleWorkflowCode({
    workflowsPath: path.join(projectRoot, 'workflows/index.ts'),
    logger: quiet,
  });
}

/** Returns the bundle of the build that this file is part of, or a new one when it runs from source. */
export async function loadWorkflowBundle(): Promise<WorkflowBundle> {
  const runsFromBuild = fileURLToPath(import.meta.url).startsWith(path.join(projectRoot, 'dist') + path.sep);
  if (runsFromBuild && existsSync(BUILT_BUNDLE)) return { code: readFileSync(BUILT_BUNDLE, 'utf8') };
  return await bundleWorkflows();
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { code } = await bundleWorkflows();
  await mkdir(path.dirname(BUILT_BUNDLE), { recursive: true });
  await writeFile(BUILT_BUNDLE, code);
}
