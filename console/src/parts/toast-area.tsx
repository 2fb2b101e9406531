import '@mantine/notifications/styles.css';
import { Group } from '@mantine/core';
import { notifications, Notifications } from '@mantine/notifications';
import { Check } from 'lucide-react';
import { Link } from 'react-router';
import { ICON } from './icon.ts';
import type { ToastLink } from './toast.tsx';

/** How long a message stays, ms. */
const SHOWN_MS = 6_000;

/** Where the messages appear: at the lower edge, above the page, and above the bar of a phone. Once on a page. */
export function ToastArea() {
  return <Notifications position="bottom-right" limit={3} autoClose={SHOWN_MS} zIndex={400} />;
}

/** Shows a message (`sayDone`). */
export function show(text: string, link?: ToastLink): void {
  const id = notifications.show({
    role: 'status',
    color: 'cyan',
    icon: <Check {...ICON} />,
    withBorder: true,
    closeButtonProps: { 'aria-label': 'Close the message' },
    message: (
      <Group gap="sm" justify="space-between" wrap="nowrap">
        <span>{text}</span>
        {link !== undefined && (
          <Link to={link.to} onClick={() => notifications.hide(id)}>
            {link.text}
          </Link>
        )}
      </Group>
    ),
  });
}
