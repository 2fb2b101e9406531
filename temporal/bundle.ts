import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { bundleWorkflowCode } from '@temporalio/worker';
import type { WorkflowBundle } from '@temporalio/worker';
import { projectRoot } from '../src/config/project-root.ts';

/**
 * The bundles that `npm run build` writes. Only the one for tracing has the interceptors of OpenTelemetry, so that they cost
 * nothing otherwise.
 */
const BUILT_BUNDLES = {
  plain: path.join(projectRoot, 'dist/workflow-bundle.js'),
  tracing: path.join(projectRoot, 'dist/workflow-bundle-tracing.js'),
} as const;

type BundleKind = keyof typeof BUILT_BUNDLES;

const INTERCEPTORS: Readonly<Record<BundleKind, readonly string[]>> = {
  plain: [],
  tracing: ['@temporalio/interceptors-opentelemetry/lib/workflow-interceptors'],
};

/** Bundles the workflows from source. Takes seconds: call it at most once per process. */
export async function bundleWorkflows(kind: BundleKind = 'plain'): Promise<WorkflowBundle> {
  const quiet = { trace() {}, debug() {}, info() {}, warn: console.warn, error: console.error, log() {} };
  return await bundleWorkflowCode({
    workflowsPath: path.join(projectRoot, 'workflows/index.ts'),
    workflowInterceptorModules: [...INTERCEPTORS[kind]],
    // Loaded once, and not anew for each workflow: no module has state.
    preloadModules: ['@temporalio/workflow', path.join(projectRoot, 'workflows/index.ts')],
    logger: quiet,
  });
}

/** Returns the bundle of the build that this file is part of, or a new one when it runs from source. */
export async function loadWorkflowBundle(kind: BundleKind = 'plain'): Promise<WorkflowBundle> {
  const runsFromBuild = fileURLToPath(import.meta.url).startsWith(path.join(projectRoot, 'dist') + path.sep);
  const built = BUILT_BUNDLES[kind];
  if (runsFromBuild && existsSync(built)) return { code: readFileSync(built, 'utf8') };
  return await bundleWorkflows(kind);
}

/** Whether the bundles are newer than everything that they may be made of: all sources, and the versions of the packages. */
function areFresh(): boolean {
  const files = Object.values(BUILT_BUNDLES);
  if (!files.every((file) => existsSync(file))) return false;
  const builtAt = Math.min(...files.map((file) => statSync(file).mtimeMs));
  const sources = ['src', 'workflows', 'activities', 'temporal'].flatMap((folder) =>
    readdirSync(path.join(projectRoot, folder), { recursive: true, encoding: 'utf8' }).map((name) =>
      path.join(folder, name),
    ),
  );
  return ['package-lock.json', ...sources].every(
    (source) => statSync(path.join(projectRoot, source)).mtimeMs < builtAt,
  );
}

if (process.argv[1] === fileURLToPath(import.meta.url) && !areFresh()) {
  await Promise.all(
    Object.entries(BUILT_BUNDLES).map(async ([kind, file]) => {
      const { code } = await bundleWorkflows(kind as BundleKind);
      await mkdir(path.dirname(file), { recursive: true });
      await writeFile(file, code);
    }),
  );
}
