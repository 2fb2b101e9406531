'use client';

import { attributedAffiliateId, identify, start } from '@tributary/web';
import type { StartOptions } from '@tributary/web';
import { createElement, Fragment, useEffect, useSyncExternalStore } from 'react';
import type { ReactElement, ReactNode } from 'react';

export interface TributaryProviderProps extends StartOptions {
  readonly children?: ReactNode;
  /** The id of the person who is signed in, as the billing provider reports it. Null while nobody is. */
  readonly userId?: string | null | undefined;
  /** The signature of the user id, if the app verifies user ids. */
  readonly signature?: string | undefined;
}

/** The hooks that read the affiliate again when it may have changed. A page has one SDK, so there is no context. */
const listeners = new Set<() => void>();
const notify = () => {
  for (const listener of listeners) listener();
};
/** The callback of the last render, which may be a new function each time. */
let onAttribution: StartOptions['onAttribution'];

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  // Another tab may learn the affiliate, or delete it.
  addEventListener('storage', listener);
  return () => {
    listeners.delete(listener);
    removeEventListener('storage', listener);
  };
}

/** Starts the SDK once it is in a page, and binds the user id. On a server it only renders its children. */
export function TributaryProvider({
  children,
  userId,
  signature,
  ...options
}: TributaryProviderProps): ReactElement {
  useEffect(() => {
    onAttribution = options.onAttribution;
  });
  useEffect(() => {
    const announce = (affiliateId: string) => {
      notify();
      onAttribution?.(affiliateId);
    };
    void start({ ...options, onAttribution: announce }).then(notify);
    // Further starts change nothing, so the other options are those of the first one.
  }, [options.apiKey, String(options.apiBaseUrl)]);
  useEffect(() => {
    if (userId) void identify(userId, signature === undefined ? undefined : { signature }).then(notify);
  }, [userId, signature]);
  return createElement(Fragment, null, children);
}

/** Returns the affiliate of this browser, or null. It is null on a server, and until a page is hydrated. */
export function useAttribution(): { readonly affiliateId: string | null } {
  return { affiliateId: useSyncExternalStore(subscribe, attributedAffiliateId, () => null) };
}
