import { useQuery } from '@tanstack/react-query';
import { api, read } from '../api/client.ts';
import type { Schemas } from '../api/client.ts';
import { METHODS } from './payee-words.ts';

type PayeeVersion = Schemas['PayeeVersion'];

/** Reads the latest payee of a creator. */
export const usePayee = (appId: string, affiliateId: string) =>
  useQuery({
    queryKey: ['payee', appId, affiliateId],
    queryFn: async () =>
      await read(
        api.GET('/apps/{appId}/affiliates/{affiliateId}/payees', {
          params: { path: { appId, affiliateId }, query: { limit: 1 } },
        }),
      ),
  });

/** Whether runs of payouts leave the creator out until the payee counts. */
export const isNewPayee = ({ countsFrom }: PayeeVersion): boolean => countsFrom > Date.now();

/** Returns where the money goes, as far as pages show it. */
export const payeeText = ({ method, maskedRecipient }: PayeeVersion): string =>
  maskedRecipient === null ? METHODS[method] : `${METHODS[method]} · ${maskedRecipient}`;
