import { Anchor, Button, Group, Stack, Text, TextInput } from '@mantine/core';
import { useState } from 'react';
import { Link } from 'react-router';
import { api, read } from '../api/client.ts';
import type { Schemas } from '../api/client.ts';
import { useChange } from '../api/queries.ts';
import { Confirm, Dialog } from '../dialog.tsx';
import { formatInstant } from '../format.ts';
import { Section } from '../lists.tsx';
import { ErrorBox, Waiting } from '../parts.tsx';
import { Tag } from '../parts/badges.tsx';
import { useSlack } from './queries.ts';
import { ALERT_KEYS } from './words.ts';
import { sayDone } from '../parts/toast.tsx';

type Slack = Schemas['SlackUrl'];

/** Sets the Slack URL, or replaces it. It is never shown again. */
function UrlForm({ appId, onClose }: { readonly appId: string; readonly onClose: () => void }) {
  const [url, setUrl] = useState('');
  const save = useChange(
    async () =>
      await read(
        api.PUT('/apps/{appId}/slack-url', { params: { path: { appId } }, body: { url: url.trim() } }),
      ),
    ALERT_KEYS.slack(appId),
  );
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        save.mutate(undefined, {
          onSuccess: () => {
            sayDone('Alerts go to this URL. Send a test to see one.');
            onClose();
          },
        });
      }}
    >
      <Stack>
        <TextInput
          label="URL of an incoming webhook"
          description="Slack shows it under “Incoming Webhooks” of an app. Other services that accept {“text”: “…”} work, too. It is a secret, and is not shown again."
          placeholder="https://hooks.slack.com/services/…"
          type="password"
          autoComplete="off"
          required
          withAsterisk={false}
          maxLength={2000}
          spellCheck={false}
          data-autofocus
          value={url}
          onChange={(event) => setUrl(event.currentTarget.value)}
        />
        {save.error !== null && <ErrorBox error={save.error} />}
        <Group justify="flex-end">
          <Button variant="default" onClick={onClose}>
            Cancel
          </Button>
          <Button type="submit" loading={save.isPending}>
            Save
          </Button>
        </Group>
      </Stack>
    </form>
  );
}

/** Removes the Slack URL, after a question. */
function RemoveUrl({ appId, onClose }: { readonly appId: string; readonly onClose: () => void }) {
  const remove = useChange(
    async () => await read(api.DELETE('/apps/{appId}/slack-url', { params: { path: { appId } } })),
    ALERT_KEYS.slack(appId),
  );
  return (
    <Confirm
      action="Remove the URL"
      color="red.9"
      change={remove}
      onConfirm={() => remove.mutate(undefined, { onSuccess: onClose })}
      onClose={onClose}
    >
      Slack hears of no further alert, and messages that wait are not sent. Alerts still open and close on
      this page.
    </Confirm>
  );
}

function State({ slack }: { readonly slack: Slack }) {
  const { host, setAt, deactivatedAt, failingSince } = slack;
  const [tone, word, more] =
    deactivatedAt !== null
      ? ([
          'bad',
          'Not active',
          `The service deactivated it ${formatInstant(deactivatedAt)}. Set the URL again.`,
        ] as const)
      : failingSince !== null
        ? (['wait', 'Failing', `No attempt succeeded since ${formatInstant(failingSince)}.`] as const)
        : (['good', 'Active', setAt === null ? '' : `Set ${formatInstant(setAt)}.`] as const);
  return (
    <div>
      <Group gap="sm">
        <Text size="sm" className="code-text" style={{ overflowWrap: 'anywhere' }}>
          {host}
        </Text>
        <Tag tone={tone}>{word}</Tag>
      </Group>
      <Text size="xs" className="quiet" mt={2}>
        {more}
      </Text>
    </div>
  );
}

function Shown({ appId, slack }: { readonly appId: string; readonly slack: Slack }) {
  const [dialog, setDialog] = useState<'set' | 'remove' | null>(null);
  const close = () => setDialog(null);
  const test = useChange(
    async () => await read(api.POST('/apps/{appId}/slack-url/test', { params: { path: { appId } } })),
    ['webhook-messages', appId],
  );
  const { isSet, deactivatedAt } = slack;
  return (
    <Stack p="md" gap="sm">
      <Group justify="space-between" gap="sm">
        {isSet ? <State slack={slack} /> : <Text size="sm">No URL is set.</Text>}
        <Group gap={6}>
          {isSet && deactivatedAt === null && (
            <Button
              variant="default"
              size="compact-sm"
              loading={test.isPending}
              onClick={() => test.mutate(undefined)}
            >
              Send a test
            </Button>
          )}
          <Button variant="default" size="compact-sm" onClick={() => setDialog('set')}>
            {isSet ? 'Replace the URL' : 'Set a URL'}
          </Button>
          {isSet && (
            <Button variant="default" size="compact-sm" onClick={() => setDialog('remove')}>
              Remove
            </Button>
          )}
        </Group>
      </Group>
      <div role="status">
        {test.data !== undefined && (
          <Text size="sm">
            A test message is on its way.{' '}
            <Anchor component={Link} to={`/apps/${appId}/webhooks?message=${test.data.id}`} size="sm">
              See the attempt
            </Anchor>
          </Text>
        )}
      </div>
      {test.error !== null && <ErrorBox error={test.error} />}
      <Dialog
        isOpen={dialog !== null}
        onClose={close}
        title={dialog === 'remove' ? 'Remove the Slack URL?' : 'Slack URL'}
      >
        {dialog === 'set' && <UrlForm appId={appId} onClose={close} />}
        {dialog === 'remove' && <RemoveUrl appId={appId} onClose={close} />}
      </Dialog>
    </Stack>
  );
}

/** The Slack URL of an app: whether it is set, how it works, and a test. */
export function SlackSection({ appId, canChange }: { readonly appId: string; readonly canChange: boolean }) {
  const slack = useSlack(appId, canChange);
  return (
    <Section
      id="slack"
      title="Slack"
      hint={
        canChange
          ? 'Slack gets a line of text when an alert opens and when it closes.'
          : 'Seeing and setting the Slack URL needs the permission “setup”, which you do not have.'
      }
    >
      {canChange && (
        <div className="surface">
          {slack.data !== undefined ? (
            <Shown appId={appId} slack={slack.data} />
          ) : slack.error === null ? (
            <Waiting what="the Slack URL" />
          ) : (
            <ErrorBox error={slack.error} retry={() => void slack.refetch()} />
          )}
        </div>
      )}
    </Section>
  );
}
