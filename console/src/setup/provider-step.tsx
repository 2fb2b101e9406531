import { Button, Group, List, NativeSelect, PasswordInput, Stack, Tabs, Text } from '@mantine/core';
import { useState } from 'react';
import { useSearchParams } from 'react-router';
import { api, read } from '../api/client.ts';
import type { Setup } from '../api/client.ts';
import { KEYS, useChange } from '../api/queries.ts';
import { formatAgo } from '../format.ts';
import { CopyLine, ErrorBox, Secret } from '../parts.tsx';
import { TEST_PURCHASES } from './snippets.ts';

type Provider = Setup['providers'][number];
type Environment = NonNullable<Provider['environment']>;

/** Splits the hint of the service into its sentences. Event names such as `invoice.paid` contain no space after their dot. */
function sentencesOf(hint: string): string[] {
  return hint.split(/(?<=[.:]) (?=[A-Z])/);
}

function deliveryText({ configured, lastDelivery, title }: Provider): string {
  if (!configured) return `${title} is not connected.`;
  if (lastDelivery === null) return `Ready to receive. ${title} has not sent anything yet.`;
  const ago = formatAgo(lastDelivery.receivedAt);
  return lastDelivery.signatureValid
    ? `Connected. The last webhook arrived ${ago} (${lastDelivery.processingStatus}).`
    : `A request in the name of ${title} was refused ${ago}. The page Deliveries says why.`;
}

function ProviderPanel({ appId, provider }: { readonly appId: string; readonly provider: Provider }) {
  const { provider: name, title, generatesSecret, needsEnvironment, configured } = provider;
  const [secret, setSecret] = useState('');
  const [environment, setEnvironment] = useState<Environment>(provider.environment ?? 'production');
  const store = useChange(
    async () =>
      await read(
        api.PUT('/apps/{appId}/webhooks/{provider}/secret', {
          params: { path: { appId, provider: name } },
          body: {
            ...(generatesSecret ? { secret: secret.trim() } : {}),
            ...(needsEnvironment ? { environment } : {}),
          },
        }),
      ),
    KEYS.setup(appId),
  );
  const isPublic = provider.url.startsWith('https:');
  const hasTestPurchase = name in TEST_PURCHASES;
  const action = generatesSecret ? 'Store the secret' : 'Create a secret';
  return (
    <Stack gap="md" pt="md">
      <Text size="sm">{deliveryText(provider)}</Text>
      <div>
        <Text size="sm" fw={600} mb={4}>
          Webhook URL
        </Text>
        <CopyLine text={provider.url} what={`the webhook URL of ${title}`} />
        {!isPublic && (
          <Text size="sm" className="quiet" mt={4}>
            {title} can post only to a public https address: start the service with PUBLIC_URL=https://… (the
            operator does this).{' '}
            {hasTestPurchase
              ? 'To try everything before that, this URL is enough: the last step has a command that sends a purchase.'
              : 'To try everything on this computer, use RevenueCat or Stripe in an app of its own: the last step then has a command that sends a purchase.'}
          </Text>
        )}
      </div>
      <div>
        <Text size="sm" fw={600} mb={4}>
          What to do at {title}
        </Text>
        <List type="ordered" size="sm" spacing={6} pr="md">
          {!generatesSecret && !configured && <List.Item>Create the secret below.</List.Item>}
          {sentencesOf(provider.setupHint).map((sentence) => (
            <List.Item key={sentence}>{sentence}</List.Item>
          ))}
        </List>
      </div>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          store.mutate(undefined, { onSuccess: () => setSecret('') });
        }}
      >
        <Stack gap="sm" maw={460}>
          {generatesSecret && (
            <PasswordInput
              label={`Signing secret of ${title}`}
              description={`Stored encrypted, and never shown again.${name === 'stripe' && !isPublic ? ' For a trial on this computer, make one up, such as whsec_plainly_fake.' : ''}`}
              autoComplete="off"
              required
              withAsterisk={false}
              value={secret}
              onChange={(event) => setSecret(event.currentTarget.value)}
            />
          )}
          {needsEnvironment && (
            <NativeSelect
              label="Environment"
              description={`The webhooks of ${title} do not say which one they are from.`}
              data={['production', 'sandbox']}
              value={environment}
              onChange={(event) => setEnvironment(event.currentTarget.value as Environment)}
            />
          )}
          {store.error !== null && <ErrorBox error={store.error} />}
          <Group gap="sm">
            <Button type="submit" variant={configured ? 'default' : 'filled'} loading={store.isPending}>
              {configured ? action.replace('the', 'another').replace('a secret', 'a new secret') : action}
            </Button>
            {configured && (
              <Text size="xs" className="quiet" style={{ flex: 1 }}>
                The previous secret stays valid for a day.
              </Text>
            )}
          </Group>
        </Stack>
      </form>
      {name === 'revenuecat' && configured && <SigningSecret appId={appId} provider={provider} />}
      {store.data?.secret !== undefined && (
        <Secret text={store.data.secret} what="the secret">
          {isPublic || !hasTestPurchase
            ? `Paste it at ${title} as the step above says.`
            : 'Keep it for the command of the last step.'}{' '}
          Lost it? Create a new one.
        </Secret>
      )}
    </Stack>
  );
}

/** The second secret of a provider that signs its webhooks beside the token. It is optional. */
function SigningSecret({ appId, provider }: { readonly appId: string; readonly provider: Provider }) {
  const { provider: name, title, signed = false } = provider;
  const [signingSecret, setSigningSecret] = useState('');
  const store = useChange(
    async (given: string | null) =>
      await read(
        api.PUT('/apps/{appId}/webhooks/{provider}/secret', {
          params: { path: { appId, provider: name } },
          body: { signingSecret: given, graceSeconds: 0 },
        }),
      ),
    KEYS.setup(appId),
  );
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        store.mutate(signingSecret.trim(), { onSuccess: () => setSigningSecret('') });
      }}
    >
      <Stack gap="sm" maw={460}>
        <PasswordInput
          label={`Signing secret of ${title}`}
          description={
            signed
              ? 'Webhooks need the token and a signature. Send a test event: the line above says whether it was accepted. RevenueCat repeats what was refused.'
              : `Optional. If ${title} signs your webhooks, paste its signing secret: from then on a stolen token alone is refused. Send a test event right after: the line above says whether it was accepted.`
          }
          autoComplete="off"
          required
          withAsterisk={false}
          value={signingSecret}
          onChange={(event) => setSigningSecret(event.currentTarget.value)}
        />
        {store.error !== null && <ErrorBox error={store.error} />}
        <Group gap="sm">
          <Button type="submit" variant="default" loading={store.isPending}>
            {signed ? 'Store another signing secret' : 'Require a signature'}
          </Button>
          {signed && (
            <Button variant="subtle" disabled={store.isPending} onClick={() => store.mutate(null)}>
              Accept the token alone
            </Button>
          )}
        </Group>
      </Stack>
    </form>
  );
}

export function ProviderStep({ appId, setup }: { readonly appId: string; readonly setup: Setup }) {
  const [first] = setup.providers;
  const [query] = useSearchParams();
  const shown =
    setup.providers.find(({ provider }) => provider === query.get('provider')) ??
    setup.providers.find(({ configured }) => configured) ??
    first;
  return (
    <Stack gap={4}>
      <Text size="sm" className="quiet">
        Choose where your subscriptions are billed. Connect one provider per store. If two report the same
        purchase, it still earns only once.
      </Text>
      <Tabs defaultValue={shown?.provider ?? null} keepMounted={false} mt="xs">
        <Tabs.List>
          {setup.providers.map(({ provider, title, configured }) => (
            <Tabs.Tab
              key={provider}
              value={provider}
              rightSection={configured ? <span aria-label="connected">✓</span> : null}
            >
              {title}
            </Tabs.Tab>
          ))}
        </Tabs.List>
        {setup.providers.map((provider) => (
          <Tabs.Panel key={provider.provider} value={provider.provider}>
            <ProviderPanel appId={appId} provider={provider} />
          </Tabs.Panel>
        ))}
      </Tabs>
    </Stack>
  );
}
