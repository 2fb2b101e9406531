import { Button, Group, Stack, Text, TextInput } from '@mantine/core';
import { useState } from 'react';
import { api, given, read } from '../api/client.ts';
import type { Schemas } from '../api/client.ts';
import { useChange, useStep } from '../api/queries.ts';
import { Dialog } from '../dialog.tsx';
import { formatCountOf } from '../format.ts';
import { CopyLine, ErrorBox } from '../parts.tsx';
import { useChanges } from '../parts/changes.ts';
import { useFieldErrors } from '../parts/field-errors.tsx';
import { usePermission } from '../session.ts';
import { QrCode } from '../setup/qr.tsx';
import { shareTexts, spell } from './share.ts';

type ListedLink = Schemas['ListedLink'];

/** Where a link leads. */
interface Addresses {
  readonly url: string;
  readonly ios: string | null;
  readonly android: string | null;
}

const addressesOf = ({
  destinationUrl,
  destinations,
}: Pick<ListedLink, 'destinationUrl' | 'destinations'>): Addresses => ({
  url: destinationUrl,
  ios: destinations.ios,
  android: destinations.android,
});

const orNull = (text: string) => (text.trim() === '' ? null : text.trim());

function Destinations({ appId, link }: { readonly appId: string; readonly link: ListedLink }) {
  const canWrite = usePermission('write');
  // What was read first, or saved last. The link may be read again meanwhile.
  const [before, setBefore] = useState<Addresses>(() => addressesOf(link));
  const [url, setUrl] = useState(before.url);
  const [ios, setIos] = useState(before.ios ?? '');
  const [android, setAndroid] = useState(before.android ?? '');
  const { changesTo, onError } = useChanges(before);
  const changes = changesTo({ url: url.trim(), ios: orNull(ios), android: orNull(android) });
  const save = useChange(
    async ({ url: destinationUrl, ...destinations }: Partial<Addresses>) =>
      await read(
        api.PATCH('/apps/{appId}/links/{linkId}', {
          params: { path: { appId, linkId: link.id } },
          body: { ...given({ destinationUrl }), destinations },
        }),
      ),
    ['links', appId],
  );
  const show = (saved: ListedLink | Schemas['Link']) => {
    const stored = addressesOf(saved);
    setBefore(stored);
    setUrl(stored.url);
    setIos(stored.ios ?? '');
    setAndroid(stored.android ?? '');
  };
  const errors = useFieldErrors(save.error, {
    destinationUrl: 'Where it leads',
    'destinations.ios': 'On iOS instead',
    'destinations.android': 'On Android instead',
  });
  const isChanged = Object.keys(changes).length > 0;
  return (
    <form
      {...errors.root}
      onSubmit={(event) => {
        event.preventDefault();
        save.mutate(changes, { onSuccess: show, onError });
      }}
    >
      <Stack gap="xs">
        <TextInput
          label="Where it leads"
          required
          withAsterisk={false}
          disabled={!canWrite}
          value={url}
          {...errors.at('destinationUrl')}
          onChange={(event) => setUrl(event.currentTarget.value)}
        />
        <TextInput
          label="On iOS instead"
          placeholder="https://apps.apple.com/app/…"
          disabled={!canWrite}
          value={ios}
          {...errors.at('destinations.ios')}
          onChange={(event) => setIos(event.currentTarget.value)}
        />
        <TextInput
          label="On Android instead"
          placeholder="https://play.google.com/store/…"
          disabled={!canWrite}
          value={android}
          {...errors.at('destinations.android')}
          onChange={(event) => setAndroid(event.currentTarget.value)}
        />
        {errors.rest}
        <Group>
          <Button type="submit" variant="default" loading={save.isPending} disabled={!canWrite || !isChanged}>
            Save the destinations
          </Button>
          <Text size="sm" className="quiet" role="status">
            {save.isSuccess && !isChanged ? 'Saved. New clicks go there.' : ''}
          </Text>
        </Group>
      </Stack>
    </form>
  );
}

function Activity({ appId, link }: { readonly appId: string; readonly link: ListedLink }) {
  const canWrite = usePermission('write');
  const change = useStep(
    async () =>
      await read(
        api.PATCH('/apps/{appId}/links/{linkId}', {
          params: { path: { appId, linkId: link.id } },
          body: { active: !link.active },
        }),
      ),
    ['links', appId],
  );
  return (
    <Stack gap="xs">
      <Text size="sm">
        {link.active
          ? 'An inactive link goes on leading to your app, but counts nothing, and its code is refused.'
          : 'The link is inactive: it leads to your app and counts nothing.'}
      </Text>
      {change.error !== null && <ErrorBox error={change.error} />}
      <Group>
        <Button
          variant="default"
          disabled={!canWrite}
          loading={change.isPending}
          onClick={() => change.mutate(undefined)}
        >
          {link.active ? 'Deactivate' : 'Activate'}
        </Button>
      </Group>
    </Stack>
  );
}

function Details({ appId, link }: { readonly appId: string; readonly link: ListedLink }) {
  return (
    <Stack gap="md">
      <Text size="sm" className="quiet">
        Of {link.affiliateName}, {formatCountOf(link.clicks, 'click')}.
      </Text>
      <Group align="flex-start" gap="xl">
        <Stack gap="xs" style={{ flex: '1 1 300px' }}>
          <Text size="sm" fw={600}>
            To share
          </Text>
          <CopyLine text={link.url} what="the link" />
          <Text size="sm" fw={600}>
            Opens the installed app
          </Text>
          <CopyLine text={link.directUrl} what="the direct link" />
          <Text size="sm" fw={600}>
            Link code to say aloud
          </Text>
          <CopyLine text={link.slug} what="the link code" />
          <Text size="sm" className="quiet">
            Spelled: {spell(link.slug)}. Capital letters do not matter.
          </Text>
        </Stack>
        <QrCode url={link.url} name={link.slug} />
      </Group>
      <Stack gap="xs">
        <Text size="sm" fw={600}>
          Texts to post
        </Text>
        {shareTexts(link.url, link.slug).map((text, index) => (
          <CopyLine key={text} text={text} what={`text ${index + 1}`} />
        ))}
      </Stack>
      <Destinations appId={appId} link={link} />
      <Activity appId={appId} link={link} />
    </Stack>
  );
}

/** Everything about one link. */
export function LinkDialog({
  appId,
  link,
  onClose,
}: {
  readonly appId: string;
  readonly link: ListedLink | null;
  readonly onClose: () => void;
}) {
  return (
    <Dialog isOpen={link !== null} onClose={onClose} title={link === null ? '' : link.slug} size="lg">
      {link !== null && <Details key={link.id} appId={appId} link={link} />}
    </Dialog>
  );
}
