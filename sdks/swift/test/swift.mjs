// Runs commands with Swift, on this machine or in the folder of install-toolchain.sh.
import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const SCRIPT = fileURLToPath(new URL('../with-swift.sh', import.meta.url));

/** How long a command may run, ms. A first build takes about half a minute. */
const PATIENCE_MS = 300_000;

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

/** Runs the XCTest classes whose names match. The warnings of the compiler are errors. */
export async function runXCTest(filter, environment) {
  const command = ['swift', 'test', '--jobs', '2', '-Xswiftc', '-warnings-as-errors', '--filter', filter];
  return await withSwift(command, environment);
}
