import { Badge, Group, Text } from '@mantine/core';
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
