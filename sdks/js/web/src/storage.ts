/** A storage that answers at once, because a browser must know the affiliate while it renders. */
export interface SyncStorage {
  get(key: string): string | null;
  set(key: string, value: string): void;
  remove(key: string): void;
}

export const pageStorage: SyncStorage = {
  get: (key) => localStorage.getItem(key),
  set: (key, value) => localStorage.setItem(key, value),
  remove: (key) => localStorage.removeItem(key),
};

export interface CookieOptions {
  /** The domain that shares the cookie, such as `shop.example` for `www.shop.example` and `app.shop.example`. */
  readonly domain?: string;
}

const YEAR_SECONDS = 365 * 86_400;

/** Returns a storage in a cookie, for a landing page and an app on different subdomains. */
export function cookieStorage(options?: CookieOptions | null): SyncStorage {
  const domain = options?.domain;
  const write = (key: string, value: string, seconds: number) => {
    const site = domain ? `;domain=${domain}` : '';
    const secure = location.protocol === 'https:' ? ';secure' : '';
    document.cookie = `${key}=${value};path=/;max-age=${seconds};samesite=lax${site}${secure}`;
  };
  return {
    get: (key) => {
      const cookie = document.cookie.split('; ').find((pair) => pair.startsWith(`${key}=`));
      const value = cookie?.slice(key.length + 1);
      try {
        return value === undefined ? null : decodeURIComponent(value);
      } catch {
        // Damaged: it is replaced.
        return '';
      }
    },
    set: (key, value) => {
      write(key, encodeURIComponent(value), YEAR_SECONDS);
    },
    remove: (key) => {
      write(key, '', 0);
    },
  };
}
