import { sha256 } from '@noble/hashes/sha2.js';
import { bytesToHex } from '@noble/hashes/utils.js';
import { api, read } from '../api/client.ts';
import { saveFile } from '../parts/save-file.ts';

/** Returns the SHA-256 of a file, hexadecimal. `crypto.subtle` is missing over http. */
export const sha256Of = async (file: Blob): Promise<string> =>
  bytesToHex(sha256(new Uint8Array(await file.arrayBuffer())));

/** Reads the CSV of a payout and saves it as a file. Throws a `Problem` if the session may not. */
export async function saveCsv(appId: string, payoutId: string): Promise<void> {
  const csv = await read<Blob>(
    api.GET('/apps/{appId}/payouts/{payoutId}/csv', {
      params: { path: { appId, payoutId } },
      parseAs: 'blob',
    }),
  );
  saveFile(csv, `${payoutId}.csv`);
}
