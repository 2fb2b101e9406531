/** A clock and timers that move only when a test says so. */
export function createFakeClock(startAt) {
  let now = startAt;
  let elapsed = 0;
  let timers = [];
  return {
    now: () => now,
    after: (ms, run) => {
      const timer = { at: elapsed + ms, run };
      timers.push(timer);
      return () => {
        timers = timers.filter((other) => other !== timer);
      };
    },
    /** Changes what the device believes the time to be. */
    shift: (ms) => {
      now += ms;
    },
    /** Runs the timers of the next `ms` in order; `settle` runs after each. */
    advance: async (ms, settle) => {
      const end = elapsed + ms;
      for (;;) {
        const [next] = timers.filter(({ at }) => at <= end).toSorted((a, b) => a.at - b.at);
        const to = next?.at ?? end;
        now += to - elapsed;
        elapsed = to;
        if (next === undefined) return;
        timers = timers.filter((timer) => timer !== next);
        next.run();
        await settle();
      }
    },
    clear: () => {
      timers = [];
    },
  };
}
