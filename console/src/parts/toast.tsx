import '@mantine/notifications/styles.css';
import { Group } from '@mantine/core';
import { notifications, Notifications } from '@mantine/notifications';
import { Check } from 'lucide-react';
import { Link } from 'react-router';
import { ICON } from './icon.ts';

/** How long a message stays, ms. */
const SHOWN_MS = 6_000;

/** Where the messages appear: at the lower edge, above the page, and above the bar of a phone. Once on a page. */
export function Toasts() {
  return <Notifications position="bottom-right" limit={3} autoClose={SHOWN_MS} zIndex={400} />;
}

/** Says for a few seconds that something was done, and may lead to it. */
export function sayDone(text: string, link?: { readonly to: string; readonly text: string }): void {
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
