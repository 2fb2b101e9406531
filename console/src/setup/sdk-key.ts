/**
 * SDK keys that this session created. The service shows the text of a key once, so it is kept until the page is closed or
 * the session changes, in memory only.
 */
const known = new Map<string, string>();

export function rememberSdkKey(appId: string, sdkKey: string): void {
  known.set(appId, sdkKey);
}

export function forgetSdkKeys(): void {
  known.clear();
}

export const knownSdkKey = (appId: string): string | undefined => known.get(appId);
