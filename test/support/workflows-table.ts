import { readFileSync } from 'node:fs';
import path from 'node:path';
import { projectRoot } from '../../src/config/project-root.ts';
import { SCHEDULES } from '../../temporal/schedules.ts';
import { WORKFLOWS } from '../../temporal/start.ts';
import type { StartedWorkflow } from '../../temporal/start.ts';

/** The file with the table, and the lines around it. */
export const WORKFLOWS_PAGE = 'docs/temporal.md';
const BEGIN = '<!-- The table of the workflows: npm run docs:write makes it from their files. -->';
const END = '<!-- End of the table -->';

/** All workflows with the names of their files, in the order of `workflows/index.ts`. */
export function workflowFiles(): readonly { readonly workflow: string; readonly file: string }[] {
  const index = readFileSync(path.join(projectRoot, 'workflows/index.ts'), 'utf8');
  return [...index.matchAll(/export \{ (\w+) \} from '\.\/(.+)\.ts'/g)].map(
    ([, workflow = '', file = '']) => ({
      workflow,
      file,
    }),
  );
}

/** What the comment of a workflow says: its first sentence, and who starts it. Throws when it does not. */
function commentOf(workflow: string, file: string): { readonly does: string; readonly startedBy: string } {
  const code = readFileSync(path.join(projectRoot, `workflows/${file}.ts`), 'utf8');
  const before = code.slice(0, code.indexOf(`export async function ${workflow}(`));
  const comment = before
    .slice(before.lastIndexOf('/**') + 3, before.lastIndexOf('*/'))
    .replaceAll(/\n \* ?/g, ' ')
    .trim();
  const [text = '', startedBy] = comment.split('@startedBy');
  const [does] = /^.+?\.(?= |$)/.exec(text.trim()) ?? [];
  if (does === undefined || startedBy === undefined)
    throw new Error(`the comment of ${workflow} must begin with a sentence, and end with @startedBy`);
  return { does, startedBy: startedBy.trim() };
}

function idsOf(workflow: string): string {
  const ids: string[] = [];
  if (workflow in SCHEDULES) ids.push(`${workflow}:<taskQueue>-workflow-<time>`);
  if (workflow in WORKFLOWS) {
    const row: { readonly key: string | null; readonly idName?: string } =
      WORKFLOWS[workflow as StartedWorkflow];
    ids.push(`${row.idName ?? workflow}:<${row.key ?? 'taskQueue'}>`);
  }
  return ids.map((id) => `\`${id}\``).join(', ');
}

/** Returns the page with the table as the files of the workflows have it. */
export function withWorkflowsTable(page: string): string {
  const rows = workflowFiles().map(({ workflow, file }) => {
    const { does, startedBy } = commentOf(workflow, file);
    return `| \`${workflow}\` | ${idsOf(workflow)} | ${startedBy} | ${does} |`;
  });
  const table = ['| Workflow | Id | Started by | Does |', '|---|---|---|---|', ...rows].join('\n');
  const [before = '', rest = ''] = page.split(BEGIN);
  return `${before}${BEGIN}\n\n${table}\n\n${END}${rest.split(END)[1] ?? ''}`;
}
