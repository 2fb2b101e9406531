import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { projectRoot } from '../src/config/project-root.ts';

/*
 * `npm run check:dashboard -- FOLDER`, a part of `npm run check:deploy`: checks the dashboard with Grafana's own types, which
 * refuse a field that Grafana does not know, and every query with promtool. FOLDER has the package @grafana/schema.
 */

interface Dashboard {
  readonly panels: readonly {
    readonly title: string;
    readonly targets?: readonly { readonly expr: string }[];
  }[];
  readonly annotations: { readonly list: readonly { readonly target: { readonly expr: string } }[] };
}

const [folder = ''] = process.argv.slice(2);
const text = readFileSync(path.join(projectRoot, 'deploy/grafana/tributary.json'), 'utf8');
const dashboard = JSON.parse(text) as Dashboard;

// As a literal with a type, so that the compiler refuses unknown fields. The fields of Prometheus are its data source's own.
writeFileSync(
  path.join(folder, 'dashboard.ts'),
  `import type { AnnotationQuery, Dashboard, DataQuery } from '@grafana/schema';
type Alerts = AnnotationQuery<DataQuery & { expr: string }> & { titleFormat: string };
export const dashboard: Omit<Dashboard, 'annotations'> & { annotations: { list: Alerts[] } } = ${text};
`,
);
const compiler = path.join(projectRoot, 'node_modules/.bin/tsc');
const options = [
  '--ignoreConfig',
  '--noEmit',
  '--strict',
  '--skipLibCheck',
  '--module',
  'esnext',
  '--target',
  'es2022',
];
execFileSync(compiler, [...options, '--moduleResolution', 'bundler', 'dashboard.ts'], {
  cwd: folder,
  stdio: 'inherit',
});

const queries = [
  ...dashboard.panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr)),
  ...dashboard.annotations.list.map(({ target }) => target.expr),
];
const rules = queries.map((query, index) => ({
  record: `dashboard:query_${index}`,
  // Grafana replaces its variables before it sends a query.
  expr: query.replaceAll('$__rate_interval', '5m'),
}));
const rulesFile = path.join(folder, 'dashboard-rules.yaml');
writeFileSync(rulesFile, JSON.stringify({ groups: [{ name: 'dashboard', rules }] }));
execFileSync('promtool', ['check', 'rules', rulesFile], { stdio: ['ignore', 'ignore', 'inherit'] });
process.stdout.write(
  `The dashboard has only fields of Grafana's schema, and Prometheus parses its ${queries.length} queries.\n`,
);
