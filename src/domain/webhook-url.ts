import type { AppId } from './ids.ts';

/** Where a provider posts an app's webhooks. `baseUrl` has no trailing slash. */
export function webhookUrl(baseUrl: string, provider: string, appId: AppId): string {
  return `${baseUrl}/webhooks/${provider}/${appId}`;
}
