/**
 * SDK keys that this page created. The service shows the text of a key once, so it is kept until the page is closed, in
 * memory only.
 */
const known = new Map<string, string>();

export function rememberSdkKey(appId: string, sdkKey: string): void {
  known.set(appId, sdkKey);
}

export const knownSdkKey = (appId: string): string | undefined => known.get(appId);
