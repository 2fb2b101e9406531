import { useQuery } from '@tanstack/react-query';
import { api, read } from '../api/client.ts';
import { useCurrentSession } from '../session.ts';

export const PASSKEYS_KEY = ['passkeys'];

/** Reads the passkeys of the member who is signed in. Other sessions have none. */
export function usePasskeys() {
  const { member } = useCurrentSession();
  return useQuery({
    queryKey: PASSKEYS_KEY,
    queryFn: async () => (await read(api.GET('/session/passkeys'))).passkeys,
    enabled: member !== null,
  });
}
