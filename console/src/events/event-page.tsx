import './event.css';
import { Anchor, Button, Group, Stack, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { Link, useParams } from 'react-router';
import { api, Problem, read } from '../api/client.ts';
import type { Schemas } from '../api/client.ts';
import { LIVE_MS } from '../api/queries.ts';
import { CODE_STATES, NAMESPACES } from '../codes/words.ts';
import { AttributeEvent } from '../attributions/attribute-button.tsx';
import { formatCountOf, formatInstant, formatMoney } from '../format.ts';
import { CopyButton, ErrorBox, NoPermission, PageHead, Waiting } from '../parts.tsx';
import { Tag } from '../parts/badges.tsx';
import { storeName } from '../policies/words.ts';
import { usePermission } from '../session.ts';
import { CAUSES, EVENT_KINDS, MATCH_METHODS, PROVIDERS } from '../words.ts';
import { commissionFacts } from './commission-facts.tsx';
import type { Fact } from './commission-facts.tsx';
import { reasonOf, titleOf, Verdict } from './verdict.tsx';

type Step = Schemas['Explanation']['steps'][number];
type User = Schemas['ExplainedUser'];
type Tone = 'good' | 'bad' | 'wait' | 'plain';

const STEPS: Readonly<Record<Step['step'], string>> = {
  verify: 'The request was checked',
  store_raw: 'The request was stored',
  normalize: 'The body was read',
  dedupe: 'It was compared with earlier events',
  attribute: 'The creator was determined',
  write_commission: 'The commission was decided',
};

const TONES: Readonly<Record<string, Tone>> = {
  verified: 'good',
  stored: 'good',
  first: 'good',
  attributed: 'good',
  earned: 'good',
  reconciled: 'good',
  rejected: 'bad',
  failed: 'bad',
  reversed: 'bad',
  corrected: 'bad',
  processing: 'wait',
  waiting_for_payment: 'wait',
  missing_exchange_rate: 'wait',
};

const DECISIONS: Readonly<Record<string, string>> = {
  ...EVENT_KINDS,
  ...CAUSES,
  verified: 'Genuine',
  reconciled: 'Added from an export',
  rejected: 'Refused',
  stored: 'Stored',
  read: 'Read',
  failed: 'Not readable',
  ignored: 'Ignored',
  first: 'New',
  same_payment: 'Another event of the same payment',
  duplicate: 'Duplicate',
  attributed: 'Attributed',
  not_needed: 'Not needed',
  waiting_for_payment: 'Waits for the payment',
  counted_elsewhere: 'Counted elsewhere',
  earned: 'Earned',
  reversed: 'Taken back',
  corrected: 'Corrected',
  none: 'Nothing',
};

function Facts({ rows }: { readonly rows: readonly Fact[] }) {
  const known = rows.filter(([, value]) => value !== null && value !== undefined && value !== '');
  if (known.length === 0) return null;
  return (
    <dl className="facts">
      {known.map(([name, value], index) => (
        <div key={index} style={{ display: 'contents' }}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

/** Names what a payment belongs to: a user, or the id of a provider that stands for one. */
const nameOfUser = (isKey: boolean): string => (isKey ? 'Customer without a user' : 'User');

function UserFacts({ user, appId }: { readonly user: User; readonly appId: string }) {
  const { customerUserId, keySource, identified, similarUserIds, attribution, testAttribution } = user;
  // Others are by a code of a purchase or by a person: nothing was opened.
  const isOfDevice = attribution !== null && !['purchase_code', 'manual'].includes(attribution.matchMethod);
  return (
    <Facts
      rows={[
        [nameOfUser(keySource !== undefined), customerUserId],
        ['Reported by the app', keySource !== undefined ? null : identified ? 'yes' : 'no'],
        ['Similar ids of the app', similarUserIds.join(', ')],
        [
          'Creator',
          attribution === null ? null : (
            <>
              <Anchor component={Link} to={`/apps/${appId}/creators/${attribution.affiliateId}`} size="sm">
                {attribution.affiliateName}
              </Anchor>
              {attribution.decided ? '' : ' (did not decide)'}, by {MATCH_METHODS[attribution.matchMethod]}{' '}
              {isOfDevice ? 'at' : 'for payments since'} {formatInstant(attribution.touchedAt)}
            </>
          ),
        ],
        ['First opened', isOfDevice ? formatInstant(attribution.firstOpenAt) : null],
        ['User reported', isOfDevice ? formatInstant(attribution.boundAt) : null],
        ['Later touches', attribution === null ? null : attribution.lostTouches.length || null],
        ['By a test key', testAttribution === null ? null : testAttribution.affiliateName],
      ]}
    />
  );
}

/** Returns a part of the amount in words. */
function componentText(
  component: { readonly amountMinor: number; readonly estimated: boolean } | undefined,
  currency: string | null | undefined,
): string | null {
  if (component === undefined || currency == null) return null;
  return `${formatMoney(component.amountMinor, currency)}, ${component.estimated ? 'estimated' : 'stated'} by the provider`;
}

function factsOf(step: Step, appId: string, keys: ReadonlySet<string>): ReactNode {
  switch (step.step) {
    case 'verify':
      return (
        <Facts
          rows={[
            ['Received', formatInstant(step.facts.receivedAt)],
            ['Secret set', step.facts.secretSetAt === null ? null : formatInstant(step.facts.secretSetAt)],
            ['Environment', step.facts.secretEnvironment],
          ]}
        />
      );
    case 'store_raw':
      return (
        <Facts
          rows={[
            [
              'Delivery',
              <span key="id" className="code-text">
                {step.facts.deliveryId}
              </span>,
            ],
            ['Bytes', step.facts.bodyBytes],
          ]}
        />
      );
    case 'normalize': {
      const { facts } = step;
      const amount =
        facts.amountMinor == null || facts.currency == null
          ? null
          : formatMoney(facts.amountMinor, facts.currency);
      return (
        <Facts
          rows={[
            ['Occurred', facts.occurredAt === undefined ? null : formatInstant(facts.occurredAt)],
            ['Environment', facts.environment],
            [nameOfUser(keys.has(facts.customerUserId ?? '')), facts.customerUserId],
            ['Amount', amount],
            ['Tax in it', componentText(facts.tax, facts.currency)],
            ['Store fee', componentText(facts.storeFee, facts.currency)],
            ['Product', facts.productId],
            ['Store', facts.store && storeName(facts.store)],
            ['Payment', facts.paymentRef],
            ['Last error', facts.lastError],
          ]}
        />
      );
    }
    case 'dedupe': {
      const { sourceEventId, firstEventId, duplicateOfEventId } = step.facts;
      const other = firstEventId ?? duplicateOfEventId;
      const link =
        other == null ? null : (
          <Anchor component={Link} to={`/apps/${appId}/events/${other}`} size="sm">
            {other}
          </Anchor>
        );
      return (
        <Facts
          rows={[
            ['Id at the provider', sourceEventId],
            ['First event', link],
          ]}
        />
      );
    }
    case 'attribute':
      return (
        <Stack gap="sm">
          {(step.facts.users ?? []).map((user) => (
            <UserFacts key={user.customerUserId} user={user} appId={appId} />
          ))}
          <Facts
            rows={[
              ...(step.facts.codes ?? []).map(({ namespace, value, state, affiliateName }): Fact => [
                `Purchase code (${NAMESPACES[namespace].name})`,
                [value, affiliateName, CODE_STATES[state]].filter((part) => part !== null).join(', '),
              ]),
              [nameOfUser(true), step.facts.attributableKey?.customerUserId],
              ['Paid', step.facts.paidAt === undefined ? null : formatInstant(step.facts.paidAt)],
              [
                'Attribution window',
                step.facts.attributionWindowDays === undefined
                  ? null
                  : formatCountOf(step.facts.attributionWindowDays, 'day'),
              ],
            ]}
          />
        </Stack>
      );
    case 'write_commission': {
      const { price, commissions } = step.facts;
      return (
        <Facts
          rows={[
            ['Price in dollars', price.amountCents === null ? null : formatMoney(price.amountCents)],
            [
              'Exchange rate',
              price.fxSource === null || price.currency === 'USD'
                ? null
                : `${price.fxUnits} ${price.currency} are ${price.fxWorthUsd} USD (${price.fxSource})`,
            ],
            ...commissionFacts(commissions, appId, price.currency),
          ]}
        />
      );
    }
  }
}

/** The steps whose sentence is enough for most readers, unless something went wrong in them. */
const USUAL: readonly Step['step'][] = ['verify', 'store_raw', 'normalize'];

/** The facts of a step, behind a button where they are usual. */
function StepFacts({
  step,
  appId,
  keys,
}: {
  readonly step: Step;
  readonly appId: string;
  readonly keys: ReadonlySet<string>;
}) {
  const facts = factsOf(step, appId, keys);
  const isUsual = USUAL.includes(step.step) && !['bad', 'wait'].includes(TONES[step.decision] ?? 'plain');
  if (!isUsual) return facts;
  return (
    <details>
      <summary className="quiet" aria-label={`Details: ${STEPS[step.step]}`}>
        Details
      </summary>
      {facts}
    </details>
  );
}

function Timeline({ steps, appId }: { readonly steps: readonly Step[]; readonly appId: string }) {
  const users = steps.flatMap((step) => (step.step === 'attribute' ? (step.facts.users ?? []) : []));
  const keys = new Set(
    users.filter(({ keySource }) => keySource !== undefined).map(({ customerUserId }) => customerUserId),
  );
  const reason = reasonOf(steps);
  return (
    <ol className="timeline surface">
      {steps.map((step, index) => (
        <li key={step.step} data-tone={TONES[step.decision] ?? 'plain'}>
          <Group gap="sm">
            <Text fw={600}>{STEPS[step.step]}</Text>
            <Tag tone={TONES[step.decision] ?? 'plain'}>{DECISIONS[step.decision] ?? step.decision}</Tag>
          </Group>
          {index < steps.length - 1 && (
            <Text size="sm" mt={4} mb={6}>
              {step.explanation === reason ? 'For the reason above.' : step.explanation}
            </Text>
          )}
          <StepFacts step={step} appId={appId} keys={keys} />
        </li>
      ))}
    </ol>
  );
}

/** Reads how an event was processed. What waits is asked for again, until it is decided. */
const useExplanation = (appId: string, eventId: string, enabled: boolean) =>
  useQuery({
    queryKey: ['explanation', appId, eventId],
    queryFn: async () =>
      await read(
        api.GET('/apps/{appId}/events/{eventId}/explanation', { params: { path: { appId, eventId } } }),
      ),
    enabled,
    refetchInterval: ({ state }) =>
      state.data?.steps.some(({ decision }) => decision === 'processing') === true ? LIVE_MS : false,
  });

function Explanation({
  appId,
  eventId,
  query,
}: {
  readonly appId: string;
  readonly eventId: string;
  readonly query: ReturnType<typeof useExplanation>;
}) {
  if (query.data === undefined) {
    if (query.error === null) return <Waiting what="the event" />;
    const isUnknown = query.error instanceof Problem && query.error.status === 404;
    return isUnknown ? (
      <ErrorBox error={new Error('This app has no such event. The address may be of another app.')} />
    ) : (
      <ErrorBox error={query.error} retry={() => void query.refetch()} />
    );
  }
  const { source, steps } = query.data;
  return (
    <Stack gap="md">
      <Verdict appId={appId} eventId={eventId} steps={steps} />
      <AttributeEvent appId={appId} steps={steps} />
      <Group gap="sm">
        <Text size="sm" className="quiet">
          {PROVIDERS[source]} · <span className="code-text">{eventId}</span>
        </Text>
        <CopyButton text={eventId} what="the id of the event" />
      </Group>
      <Timeline steps={steps} appId={appId} />
    </Stack>
  );
}

export default function EventPage() {
  const { appId = '', eventId = '' } = useParams();
  const canRead = usePermission('read');
  const query = useExplanation(appId, eventId, canRead);
  return (
    <>
      <PageHead
        title={query.data === undefined ? 'Event' : titleOf(query.data.steps)}
        aside={
          <Button component={Link} to={`/apps/${appId}/events`} variant="default" size="compact-sm">
            All events
          </Button>
        }
      >
        What it brought about, and how, step by step.
      </PageHead>
      {canRead ? (
        <Explanation key={eventId} appId={appId} eventId={eventId} query={query} />
      ) : (
        <NoPermission permission="read" what="the event" />
      )}
    </>
  );
}
