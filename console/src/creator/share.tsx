import { Button, Code, Group, Stack } from '@mantine/core';
import { lazy, Suspense, useState } from 'react';
import type { Schemas } from '../api/client.ts';
import { CopyButton, Waiting } from '../parts.tsx';

const QrCode = lazy(async () => ({ default: (await import('../setup/qr.tsx')).QrCode }));

/** Whether the browser has a dialog to share. It has none over http and on most desktops. */
const canShare = typeof navigator.share === 'function';

/** Shares a link: by the dialog of the phone, where it has one, else by copying it; and by its QR code. */
export function Share({
  link: { slug, url },
  appName,
}: {
  readonly link: Pick<Schemas['CreatorLink'], 'slug' | 'url'>;
  readonly appName: string;
}) {
  const [showsQr, setShowsQr] = useState(false);
  return (
    <Stack gap="xs">
      <Code className="line" style={{ alignSelf: 'flex-start', maxWidth: '100%', padding: '5px 8px' }}>
        {url}
      </Code>
      <Group gap="xs">
        {canShare && (
          <Button
            size="compact-sm"
            aria-label={`Share the link ${slug}`}
            onClick={() => void navigator.share({ title: appName, url }).catch(() => {})}
          >
            Share
          </Button>
        )}
        <CopyButton text={url} what={`the link ${slug}`} variant={canShare ? 'default' : 'filled'} />
        <Button
          variant="default"
          size="compact-sm"
          aria-expanded={showsQr}
          aria-label={`QR code of ${slug}`}
          onClick={() => setShowsQr(!showsQr)}
        >
          QR code
        </Button>
      </Group>
      {showsQr && (
        <Suspense fallback={<Waiting what="the QR code" />}>
          <QrCode url={url} name={slug} />
        </Suspense>
      )}
    </Stack>
  );
}
