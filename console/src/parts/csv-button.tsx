import { Button } from '@mantine/core';
import { useChange } from '../api/queries.ts';
import { ErrorBox } from '../parts.tsx';
import { saveFile } from './save-file.ts';

/** A part of a list as CSV, and the cursor of the next part. */
export interface CsvPart {
  readonly text: string;
  readonly nextCursor: string | null;
}

/** Number of parts that one file has at most: half a million rows. */
const MOST_PARTS = 50;

/** Reads all parts of a list as CSV. The header line of a later part is left out. */
async function readAll(readPart: (cursor: { readonly cursor?: string }) => Promise<CsvPart>): Promise<Blob> {
  const parts: string[] = [];
  let cursor: string | null = null;
  do {
    const part = await readPart(cursor === null ? {} : { cursor });
    parts.push(parts.length === 0 ? part.text : part.text.slice(part.text.indexOf('\n') + 1));
    cursor = part.nextCursor;
  } while (cursor !== null && parts.length < MOST_PARTS);
  return new Blob(parts, { type: 'text/csv' });
}

/** A button that saves the rows of a list as a file. */
export function CsvButton({
  name,
  readPart,
}: {
  readonly name: string;
  readonly readPart: (cursor: { readonly cursor?: string }) => Promise<CsvPart>;
}) {
  const save = useChange(async () => saveFile(await readAll(readPart), `${name}.csv`));
  return (
    <>
      <Button variant="default" size="xs" loading={save.isPending} onClick={() => save.mutate(undefined)}>
        Save as CSV
      </Button>
      {save.error !== null && <ErrorBox error={save.error} />}
    </>
  );
}
