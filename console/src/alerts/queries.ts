import { useQuery } from '@tanstack/react-query';
import { api, read } from '../api/client.ts';
import { ALERT_KEYS } from './words.ts';

/** How often open alerts are read again, ms. They change every five minutes at most. */
const OPEN_MS = 60_000;

/** Returns the open alerts of an app, at most 100. */
export const useOpenAlerts = (appId: string, enabled: boolean) =>
  useQuery({
    queryKey: ALERT_KEYS.open(appId),
    queryFn: async () =>
      await read(
        api.GET('/apps/{appId}/alerts', {
          params: { path: { appId }, query: { status: 'open', limit: 100 } },
        }),
      ),
    refetchInterval: OPEN_MS,
    enabled,
  });

/** Returns what is known of the Slack URL of an app. */
export const useSlack = (appId: string, enabled: boolean) =>
  useQuery({
    queryKey: ALERT_KEYS.slack(appId),
    queryFn: async () => await read(api.GET('/apps/{appId}/slack-url', { params: { path: { appId } } })),
    enabled,
  });
