// Writes the types of the API, generated from its description, for the pages of the console.
import { execFileSync } from 'node:child_process';
import { createRequire } from 'node:module';
import path from 'node:path';

const root = path.resolve(import.meta.dirname, '..');
const [, , description, out] = process.argv;
let cli;
try {
  const main = createRequire(path.join(root, 'console/package.json')).resolve('openapi-typescript');
  cli = path.join(
    main.slice(0, main.lastIndexOf('openapi-typescript') + 'openapi-typescript'.length),
    'bin/cli.js',
  );
} catch {
  process.stderr.write(
    'The types of the console are left out, because its packages are missing: run npm ci.\n',
  );
  process.exit(process.env.CI === undefined ? 0 : 1);
}
execFileSync(process.execPath, [cli, path.resolve(description), '--output', path.resolve(out)], {
  cwd: path.join(root, 'console'),
  stdio: ['ignore', 'ignore', 'inherit'],
});
