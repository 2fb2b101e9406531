import { Badge, Group, Text } from '@mantine/core';
import type { ReactNode } from 'react';
import { useChange } from './api/query-client.ts';
import { Confirm } from './dialog.tsx';
import { formatBrowser, formatInstant } from './format.ts';

/** The browser of a session, in a row of a table: its name, whether it is this one, and since when it is signed in. */
export function SessionBrowser({
  session,
}: {
  readonly session: {
    readonly userAgent: string | null;
    readonly isCurrent: boolean;
    readonly createdAt: number;
  };
}) {
  return (
    <>
      <Group gap={8}>
        <Text component="span" size="sm" fw={500}>
          {formatBrowser(session.userAgent)}
        </Text>
        {session.isCurrent && (
          <Badge size="sm" radius="sm" variant="light" tt="none">
            this one
          </Badge>
        )}
      </Group>
      <Text size="xs" className="quiet">
        Since {formatInstant(session.createdAt)}
      </Text>
    </>
  );
}

/** Asks before the session of another browser ends, or those of all others. Closes when `end` has ended them. */
export function ConfirmEnd({
  action,
  end,
  listKey,
  onClose,
  children,
}: {
  readonly action: string;
  readonly end: () => Promise<unknown>;
  /** The key of the list of sessions, which is read again. */
  readonly listKey: readonly string[];
  readonly onClose: () => void;
  readonly children: ReactNode;
}) {
  const change = useChange(end, listKey);
  return (
    <Confirm
      action={action}
      color="red.9"
      change={change}
      onConfirm={() => change.mutate(undefined, { onSuccess: onClose })}
      onClose={onClose}
    >
      {children}
    </Confirm>
  );
}
