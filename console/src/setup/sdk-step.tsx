import { Anchor, Button, Code, Group, Stack, Tabs, Text } from '@mantine/core';
import { api, read, serviceUrl } from '../api/client.ts';
import type { Setup } from '../api/client.ts';
import { KEYS, useChange } from '../api/queries.ts';
import { formatCountOf } from '../format.ts';
import { CodeBlock, ErrorBox } from '../parts.tsx';
import { knownSdkKey, rememberSdkKey } from './sdk-key.ts';
import { SNIPPETS } from './snippets.ts';

export function SdkStep({ appId, setup }: { readonly appId: string; readonly setup: Setup }) {
  const rotate = useChange(async () => {
    const { sdkKey } = await read(
      api.POST('/apps/{appId}/sdk-key/rotate', { params: { path: { appId } }, body: {} }),
    );
    rememberSdkKey(appId, sdkKey);
  }, KEYS.setup(appId));
  const known = knownSdkKey(appId);
  // Webhook URLs begin with the public address, which apps need, too.
  const [publicUrl = ''] = (setup.providers[0]?.url ?? '').split('/webhooks/');
  return (
    <Stack gap="sm">
      <Text size="sm">
        Two calls: <b>start</b> at each launch, and <b>identify</b> when somebody signs in. The user id must
        be exactly the one that your billing provider reports; otherwise no purchase can be attributed.
      </Text>
      <Text size="sm">
        The packages are in no registry yet: build them with <Code>sdks/release.sh</Code>. To try everything
        without an app, use the commands under HTTP.
      </Text>
      <Text size="sm" className="quiet">
        The first purchase needs the live key, which is meant here. A test key, <Code>pk_test_…</Code>, comes
        from the API and is for builds that are not for customers: what it reports earns nothing.
      </Text>
      {known === undefined ? (
        <Group gap="sm">
          <Text size="sm" className="quiet" style={{ flex: '1 1 240px' }}>
            {setup.sdkKey === null
              ? 'The app has no SDK key that is valid. Create one for the code below.'
              : `The SDK key ${setup.sdkKey} was shown when it was created. The code below has a place for it. If nobody has it, create a new one; the old one works for another day.`}
          </Text>
          <Button variant="default" loading={rotate.isPending} onClick={() => rotate.mutate(undefined)}>
            Create a new SDK key
          </Button>
        </Group>
      ) : (
        <Text size="sm" className="quiet">
          The code contains your SDK key. Copy it before you close this page: later only its first and last
          characters are shown, since the service keeps only its hash. It is no secret: every copy of your app
          contains it.
        </Text>
      )}
      {rotate.error !== null && <ErrorBox error={rotate.error} />}
      <Tabs defaultValue={SNIPPETS[0]?.platform ?? null} keepMounted={false}>
        <Tabs.List>
          {SNIPPETS.map(({ platform }) => (
            <Tabs.Tab key={platform} value={platform}>
              {platform}
            </Tabs.Tab>
          ))}
        </Tabs.List>
        {SNIPPETS.map(({ platform, code }) => (
          <Tabs.Panel key={platform} value={platform} pt="sm">
            <CodeBlock code={code(known ?? 'SDK_KEY', publicUrl)} what={`the code for ${platform}`} />
          </Tabs.Panel>
        ))}
      </Tabs>
      <Text size="sm" className="quiet">
        In the last 30 days: {formatCountOf(setup.installs, 'attributed install')},{' '}
        {formatCountOf(setup.identified, 'identified user')}. All calls are described in the{' '}
        <Anchor href={new URL('docs', serviceUrl).href} target="_blank" rel="noreferrer">
          API documentation
        </Anchor>
        .
      </Text>
    </Stack>
  );
}
