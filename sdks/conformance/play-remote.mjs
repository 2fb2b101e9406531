// Plays the scenarios, and the stories of the second server, against an SDK in another process, such as a JVM (see remote.mjs):
// node play-remote.mjs ABILITY,ABILITY
// The greeting is { names, total }. The other process answers these calls:
//   begin({ host, options, store, storage, now })  a new device; the clock stands at `now`
//   start()                  starts the SDK; the result is that of the call
//   call(name, arguments)    calls the public API; `identify` may have a signature as its second argument
//   tick(ms)                 moves the clock to the next timer within `ms`, or by `ms`, and runs that timer: { elapsed, ran }
//   shift(ms)                changes the clock and runs no timer
//   restart()                ends the process of the SDK; the storage stays
//   storage(mode), event(name), stored(), warnings()   as in play.mjs
//   moving()                 { tasks, requests }: how much of the SDK's own work and how many requests are under way
import { setTimeout as delay } from 'node:timers/promises';
import { isPlayable, play, readScenarios, START } from './play.mjs';
import { serve } from './remote.mjs';
import { startServer } from './server.mjs';
import { playStory, STORIES } from './stories.mjs';
import { startWireServer } from './wire-server.mjs';

const abilities = (process.argv[2] ?? '').split(',');
const [server, wireServer] = await Promise.all([startServer(), startWireServer()]);
const all = [
  ...readScenarios().map((scenario) => ({ ...scenario, on: server, begin: play })),
  ...STORIES.map((story) => ({ ...story, on: wireServer, begin: playStory })),
];
const playable = new Map(
  all.filter((entry) => isPlayable(entry, abilities)).map((entry) => [entry.name, entry]),
);

function createDriver(remote, { state }) {
  const settled = async () => {
    for (let quiet = 0; quiet < 3;) {
      const { tasks, requests } = await remote('moving');
      quiet = tasks === 0 && requests === state().held ? quiet + 1 : 0;
      if (quiet === 0) await delay(1);
    }
  };
  /** Ends the process, whose requests the server no longer holds then. */
  const end = async () => {
    await remote('restart');
    while (state().held > 0) await delay(1);
  };
  const call = (name, ...given) =>
    remote('call', name, name === 'identify' ? [given[0], given[1]?.signature ?? null] : given);
  return {
    begin: (settings) => remote('begin', { ...settings, now: START }),
    start: async (url) => {
      const result = await remote('start');
      if (url) void call('attribute', url);
      return result;
    },
    call,
    advance: async (ms) => {
      for (let left = ms; ;) {
        const { elapsed, ran } = await remote('tick', left);
        if (!ran) return;
        left -= elapsed;
        await settled();
      }
    },
    clock: (ms) => remote('shift', ms),
    restart: end,
    storage: (mode) => remote('storage', mode),
    event: (name) => remote('event', name),
    stored: () => remote('stored'),
    warnings: () => remote('warnings'),
    settled,
    end,
  };
}

await serve({ names: [...playable.keys()], total: all.length }, (name, remote) => {
  const entry = playable.get(name);
  return entry.begin(entry, { server: entry.on, driver: createDriver(remote, entry.on) });
});
server.close();
await wireServer.close();
