// Runs commands with Swift, on this machine or in the folder of install-toolchain.sh.
import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const SCRIPT = fileURLToPath(new URL('../with-swift.sh', import.meta.url));

/** How long a command may run, ms. A first build takes half a minute, the scenarios and stories as long, and PRoot several times that. */
const PATIENCE_MS = 600_000;

/** Runs a command in the folder of the package. Returns its exit code, null if it took too long, and what it printed. */
export async function withSwift(command, environment = {}) {
  const child = spawn(SCRIPT, command, { env: { ...process.env, ...environment }, detached: true });
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text) => {
      output += text;
    });
  const timer = setTimeout(() => process.kill(-child.pid, 'SIGKILL'), PATIENCE_MS);
  const code = await new Promise((resolve) => child.on('close', resolve));
  clearTimeout(timer);
  return { code, output };
}

/** Builds the package and its tests. The warnings of the compiler are errors. */
export async function buildTests() {
  const { code, output } = await withSwift([
    ...['swift', 'build', '--build-tests', '--jobs', '2'],
    ...['-Xswiftc', '-warnings-as-errors'],
  ]);
  if (code !== 0) throw new Error(output);
}

/** Runs the XCTests whose names match, which `buildTests` built. */
export async function runXCTest(filter, environment) {
  return await withSwift(['swift', 'test', '--skip-build', '--filter', filter], environment);
}
