import { useQuery } from '@tanstack/react-query';
import { api, read } from '../api/client.ts';
import { LIVE_MS } from '../api/query-client.ts';
import { WEBHOOK_KEYS } from './words.ts';

/** Returns the endpoints of an app, oldest first. They are read again after `refetchMs`, since each attempt may change their state. */
export const useEndpoints = (appId: string, enabled: boolean, refetchMs = LIVE_MS) =>
  useQuery({
    queryKey: WEBHOOK_KEYS.endpoints(appId),
    queryFn: async () =>
      await read(api.GET('/apps/{appId}/webhook-endpoints', { params: { path: { appId } } })),
    refetchInterval: refetchMs,
    enabled,
  });
