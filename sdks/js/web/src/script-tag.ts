import { cookieStorage } from './storage.ts';
import { createTributary } from './tributary.ts';

/**
 * What a page may put into `window.tributary` before the script is loaded: `{ q: [['identify', 'user-1']] }`. It may also be an
 * element with this id, or the SDK of an earlier tag.
 */
interface Before {
  readonly q?: unknown;
  readonly start?: unknown;
}

const scope = window as { tributary?: unknown };
const before = scope.tributary as Before | undefined;
if (typeof before?.start !== 'function') {
  const tributary = createTributary();
  scope.tributary = { ...tributary, cookieStorage };
  const { apiKey, apiBaseUrl, app, cookieDomain } = document.currentScript?.dataset ?? {};
  for (const queued of [before?.q].flat())
    try {
      const [name, ...values] = queued as [keyof typeof tributary, ...unknown[]];
      (tributary[name] as (...values: unknown[]) => unknown)(...values);
    } catch {
      // Not a call.
    }
  const storage = cookieDomain === undefined ? undefined : cookieStorage({ domain: cookieDomain });
  void tributary.start({ apiKey, apiBaseUrl, app, storage });
}
