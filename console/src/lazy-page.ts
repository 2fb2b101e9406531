import { lazy } from 'react';
import type { ComponentType } from 'react';

interface PageModule {
  readonly default: ComponentType;
}

/** A page whose module is loaded when it is shown for the first time, or by `load` before. */
export interface LazyPage {
  readonly Page: ComponentType;
  readonly load: () => Promise<void>;
  readonly isLoaded: () => boolean;
}

/**
 * Returns a page whose module is loaded on demand. One that is loaded already is shown at once: React keeps the place of one that it waits for, and
 * shows what comes after it at most every 300 ms.
 */
export function lazyPage(get: () => Promise<PageModule>): LazyPage {
  let loaded: PageModule | undefined;
  const load = async () => {
    loaded ??= await get();
    return loaded;
  };
  return {
    // React reads a result that is there before its callback returns, and then waits for nothing.
    Page: lazy(() => {
      const present = loaded;
      return present === undefined
        ? load()
        : // oxlint-disable-next-line unicorn/no-thenable -- no promise calls back before it returns
          ({ then: (take: (module: PageModule) => void) => take(present) } as Promise<PageModule>);
    }),
    load: async () => {
      await load();
    },
    isLoaded: () => loaded !== undefined,
  };
}
