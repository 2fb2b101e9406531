import { Button } from '@mantine/core';
import { useState } from 'react';
import { useChange } from '../api/queries.ts';
import { Dialog } from '../dialog.tsx';
import { ErrorBox } from '../parts.tsx';
import { useCurrentSession } from '../session.ts';
import { saveCsv } from './csv-file.ts';
import { isRaised, RaiseForm } from './raise-form.tsx';

/** Saves the CSV of a payout, after it has asked for a key that may see it. In a row it is small and names the creator. */
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
  const session = useCurrentSession();
  const [isAsking, setIsAsking] = useState(false);
  const save = useChange(async () => {
    await saveCsv(appId, payoutId);
    return null;
  });
  return (
    <>
      <Button
        variant="default"
        style={{ flexShrink: 0 }}
        loading={save.isPending}
        onClick={() => (isRaised(session) ? save.mutate(undefined) : setIsAsking(true))}
        {...(creator === undefined
          ? {}
          : { size: 'compact-sm', 'aria-label': `CSV of the payout to ${creator}` })}
      >
        {creator === undefined ? 'Download the CSV' : 'CSV'}
      </Button>
      {save.error !== null && <ErrorBox error={save.error} />}
      <Dialog isOpen={isAsking} onClose={() => setIsAsking(false)} title="Download the CSV">
        <RaiseForm
          onRaised={() => {
            setIsAsking(false);
            save.mutate(undefined);
          }}
          onCancel={() => setIsAsking(false)}
        />
      </Dialog>
    </>
  );
}
