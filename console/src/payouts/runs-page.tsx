import { Anchor, Button, Group, Stack, Text } from '@mantine/core';
import { useState } from 'react';
import { Link, useParams } from 'react-router';
import { api, AS_CSV, read, readCsv } from '../api/client.ts';
import { formatCount, formatInstant, formatMoney } from '../format.ts';
import { Nothing } from '../lists.tsx';
import { NoPermission } from '../parts.tsx';
import { Tag } from '../parts/badges.tsx';
import { CsvButton } from '../parts/csv-button.tsx';
import { HeadAside } from '../parts/head-aside.tsx';
import { ListView, useList } from '../parts/list.tsx';
import { usePermission } from '../session.ts';
import { PAYOUT_KEYS } from './keys.ts';
import { PartsOfPayouts } from './parts-of-payouts.tsx';
import { DraftDialog, useDraftAtOnce } from './run-draft.tsx';
import { ReturnedMoney } from './run-resend.tsx';
import { useOpenRun } from './runs.ts';
import { drafterOf, keyName, progressOf, RUN_STATUSES } from './words.ts';
import type { Run } from './words.ts';

/** What a status leaves open: how far a run is, or who was not paid. */
function remark(run: Run): string | null {
  if (run.status === 'approved') return progressOf(run);
  const unpaid = run.itemCount - run.paidCount;
  return run.status === 'settled' && unpaid > 0 ? `${formatCount(unpaid)} not paid` : null;
}

function RunRow({ appId, run }: { readonly appId: string; readonly run: Run }) {
  const { word, tone } = RUN_STATUSES[run.status];
  const more = remark(run);
  return (
    <tr>
      <td>
        <Anchor component={Link} to={`/apps/${appId}/payouts/runs/${run.id}`} size="sm">
          {formatInstant(run.createdAt)}
        </Anchor>
      </td>
      <td>
        <Tag tone={tone}>{word}</Tag>
        {run.kind === 'resend' && (
          <Text size="xs" className="quiet" mt={2}>
            Sends returned money again
          </Text>
        )}
        {more !== null && (
          <Text size="xs" className="quiet" mt={2}>
            {more}
          </Text>
        )}
      </td>
      <td className="number" data-name="Creators">
        {formatCount(run.itemCount)}
      </td>
      <td className="number lead" data-name="Total">
        {formatMoney(run.totalCents)}
      </td>
      <td className="number" data-name={run.kind === 'pay' ? 'Booked' : 'Sent again'}>
        {formatMoney(run.paidCents)}
      </td>
      <td className="quiet">
        {run.approvedBy === null ? `Drafted by ${drafterOf(run)}` : `Approved by ${keyName(run.approvedBy)}`}
      </td>
    </tr>
  );
}

function Runs({ appId }: { readonly appId: string }) {
  const path = { appId };
  const list = useList(
    PAYOUT_KEYS.runs(appId),
    async (cursor) =>
      await read(api.GET('/apps/{appId}/payout-runs', { params: { path, query: { limit: 25, ...cursor } } })),
    { idOf: ({ id }) => id, isLive: true },
  );
  return (
    <>
      {list.rows.length > 0 && (
        <Group justify="flex-end" mb="xs">
          <CsvButton
            name="payout-runs"
            readPart={async (cursor) =>
              await readCsv(
                api.GET('/apps/{appId}/payout-runs', { params: { path, query: cursor }, ...AS_CSV }),
              )
            }
          />
        </Group>
      )}
      <ListView
        list={list}
        what="payout runs"
        nothing={
          <Nothing title="No payout runs yet">
            A run pays many creators at once. Draft one to see who would be paid and who is left out. A draft
            pays nothing.
          </Nothing>
        }
      >
        {(rows) => (
          <table className="rows">
            <thead>
              <tr>
                <th scope="col">Drafted</th>
                <th scope="col">Status</th>
                <th scope="col" className="number">
                  Creators
                </th>
                <th scope="col" className="number">
                  Total
                </th>
                <th scope="col" className="number">
                  Booked, or in new files
                </th>
                <th scope="col">By</th>
              </tr>
            </thead>
            <tbody>
              {rows.map((run) => (
                <RunRow key={run.id} appId={appId} run={run} />
              ))}
            </tbody>
          </table>
        )}
      </ListView>
    </>
  );
}

/**
 * The buttons that draft a run: at once with everybody to whom something is due, and by a dialog with terms. A draft that would take the
 * place of another one needs the dialog. While a run is being paid there can be no other.
 */
export function DraftButton({
  appId,
  open,
}: {
  readonly appId: string;
  /** Undefined until it is known. */
  readonly open: Run | null | undefined;
}) {
  const [isOpen, setIsOpen] = useState(false);
  const { begin, isPending, isShown, window } = useDraftAtOnce(appId, open != null, () => setIsOpen(true));
  if (open?.status === 'approved' && !isOpen && !isShown) return null;
  return (
    <Group gap="xs">
      {open == null ? (
        <>
          <Button
            variant="default"
            disabled={open === undefined || isPending}
            onClick={() => setIsOpen(true)}
          >
            Choose terms …
          </Button>
          <Button disabled={open === undefined} loading={isPending} onClick={begin}>
            Draft a payout run
          </Button>
        </>
      ) : (
        <Button onClick={() => setIsOpen(true)}>Draft a payout run …</Button>
      )}
      {window}
      <DraftDialog appId={appId} replaced={open ?? null} isOpen={isOpen} onClose={() => setIsOpen(false)} />
    </Group>
  );
}

function RunsPart({ appId }: { readonly appId: string }) {
  const open = useOpenRun(appId);
  return (
    <>
      <HeadAside>
        <DraftButton appId={appId} open={open} />
      </HeadAside>
      <PartsOfPayouts appId={appId} />
      <Stack gap="lg">
        <ReturnedMoney appId={appId} open={open ?? null} />
        <div>
          <Runs appId={appId} />
        </div>
      </Stack>
    </>
  );
}

export default function RunsPage() {
  const { appId = '' } = useParams();
  return usePermission('read') ? (
    <RunsPart key={appId} appId={appId} />
  ) : (
    <>
      <NoPermission permission="read" what="payout runs" />
    </>
  );
}
