import { Button, Text } from '@mantine/core';
import { formatCount } from '../format.ts';
import { useChange } from '../api/queries.ts';
import { ErrorBox } from '../parts.tsx';
import { MOST_CSV_ROWS, saveWholeCsv } from './whole-csv.ts';
import type { CsvPart } from './whole-csv.ts';

/** A button that saves the rows of a list as a file. */
export function CsvButton({
  name,
  readPart,
}: {
  readonly name: string;
  readonly readPart: (cursor: { readonly cursor?: string }) => Promise<CsvPart>;
}) {
  const save = useChange(async () => await saveWholeCsv(name, readPart));
  return (
    <>
      <Button variant="default" size="xs" loading={save.isPending} onClick={() => save.mutate(undefined)}>
        Save as CSV
      </Button>
      {save.data === true && (
        <Text size="sm" role="alert">
          The file has the first {formatCount(MOST_CSV_ROWS)} rows only. Choose a shorter range or more
          filters to save the others.
        </Text>
      )}
      {save.error !== null && <ErrorBox error={save.error} />}
    </>
  );
}
