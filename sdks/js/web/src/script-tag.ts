import { cookieStorage } from './storage.ts';
import { createTributary } from './tributary.ts';

/** What a page may put into `window.tributary` before the script is loaded: `{ q: [['identify', 'user-1']] }`. */
interface Queue {
  readonly q?: readonly (readonly [string, ...unknown[]])[];
}

const scope = window as { tributary?: unknown };
const queued = (scope.tributary as Queue | undefined)?.q ?? [];
const tributary = createTributary();
scope.tributary = { ...tributary, cookieStorage };

const { apiKey, apiBaseUrl, cookieDomain } = document.currentScript?.dataset ?? {};
for (const [name, ...values] of queued) {
  const call = tributary[name as keyof typeof tributary] as ((...values: unknown[]) => unknown) | undefined;
  call?.(...values);
}
if (apiKey) {
  const storage = cookieDomain === undefined ? undefined : cookieStorage({ domain: cookieDomain });
  void tributary.start({ apiKey, apiBaseUrl, storage });
}
