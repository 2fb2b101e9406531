import { sha256 } from '@noble/hashes/sha2.js';
import { bytesToHex } from '@noble/hashes/utils.js';
import { api, read } from '../api/client.ts';
import { appendCsv } from '../parts/csv-text.ts';
import { saveFile } from '../parts/save-file.ts';

/** Returns the SHA-256 of a file, hexadecimal. `crypto.subtle` is missing over http. */
export const sha256Of = async (file: Blob): Promise<string> =>
  bytesToHex(sha256(new Uint8Array(await file.arrayBuffer())));

/** Reads the CSV of a payout. Throws a `Problem` if the session may not. */
const readFile = async (appId: string, payoutId: string): Promise<Blob> =>
  await read<Blob>(
    api.GET('/apps/{appId}/payouts/{payoutId}/csv', {
      params: { path: { appId, payoutId } },
      parseAs: 'blob',
    }),
  );

/** Reads the CSV of a payout and saves it as a file, as it is stored. Throws a `Problem` if the session may not. */
export async function saveCsv(appId: string, payoutId: string): Promise<void> {
  saveFile(await readFile(appId, payoutId), `${payoutId}.csv`);
}

/**
 * Saves the rows of several payouts as one file, each row with the id of its payout. Without one of them nothing is saved: a file for
 * a transfer must be whole.
 */
export async function saveOneCsv(
  appId: string,
  payouts: readonly { readonly id: string; readonly affiliateName: string }[],
): Promise<void> {
  let csv = '';
  for (const { id, affiliateName } of payouts) {
    try {
      csv = appendCsv(csv, await (await readFile(appId, id)).text());
    } catch (error) {
      throw new Error(
        `Nothing was saved, because of the payout to ${affiliateName}: ${error instanceof Error ? error.message : 'unknown'}`,
        { cause: error },
      );
    }
  }
  saveFile(new Blob([csv], { type: 'text/csv' }), 'payouts.csv');
}
