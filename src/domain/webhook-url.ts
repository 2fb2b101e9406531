import type { AppId } from './ids.ts';

/** Returns the URL to which a provider sends an app's webhooks. `baseUrl` has no trailing slash. */
export function webhookUrl(baseUrl: string, provider: string, appId: AppId): string {
  return `${baseUrl}/webhooks/${provider}/${appId}`;
}
