import { Button, Group, Paper, Text } from '@mantine/core';
import { useEffect, useEffectEvent, useState } from 'react';

/** How long after the page its lazy parts are loaded, ms. */
const AFTER_PAGE_MS = 3_000;
/** How long until a notice says that a part is loading, ms. */
const SLOW_MS = 300;
/** How long until what could not be loaded is asked for again, ms. */
const RETRY_MS = 2_000;

/** Loads a part of the page whose module comes after that of the page: when it is wanted, and soon after the page in any case. */
export type LoadPart<T> = () => Promise<T>;

/** Loads a part three seconds after the page, unless it was wanted before, so that it also works if the connection is lost later. */
export function preloaded<T>(load: LoadPart<T>): LoadPart<T> {
  const begin = () => setTimeout(() => void load().catch(() => {}), AFTER_PAGE_MS);
  if (document.readyState === 'complete') begin();
  else addEventListener('load', begin);
  return load;
}

interface LazyPartState<T> {
  /** Null until it is loaded. */
  readonly part: T | null;
  /** What to show while it is wanted and not there. */
  readonly wait: 'slow' | 'failed' | null;
}

/** Returns a lazy part once it was wanted and is loaded. What could not be loaded is asked for again. */
export function useLazyPart<T>(load: LoadPart<T>, isWanted: boolean): LazyPartState<T> {
  const [state, setState] = useState<LazyPartState<T>>({ part: null, wait: null });
  const isMissing = isWanted && state.part === null;
  useEffect(() => {
    if (!isMissing) return;
    let isCurrent = true;
    let retry: ReturnType<typeof setTimeout> | undefined;
    const slow = setTimeout(() => setState({ part: null, wait: 'slow' }), SLOW_MS);
    const begin = async () => {
      const part = await load().catch(() => null);
      if (!isCurrent) return;
      clearTimeout(slow);
      setState({ part, wait: part === null ? 'failed' : null });
      if (part === null) retry = setTimeout(() => void begin(), RETRY_MS);
    };
    void begin();
    return () => {
      isCurrent = false;
      clearTimeout(slow);
      clearTimeout(retry);
      setState((now) => ({ ...now, wait: null }));
    };
  }, [isMissing, load]);
  return state;
}

const OVER_PAGE = {
  position: 'fixed',
  inset: 0,
  zIndex: 300,
  display: 'grid',
  placeItems: 'start center',
  padding: '15vh 16px 0',
} as const;

/** Stands over the page in place of a lazy part, until it is there or is given up. */
export function LoadingNotice({
  wait,
  isHeld = false,
  isPageHidden = false,
  onClose,
}: {
  readonly wait: 'slow' | 'failed';
  /** Whether it cannot be given up. */
  readonly isHeld?: boolean;
  readonly isPageHidden?: boolean;
  readonly onClose: () => void;
}) {
  const onKey = useEffectEvent(({ key }: KeyboardEvent) => {
    if (key === 'Escape' && !isHeld) onClose();
  });
  useEffect(() => {
    addEventListener('keydown', onKey);
    return () => removeEventListener('keydown', onKey);
  }, []);
  return (
    <div style={{ ...OVER_PAGE, ...(isPageHidden ? { background: 'var(--mantine-color-body)' } : {}) }}>
      <Paper withBorder shadow="md" p="md" role={wait === 'failed' ? 'alert' : 'status'}>
        <Text size="sm" maw={420}>
          {wait === 'slow'
            ? 'Loading …'
            : 'This part of the page could not be loaded. The connection may be gone, or the service was upgraded. It is tried again; what you entered stays here until you load the page again.'}
        </Text>
        <Group justify="flex-end" mt="sm">
          {!isHeld && (
            <Button variant="default" size="xs" onClick={onClose}>
              Close
            </Button>
          )}
          {wait === 'failed' && (
            <Button variant="default" size="xs" onClick={() => location.reload()}>
              Load the page again
            </Button>
          )}
        </Group>
      </Paper>
    </div>
  );
}
