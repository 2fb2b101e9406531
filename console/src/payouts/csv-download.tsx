import { Button } from '@mantine/core';
import { useState } from 'react';
import { useChange } from '../api/queries.ts';
import { Dialog } from '../dialog.tsx';
import { ErrorBox } from '../parts.tsx';
import { useCurrentSession } from '../session.ts';
import { saveCsv } from './csv-file.ts';
import { isRaised, RaiseForm } from './raise-form.tsx';

/** Saves a CSV after it has asked for a key that may see it. In a row it is small and says which one it saves. */
export function DownloadButton({
  save,
  inRow,
  isNext = false,
  text = inRow === undefined ? 'Download the CSV' : 'CSV',
}: {
  readonly save: () => Promise<void>;
  /** What a button in a row of a list saves. */
  readonly inRow?: string;
  /** Whether it is the next step on the page. */
  readonly isNext?: boolean;
  readonly text?: string;
}) {
  const session = useCurrentSession();
  const [isAsking, setIsAsking] = useState(false);
  const saving = useChange(async () => {
    await save();
    return null;
  });
  return (
    <>
      <Button
        variant={isNext ? 'filled' : 'default'}
        style={{ flexShrink: 0 }}
        loading={saving.isPending}
        onClick={() => (isRaised(session) ? saving.mutate(undefined) : setIsAsking(true))}
        {...(inRow === undefined ? {} : { size: 'compact-sm', 'aria-label': inRow })}
      >
        {text}
      </Button>
      {saving.error !== null && <ErrorBox error={saving.error} />}
      <Dialog isOpen={isAsking} onClose={() => setIsAsking(false)} title="Download the CSV">
        <RaiseForm
          onRaised={() => {
            setIsAsking(false);
            saving.mutate(undefined);
          }}
          onCancel={() => setIsAsking(false)}
        />
      </Dialog>
    </>
  );
}

/** Saves the CSV of a payout. */
export function CsvDownload({
  appId,
  payoutId,
  creator,
}: {
  readonly appId: string;
  readonly payoutId: string;
  /** The name of the creator, in a row of a list. */
  readonly creator?: string;
}) {
  return (
    <DownloadButton
      save={async () => await saveCsv(appId, payoutId)}
      {...(creator === undefined ? {} : { inRow: `CSV of the payout to ${creator}` })}
    />
  );
}
