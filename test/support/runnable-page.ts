import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { projectRoot } from '../../src/config/project-root.ts';

/** A command of a page, and the output that the page shows for it. */
export interface PageBlock {
  readonly line: number;
  readonly script: string;
  /** The fence marked `text` directly below, where `…` matches any text. Null without such a fence. */
  readonly printed: string | null;
}

/** Returns the commands of a page: its fences marked `sh`, or with another mark, in order. */
export async function readBlocks(page: string, mark = 'sh'): Promise<PageBlock[]> {
  const text = await readFile(path.join(projectRoot, page), 'utf8');
  const fences = [...text.matchAll(/^```(\w*)\n([\s\S]*?)^```$/gm)].map(
    ({ 1: kind, 2: body = '', index }) => ({
      kind,
      body,
      line: text.slice(0, index).split('\n').length,
      end: index,
    }),
  );
  return fences.flatMap((fence, at) => {
    if (fence.kind !== mark) return [];
    const next = fences[at + 1];
    return [{ line: fence.line, script: fence.body, printed: next?.kind === 'text' ? next.body : null }];
  });
}

const MARK = '@@ end of block';

export interface PageRun {
  readonly status: number;
  readonly stderr: string;
  /** The output of each block, up to the first that failed. */
  readonly outputs: readonly string[];
}

/** Runs the blocks of a page in sequence in one shell, in the folder of the project. Stops at the first failure. */
export async function runBlocks(
  blocks: readonly PageBlock[],
  env: Readonly<Record<string, string>>,
): Promise<PageRun> {
  const script = ['set -euo pipefail', ...blocks.flatMap((block) => [block.script, `echo '${MARK}'`])].join(
    '\n',
  );
  return await new Promise((resolve) => {
    execFile(
      'bash',
      ['-c', script],
      {
        cwd: projectRoot,
        env: { PATH: process.env['PATH'] ?? '', HOME: process.env['HOME'] ?? '', ...env },
        timeout: 120_000,
      },
      (error, stdout, stderr) => {
        const outputs = stdout.split(`${MARK}\n`);
        resolve({
          status: typeof error?.code === 'number' ? error.code : error === null ? 0 : 1,
          stderr,
          outputs,
        });
      },
    );
  });
}

/** Returns whether `output` matches the text of a page, in which `…` matches anything except a line break. */
export function isPrinted(output: string, printed: string): boolean {
  const pattern = printed
    .trim()
    .split('…')
    .map((part) => part.replaceAll(/[$()*+.?[\\\]^{|}]/g, '\\$&'))
    .join('[^\\n]*');
  return new RegExp(`^${pattern}$`).test(output.replaceAll('\r', '').trim());
}
