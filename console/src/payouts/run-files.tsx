import { Group, Text } from '@mantine/core';
import { useQueryClient } from '@tanstack/react-query';
import { api, read } from '../api/client.ts';
import type { Schemas } from '../api/client.ts';
import { formatCount, formatCountOf, formatMoney } from '../format.ts';
import { Section } from '../lists.tsx';
import { ErrorBox } from '../parts.tsx';
import { saveFile } from '../parts/save-file.ts';
import { DownloadButton } from './csv-download.tsx';
import { PAYOUT_KEYS } from './keys.ts';
import { useRunFiles } from './runs.ts';
import { METHODS } from './words.ts';
import type { Run } from './words.ts';

type File = Schemas['PayoutFile'];

const nameOf = ({ method, part }: File) =>
  part === 1 ? METHODS[method] : `${METHODS[method]}, part ${formatCount(part)}`;

/** Says how often a file was downloaded, and what a second upload would do. */
function Downloads({ file: { downloadCount, erased } }: { readonly file: File }) {
  if (erased) return <Text size="sm">Its content was removed, because a creator in it was erased.</Text>;
  if (downloadCount === 0) return null;
  return (
    <Text size="sm" c="dimmed">
      Downloaded {formatCountOf(downloadCount, 'time')}. If you upload it again, creators may be paid twice.
    </Text>
  );
}

/** The files of a settled run for the payment services. */
export function RunFiles({ appId, run }: { readonly appId: string; readonly run: Run }) {
  const client = useQueryClient();
  const files = useRunFiles(appId, run.id);
  const save = async (file: File) => {
    const path = { appId, runId: run.id, fileId: file.id };
    const call = api.POST('/apps/{appId}/payout-runs/{runId}/files/{fileId}/download', {
      params: { path },
      parseAs: 'blob',
    });
    saveFile(await read(call), `${run.id}-${file.method}-${file.part}.csv`);
    await client.invalidateQueries({ queryKey: PAYOUT_KEYS.runFiles(appId, run.id) });
  };
  if (files.error !== null) return <ErrorBox error={files.error} retry={() => void files.refetch()} />;
  if (files.data === undefined || files.data.items.length === 0) return null;
  const next = files.data.items.find(({ downloadCount, erased }) => downloadCount === 0 && !erased);
  return (
    <Section
      id="files"
      title="Files"
      hint="Upload each at its payment service, once. Every payout is a row of one file."
    >
      <div className="surface">
        <table className="rows">
          <thead>
            <tr>
              <th scope="col">For</th>
              <th scope="col" className="number">
                Payouts
              </th>
              <th scope="col" className="number">
                Amount
              </th>
              <th scope="col">Download</th>
            </tr>
          </thead>
          <tbody>
            {files.data.items.map((file) => (
              <tr key={file.id}>
                <td>{nameOf(file)}</td>
                <td className="number" data-name="Payouts">
                  {formatCount(file.rowCount)}
                </td>
                <td className="number lead" data-name="Amount">
                  {formatMoney(file.totalCents)}
                </td>
                <td>
                  <Group gap="xs">
                    {!file.erased && (
                      <DownloadButton
                        save={async () => await save(file)}
                        inRow={`CSV for ${nameOf(file)}`}
                        isNext={file === next}
                      />
                    )}
                    <Downloads file={file} />
                  </Group>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </Section>
  );
}
