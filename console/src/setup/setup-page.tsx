import { Group, Progress, Stack, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import type { ReactNode } from 'react';
import { Link, useParams, useSearchParams } from 'react-router';
import { api, Problem, read } from '../api/client.ts';
import type { Setup } from '../api/client.ts';
import { KEYS, LIVE_MS } from '../api/queries.ts';
import { formatAgo, formatCountOf, formatInstant } from '../format.ts';
import { SettingsParts } from '../navigation.tsx';
import { CodeBlock, ErrorBox, NoPermission, Waiting } from '../parts.tsx';
import { usePermission } from '../session.ts';
import { allArrive, CodesStep, noneArrived } from './codes-step.tsx';
import { CreatorStep } from './creator-step.tsx';
import { IdentityStep, useIdentity, waitsForPurchase } from './identity-step.tsx';
import { ProviderStep } from './provider-step.tsx';
import { SdkStep } from './sdk-step.tsx';
import { SelfTestStep, useSelfTest } from './self-test-step.tsx';
import { TEST_PURCHASES } from './snippets.ts';
import { Step } from './step.tsx';

interface StepSpec {
  readonly id: string;
  readonly title: string;
  readonly summary: string;
  readonly isDone: boolean;
  readonly body: ReactNode;
}

/** The latest webhook that a provider itself sent and that was accepted. */
function lastAccepted({ providers }: Setup): { readonly title: string; readonly receivedAt: number } | null {
  const accepted = providers.flatMap(({ title, lastAcceptedAt }) =>
    lastAcceptedAt === null ? [] : [{ title, receivedAt: lastAcceptedAt }],
  );
  return accepted.toSorted((a, b) => b.receivedAt - a.receivedAt)[0] ?? null;
}

/** Says how to send a purchase where no billing provider can. */
function TestPurchase({ setup }: { readonly setup: Setup }) {
  const connected = setup.providers.filter(({ configured }) => configured);
  const provider = connected.find(({ provider: name }) => name in TEST_PURCHASES);
  const command = TEST_PURCHASES[provider?.provider ?? ''];
  const code = setup.purchaseCodes?.namespaces.find(({ namespace }) => namespace === 'attribute')?.codes[0];
  const comesWithCode = provider?.provider === 'revenuecat' && code !== undefined;
  if (provider === undefined || command === undefined) {
    return (
      <Text size="sm">
        Billing providers cannot reach this address. To try a purchase on your own computer, connect
        RevenueCat or Stripe in the first step: then a command is shown here.
      </Text>
    );
  }
  return (
    <>
      <Text size="sm">
        Billing providers cannot reach this address. Send a purchase as {provider.title} would, in a terminal
        of this computer. SECRET is the secret of the first step, and USER_ID{' '}
        {comesWithCode
          ? `any new user id: the purchase comes with the code of ${code.affiliateName}.`
          : 'the user id that the app passed to identify.'}
      </Text>
      <CodeBlock code={command(provider.url, code?.value)} what={`the purchase of ${provider.title}`} />
      <Text size="sm" className="quiet">
        It counts like a purchase with real money: it creates a commission, which cannot be deleted. So send
        it only to an app that you created for tests.
      </Text>
    </>
  );
}

function DeliveryStep({ appId, setup }: { readonly appId: string; readonly setup: Setup }) {
  const accepted = lastAccepted(setup);
  const refused = setup.providers.filter(({ lastDelivery }) => lastDelivery?.signatureValid === false);
  const isPublic = setup.providers.every(({ url }) => url.startsWith('https:'));
  return (
    <Stack gap="sm" aria-live="polite">
      {accepted === null && refused.length === 0 && (
        <Group gap="sm" wrap="nowrap">
          <span className="pulse" aria-hidden="true" />
          <Text size="sm">
            Waiting for the first real delivery. {isPublic && 'Send a test event at your billing provider.'}{' '}
            It appears here within seconds.
          </Text>
        </Group>
      )}
      {refused.map(({ title, lastDelivery }) => (
        <Text size="sm" key={title}>
          A request in the name of {title} was refused {formatAgo(lastDelivery?.receivedAt ?? 0)}. Mostly the
          secret differs: enter the same one on both sides. The page Deliveries says why.
        </Text>
      ))}
      {accepted !== null && (
        <Text size="sm">
          A webhook of {accepted.title} arrived {formatAgo(accepted.receivedAt)} and was accepted.
        </Text>
      )}
      {setup.firstSaleAt !== null ? (
        <Text size="sm">
          The first attributed purchase was made on {formatInstant(setup.firstSaleAt)}. The set-up is
          complete. Next, see what it earned on the page{' '}
          <Link to={`/apps/${appId}/commissions`}>Commissions</Link>, and pay it on the page{' '}
          <Link to={`/apps/${appId}/payouts`}>Payouts</Link> as soon as it is due.
        </Text>
      ) : (
        isPublic && (
          <Text size="sm">
            The last step is a purchase with real money: open the link on a phone, install the app, sign in,
            and buy; or buy with a purchase code of a creator. A sandbox purchase shows on the page Events
            that everything works; it never earns, so it does not end the set-up.
          </Text>
        )
      )}
      {!isPublic && <TestPurchase setup={setup} />}
    </Stack>
  );
}

function Checklist({ appId, setup }: { readonly appId: string; readonly setup: Setup }) {
  const identity = useIdentity(appId, setup, usePermission('read'));
  const test = useSelfTest(appId);
  const connected = setup.providers.filter(({ configured }) => configured);
  const accepted = lastAccepted(setup);
  const hasPassed = test.report?.ok ?? setup.selfTestPassedAt !== null;
  const isMatching = identity.data?.verdict === 'ok';
  const codes = setup.purchaseCodes;
  // Codes lead to creators without an install.
  const needsNoSdk =
    codes !== undefined && !setup.hasActiveLink && setup.installs === 0 && setup.identified === 0;
  const steps: readonly StepSpec[] = [
    {
      id: 'provider',
      title: 'Connect your billing provider',
      summary: connected.map(({ title }) => title).join(', '),
      isDone: connected.length > 0,
      body: <ProviderStep appId={appId} setup={setup} />,
    },
    {
      id: 'self-test',
      title: 'Test the connection',
      summary: hasPassed ? 'Passed' : test.report === null ? '' : 'Something to fix',
      isDone: hasPassed || accepted !== null,
      body: <SelfTestStep setup={setup} test={test} />,
    },
    {
      id: 'creator',
      title: 'Add your first creator, with a link or a purchase code',
      summary: setup.hasActiveLink
        ? `${formatCountOf(setup.clicks, 'click')} in 30 days`
        : codes !== undefined
          ? 'Purchase codes'
          : '',
      isDone: setup.hasActiveLink || codes !== undefined,
      body: <CreatorStep appId={appId} hasCodes={codes !== undefined} />,
    },
    {
      id: 'sdk',
      title: 'Put the SDK into your app',
      summary: needsNoSdk
        ? 'Not needed for codes'
        : setup.installs > 0
          ? `${formatCountOf(setup.installs, 'install')} in 30 days`
          : '',
      isDone: needsNoSdk || setup.hasUser,
      body: <SdkStep appId={appId} setup={setup} />,
    },
    {
      id: 'identity',
      title: 'Check that user ids match',
      summary: needsNoSdk
        ? 'Not needed for codes'
        : identity.data?.verdict === 'no_overlap'
          ? 'They differ'
          : isMatching
            ? 'They match'
            : '',
      isDone: needsNoSdk || isMatching,
      body: <IdentityStep identity={identity} />,
    },
    ...(codes === undefined
      ? []
      : [
          {
            id: 'codes',
            title: 'Check that codes arrive',
            summary: allArrive(codes) ? 'They arrive' : noneArrived(codes) ? 'None arrived yet' : '',
            isDone: allArrive(codes),
            body: <CodesStep appId={appId} state={codes} />,
          },
        ]),
    {
      id: 'delivery',
      title: 'Receive the first purchase',
      summary: setup.firstSaleAt !== null ? 'Received' : accepted !== null ? 'Webhooks arrive' : '',
      isDone: setup.firstSaleAt !== null,
      body: <DeliveryStep appId={appId} setup={setup} />,
    },
  ];
  const next = steps.find(({ isDone }) => !isDone)?.id;
  // Only the purchase of the last step finishes the check of user ids, so both are open then.
  const isWaiting = next === 'identity' && identity.data !== undefined && waitsForPurchase(identity.data);
  const opening = isWaiting ? ['identity', 'delivery'] : [next];
  // Until somebody opens or closes it, a step is open from when it is the next one, or if the address names it. It stays open while its result is read.
  const [toggled, setToggled] = useState<Readonly<Record<string, boolean>>>({});
  const [query] = useSearchParams();
  const [lastOpening, setLastOpening] = useState(opening.join());
  const [shown, setShown] = useState(query.has('provider') ? ['provider'] : opening);
  if (opening.join() !== lastOpening) {
    setLastOpening(opening.join());
    setShown([...shown, ...opening]);
  }
  const isOpen = (id: string) => toggled[id] ?? shown.includes(id);
  const done = steps.filter(({ isDone }) => isDone).length;
  return (
    <>
      <Group gap="sm" mb="sm" wrap="nowrap">
        <Progress
          value={(100 * done) / steps.length}
          size="sm"
          style={{ flex: '0 1 220px' }}
          aria-label="Progress of the set-up"
        />
        <Text size="sm" className="quiet">
          {done} of {steps.length} done
        </Text>
      </Group>
      <ol className="surface steps">
        {steps.map((step, index) => (
          <Step
            key={step.id}
            number={index + 1}
            title={step.title}
            summary={step.summary}
            state={step.isDone ? 'done' : step.id === next ? 'next' : 'open'}
            isOpen={isOpen(step.id)}
            isTarget={step.id === 'provider' && query.has('provider')}
            onToggle={() => setToggled({ ...toggled, [step.id]: !isOpen(step.id) })}
          >
            {step.body}
          </Step>
        ))}
      </ol>
    </>
  );
}

export default function SetupPage() {
  const { appId = '' } = useParams();
  const isAllowed = usePermission('setup');
  const setup = useQuery({
    queryKey: KEYS.setup(appId),
    queryFn: async () => await read(api.GET('/apps/{appId}/setup', { params: { path: { appId } } })),
    enabled: isAllowed,
    // Paused while the page is hidden.
    refetchInterval: ({ state: { data } }) =>
      data?.firstSaleAt == null || (data.purchaseCodes !== undefined && !allArrive(data.purchaseCodes))
        ? LIVE_MS
        : false,
  });
  const content = () => {
    if (!isAllowed) return <NoPermission permission="setup" what="the set-up" />;
    if (setup.data !== undefined) return <Checklist key={appId} appId={appId} setup={setup.data} />;
    if (setup.error instanceof Problem && setup.error.status === 404)
      return <Text size="sm">There is no such app in your account.</Text>;
    if (setup.error !== null) return <ErrorBox error={setup.error} retry={() => void setup.refetch()} />;
    return <Waiting what="the set-up" />;
  };
  return (
    <>
      <SettingsParts appId={appId} />
      {content()}
    </>
  );
}
