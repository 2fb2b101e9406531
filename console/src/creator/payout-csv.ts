import { useMutation } from '@tanstack/react-query';
import { read } from '../api/client.ts';
import { saveFile } from '../parts/save-file.ts';
import { api } from './api.ts';

/**
 * Returns a mutation that saves the CSV of a payout as a file. A link to it would fail over http in a network, where a
 * browser that follows a link does not say which page asks.
 */
export const usePayoutCsv = () =>
  useMutation({
    mutationFn: async (id: string) => {
      const csv = await read<Blob>(
        api.GET('/creator/payouts/{id}/csv', { params: { path: { id } }, parseAs: 'blob' }),
      );
      saveFile(csv, `${id}.csv`);
    },
  });
