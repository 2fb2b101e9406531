import { Button, Group, Stack, Text, Textarea } from '@mantine/core';
import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { useChange } from '../api/queries.ts';
import { Dialog } from '../dialog.tsx';
import { ErrorBox } from '../parts.tsx';
import { Tag } from '../parts/badges.tsx';
import { addPasted, parsePasted } from './paste.ts';
import type { PastedRow, RowResult } from './paste.ts';

const TONES = { added: 'good', exists: 'plain', failed: 'bad' } as const;
const STATES = { added: 'Added', exists: 'Known', failed: 'Not added' } as const;

function Results({
  rows,
  results,
}: {
  readonly rows: readonly PastedRow[];
  readonly results: ReadonlyMap<number, RowResult>;
}) {
  const added = [...results.values()].filter(({ state }) => state === 'added').length;
  return (
    <Stack gap="xs">
      <Text size="sm" fw={600} role="status">
        {added} of {rows.length} added
      </Text>
      <div
        style={{ maxHeight: 320, overflow: 'auto' }}
        tabIndex={0}
        role="region"
        aria-label="Result per line"
      >
        <table className="rows">
          <thead>
            <tr>
              <th scope="col">Line</th>
              <th scope="col">Result</th>
            </tr>
          </thead>
          <tbody>
            {rows.map(({ line, creator }) => {
              const result = results.get(line);
              return (
                <tr key={line}>
                  <td data-name="Line">{line}</td>
                  <td>
                    {result !== undefined && <Tag tone={TONES[result.state]}>{STATES[result.state]}</Tag>}{' '}
                    {creator?.name}
                    <Text size="xs" className="quiet">
                      {result?.text}
                    </Text>
                  </td>
                </tr>
              );
            })}
          </tbody>
        </table>
      </div>
    </Stack>
  );
}

function Paste({ appId, onClose }: { readonly appId: string; readonly onClose: () => void }) {
  const client = useQueryClient();
  const [text, setText] = useState('');
  const [keys] = useState(() => new Map<string, string>());
  const add = useChange(async () => {
    try {
      const rows = parsePasted(text);
      return { rows, results: await addPasted(appId, rows, keys) };
    } finally {
      // An attempt that failed has added some, perhaps.
      void client.invalidateQueries({ queryKey: ['creators', appId] });
    }
  });
  if (add.data !== undefined) {
    return (
      <Stack>
        <Results {...add.data} />
        <Group justify="flex-end">
          <Button onClick={onClose}>Done</Button>
        </Group>
      </Stack>
    );
  }
  return (
    <Stack>
      <Textarea
        label="Lines"
        description="Name, e-mail address, external id, commission in percent. Only the name is required. A first line with these names may change their order. Lines with an external id can be sent again."
        placeholder={'Ada Lovelace,ada@example.com,crm-1,25\nGrace Hopper'}
        autosize
        minRows={6}
        maxRows={14}
        data-autofocus
        spellCheck={false}
        value={text}
        onChange={(event) => setText(event.currentTarget.value)}
      />
      {add.error !== null && <ErrorBox error={add.error} />}
      <Group justify="flex-end">
        <Button variant="default" onClick={onClose}>
          Cancel
        </Button>
        <Button loading={add.isPending} disabled={text.trim() === ''} onClick={() => add.mutate(undefined)}>
          Add the creators
        </Button>
      </Group>
    </Stack>
  );
}

/** Adds many creators from lines of CSV, with a result per line. */
export default function PasteDialog({
  appId,
  isOpen,
  onClose,
}: {
  readonly appId: string;
  readonly isOpen: boolean;
  readonly onClose: () => void;
}) {
  return (
    <Dialog isOpen={isOpen} onClose={onClose} title="Add creators from CSV" size="lg">
      <Paste appId={appId} onClose={onClose} />
    </Dialog>
  );
}
