import { Button, Stack } from '@mantine/core';
import { useState } from 'react';
import { api, read } from '../api/client.ts';
import type { Schemas } from '../api/client.ts';
import { useStep } from '../api/queries.ts';
import { Dialog } from '../dialog.tsx';
import { formatCountOf } from '../format.ts';
import { CodeBlock, copyText, ErrorBox } from '../parts.tsx';
import { readSelected } from '../parts/whole-csv.ts';
import type { CsvPart } from '../parts/whole-csv.ts';
import { Failures, forEachRow } from '../parts/each-row.tsx';
import type { Outcomes } from '../parts/each-row.tsx';
import { saveFile } from '../parts/save-file.ts';
import { sayDone } from '../parts/toast.tsx';
import { usePermission } from '../session.ts';

type Creator = Schemas['ListedAffiliate'];

/** How many pages of links a creator has here at most: 500 links. */
const MOST_PAGES = 5;

/** The start of a cell, or of a part of one, that a spreadsheet would run as a formula. */
const FORMULA = /(?<=^|[;|])(?=["'\p{Z}\p{Cf}]*[=+\-@＝＋－＠])/gu;

/** Returns a name as one cell of a line, which a spreadsheet shows as text. */
const cellOf = (name: string): string => name.replaceAll(/\s+/g, ' ').replaceAll(FORMULA, "'");

/** Reads the addresses of the active links of a creator, and whether there are more of them. */
async function readLinks(
  appId: string,
  affiliateId: string,
): Promise<{ readonly urls: readonly string[]; readonly hasMore: boolean }> {
  const urls: string[] = [];
  let cursor: string | null = null;
  for (let page = 0; page < MOST_PAGES; page += 1) {
    const query: { affiliateId: string; active: true; limit: number; cursor?: string } = {
      affiliateId,
      active: true,
      limit: 100,
      ...(cursor === null ? {} : { cursor }),
    };
    const { items, nextCursor }: Schemas['ListedLinkPage'] = await read(
      api.GET('/apps/{appId}/links', { params: { path: { appId }, query } }),
    );
    urls.push(...items.map(({ url }) => url));
    if (nextCursor === null) return { urls, hasMore: false };
    cursor = nextCursor;
  }
  return { urls, hasMore: true };
}

interface CopiedLinks {
  /** A line for each link: the name of the creator, a tab and the address, which a spreadsheet takes as two cells. */
  readonly text: string;
  readonly count: number;
  readonly isCopied: boolean;
  readonly outcomes: Outcomes<Creator>;
}

async function copyLinks(appId: string, creators: readonly Creator[]): Promise<CopiedLinks> {
  const lines: string[] = [];
  const outcomes = await forEachRow(creators, async ({ id, name }) => {
    const { urls, hasMore } = await readLinks(appId, id);
    lines.push(...urls.map((url) => `${cellOf(name)}\t${url}`));
    if (hasMore)
      return `has more than ${urls.length} active links: only the first ${urls.length} are copied.`;
    return urls.length === 0 ? 'has no active link.' : null;
  });
  const text = lines.join('\n');
  return { text, count: lines.length, isCopied: lines.length > 0 && (await copyText(text)), outcomes };
}

/** Says which links were not copied, and shows those that the browser did not copy by itself. */
function NotCopied({ copied: { text, count, isCopied, outcomes } }: { readonly copied: CopiedLinks }) {
  return (
    <Stack>
      {outcomes.failed.length > 0 && (
        <Failures
          title={
            isCopied
              ? `${formatCountOf(count, 'link')} copied, but not all links of these creators`
              : 'No link of these creators is copied'
          }
          failed={outcomes.failed}
          nameOf={({ name }) => name}
        />
      )}
      {!isCopied && text !== '' && <CodeBlock code={text} what="the links" />}
    </Stack>
  );
}

/** What can be done with the creators that are selected. */
export function CreatorsBulk({
  appId,
  selected,
  readPart,
  onPause,
}: {
  readonly appId: string;
  readonly selected: readonly Creator[];
  /** Reads a part of the list as CSV. */
  readonly readPart: (cursor: { readonly cursor?: string }) => Promise<CsvPart>;
  /** Opens the question before they are paused. */
  readonly onPause: () => void;
}) {
  const canWrite = usePermission('write');
  const [problem, setProblem] = useState<CopiedLinks | null>(null);
  const copy = useStep(async () => await copyLinks(appId, selected));
  const save = useStep(async () => {
    saveFile(await readSelected(readPart, new Set(selected.map(({ id }) => id))), 'creators.csv');
    return null;
  });
  const error = copy.error ?? save.error;
  return (
    <>
      <Button
        variant="default"
        size="xs"
        loading={copy.isPending}
        onClick={() =>
          copy.mutate(undefined, {
            onSuccess: (copied) => {
              if (copied.isCopied && copied.outcomes.failed.length === 0)
                sayDone(`${formatCountOf(copied.count, 'link')} copied.`);
              else setProblem(copied);
            },
          })
        }
      >
        Copy links
      </Button>
      <Button
        variant="default"
        size="xs"
        aria-label="CSV of the selected"
        loading={save.isPending}
        onClick={() => save.mutate(undefined)}
      >
        CSV
      </Button>
      <Button variant="default" size="xs" disabled={!canWrite} onClick={onPause}>
        Pause …
      </Button>
      {error !== null && <ErrorBox error={error} />}
      <Dialog isOpen={problem !== null} onClose={() => setProblem(null)} title="Copy links" size="lg">
        {problem !== null && <NotCopied copied={problem} />}
      </Dialog>
    </>
  );
}
