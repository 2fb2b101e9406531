import { useEffect, useState } from 'react';

/** How long after the page its late parts are loaded, ms. */
const AFTER_PAGE_MS = 3_000;
/** How long until what could not be loaded is asked for again, ms. */
const RETRY_MS = 2_000;

/** A part of the page whose program comes after that of the page: when it is wanted, and soon after the page in any case. */
export type Late<T> = () => Promise<T>;

/** Makes a late part. What is loaded once the page is there is also there when the connection is not. */
export function late<T>(load: Late<T>): Late<T> {
  addEventListener('load', () => setTimeout(() => void load().catch(() => {}), AFTER_PAGE_MS));
  return load;
}

/** Returns a late part once it was wanted and is loaded, and null until then. */
export function useLate<T>(load: Late<T>, isWanted: boolean): T | null {
  const [part, setPart] = useState<T | null>(null);
  const isMissing = isWanted && part === null;
  useEffect(() => {
    if (!isMissing) return;
    let timer: ReturnType<typeof setTimeout> | undefined;
    let isCurrent = true;
    const begin = async () => {
      const loaded = await load().catch(() => null);
      if (!isCurrent) return;
      if (loaded === null) timer = setTimeout(() => void begin(), RETRY_MS);
      else setPart(() => loaded);
    };
    void begin();
    return () => {
      isCurrent = false;
      clearTimeout(timer);
    };
  }, [isMissing, load]);
  return part;
}
