// Lets a process of another language play scenarios: it starts a Node program that uses this module. Both write one JSON
// document per line, to the standard input and output of the Node program:
//   from Node   the greeting, such as { names: [...] }
//   to Node     { run: NAME }
//   from Node   { id, call, arguments }, any number of times; the other process answers { id, result }, in any order
//   from Node   { end: NAME, error }, with error null if all went well
import { createInterface } from 'node:readline';

/** Sends the greeting and then runs what the other process asks for, until it closes the standard input. */
export async function serve(greeting, run) {
  const pending = new Map();
  let lastId = 0;
  const write = (message) => process.stdout.write(`${JSON.stringify(message)}\n`);
  const remote = (call, ...given) =>
    new Promise((resolve) => {
      lastId += 1;
      pending.set(lastId, resolve);
      write({ id: lastId, call, arguments: given });
    });
  const start = async (name) => {
    try {
      await run(name, remote);
      write({ end: name, error: null });
    } catch (error) {
      write({ end: name, error: error.message });
    }
  };
  write(greeting);
  for await (const line of createInterface({ input: process.stdin })) {
    const message = JSON.parse(line);
    if ('run' in message) void start(message.run);
    else {
      pending.get(message.id)?.(message.result);
      pending.delete(message.id);
    }
  }
}
